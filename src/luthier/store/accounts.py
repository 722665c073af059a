"""Users, their passes and the audit log, in an SQL database."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import cast, get_args

from sqlalchemy import Connection, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from luthier.errors import InvalidInputError, NotFoundError
from luthier.store import rows
from luthier.store.database import Database
from luthier.store.server_store import Entry, Pass, PassKind, Role, User, author_after_removal
from luthier.store.tables import audit, experiments, passes, users

USE_NOTED_EVERY_S = 60.0
"""A pass may be shown many times a second; that must not make every reader a writer."""

_USERS = select(users)
_USER = select(users).where(users.c.name == bindparam("user"))
_ADD_USER = insert(users)
_CHANGE_USER = (
    update(users)
    .where(users.c.name == bindparam("user"))
    .values({column.name: bindparam(column.name) for column in users.c if column.name != "name"})
)
_REMOVE_USER = delete(users).where(users.c.name == bindparam("user"))
_GIVE_AWAY = (
    update(experiments)
    .where(experiments.c.author == bindparam("user"))
    .values(author=bindparam("removed"), request_key=None)
)
_REMOVE_PASSES = delete(passes).where(passes.c.user_name == bindparam("user"))
_ALL_PASSES = select(
    *(column for column in passes.c if column.name not in {"digest", "user_name"}), passes.c.user_name.label("user")
)
_PASSES = _ALL_PASSES.where(passes.c.user_name == bindparam("user")).order_by(passes.c.id)
_FIND = _ALL_PASSES.where(passes.c.digest == bindparam("wanted"))
_GRANT = insert(passes)
_SWEEP = delete(passes).where(passes.c.expires_at <= bindparam("now"))
_USE = update(passes).where(passes.c.id == bindparam("pass")).values(used_at=bindparam("now"))
_REVOKE = delete(passes).where(passes.c.id == bindparam("pass"))
_NOTE = insert(audit)
_ENTRIES = (
    select(audit.c.id, audit.c.at, audit.c.user_name.label("user"), audit.c.action, audit.c.target, audit.c.detail)
    .where(audit.c.id <= bindparam("last"))
    .order_by(audit.c.id.desc())
    .limit(bindparam("most"))
)


class SqlAccounts:
    """Keeps users, what they come in with and what they did in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def users(self) -> Sequence[User]:
        """Every user, by name."""
        found = self._database.read(lambda connection: connection.execute(_USERS).mappings().all())
        return sorted((User(**row) for row in found), key=lambda user: user.name)  # databases sort each in its own way

    def user(self, name: str) -> User:
        """One user."""
        found = self._database.read(lambda connection: connection.execute(_USER, {"user": name}).mappings().first())
        if found is None:
            raise _no_user(name)
        return User(**found)

    def put_user(self, user: User) -> None:
        """Add a user, or change the one of that name."""
        row = _user_row(user)

        def work(connection: Connection) -> None:
            if connection.execute(_CHANGE_USER, {**row, "user": user.name}).rowcount == 0:
                connection.execute(_ADD_USER, row)

        try:
            self._database.write(work)
        except IntegrityError:  # somebody else has added them this very moment
            self._database.write(work)

    def remove_user(self, name: str) -> None:
        """Forget a user and their passes; their experiments stay, and belong to nobody who can have an account."""
        author = {"user": name, "removed": author_after_removal(name)}

        def work(connection: Connection) -> None:
            if connection.execute(_REMOVE_USER, {"user": name}).rowcount == 0:
                raise _no_user(name)
            connection.execute(_REMOVE_PASSES, {"user": name})
            connection.execute(_GIVE_AWAY, author)

        self._database.write(work, repeatable=False)

    def grant(self, digest: str, issued: Pass) -> Pass:
        """Keep a new pass, numbered by the store, under the digest of its secret."""
        row = _pass_row(digest, issued)

        def work(connection: Connection) -> int:
            connection.execute(_SWEEP, {"now": issued.created_at})
            return cast("tuple[int]", connection.execute(_GRANT, row).inserted_primary_key)[0]

        try:
            return replace(issued, id=self._database.write(work, repeatable=False))
        except IntegrityError:
            raise InvalidInputError("pass: there is one with this secret already; make another secret") from None

    def find(self, digest: str, now: float) -> Pass | None:
        """The pass of this digest if it has not expired."""
        now = rows.finite(now, "now")
        row = self._database.read(lambda connection: connection.execute(_FIND, {"wanted": digest}).mappings().first())
        if row is None:
            return None
        found = Pass(**row)
        if found.expires_at is not None and found.expires_at <= now:
            return None
        if found.kind != "once" and found.used_at is not None and abs(now - found.used_at) < USE_NOTED_EVERY_S:
            return found
        statement = _REVOKE if found.kind == "once" else _USE
        parameters = {"pass": found.id} if found.kind == "once" else {"pass": found.id, "now": now}
        changed = self._database.write(
            lambda connection: connection.execute(statement, parameters).rowcount, repeatable=found.kind != "once"
        )
        return replace(found, used_at=now) if changed == 1 else None

    def passes(self, user: str) -> Sequence[Pass]:
        """The passes of one user, oldest first."""
        found = self._database.read(lambda connection: connection.execute(_PASSES, {"user": user}).mappings().all())
        return [Pass(**row) for row in found]

    def revoke(self, pass_id: int) -> None:
        """Forget a pass, if it is there."""
        parameters = {"pass": rows.bounded(pass_id)}
        self._database.write(lambda connection: connection.execute(_REVOKE, parameters))

    def note(self, entry: Entry) -> None:
        """Add a line to the audit log."""
        row = {
            "at": rows.finite(entry.at, "at"),
            "user_name": entry.user,
            "action": entry.action,
            "target": entry.target,
            "detail": entry.detail,
        }
        # If the connection is lost meanwhile, a line may be there twice, which is better than not at all.
        self._database.write(lambda connection: connection.execute(_NOTE, row))

    def entries(self, *, before: int | None = None, limit: int = 100) -> Sequence[Entry]:
        """The newest lines of the audit log first."""
        last = rows.LARGEST_ID if before is None else rows.bounded(before) - 1
        parameters = {"last": last, "most": rows.positive(limit)}
        found = self._database.read(lambda connection: connection.execute(_ENTRIES, parameters).mappings().all())
        return [Entry(**row) for row in found]


def _user_row(user: User) -> dict[str, object]:
    if not user.name:
        raise InvalidInputError("user: the name is empty; give one")
    if user.role not in get_args(Role):
        raise InvalidInputError(f"user: the role {user.role!r} is unknown; give one of {', '.join(get_args(Role))}")
    rows.short(user.name, "user")
    rows.finite(user.created_at, "created_at")
    return asdict(user)


def _pass_row(digest: str, issued: Pass) -> dict[str, object]:
    if issued.kind not in get_args(PassKind):
        raise InvalidInputError(
            f"pass: the kind {issued.kind!r} is unknown; give one of {', '.join(get_args(PassKind))}"
        )
    return {
        "digest": rows.short(digest, "digest"),
        "user_name": rows.short(issued.user, "user"),
        "kind": issued.kind,
        "label": issued.label,
        "created_at": rows.finite(issued.created_at, "created_at"),
        "expires_at": rows.finite_or_none(issued.expires_at, "expires_at"),
        "used_at": rows.finite_or_none(issued.used_at, "used_at"),
    }


def _no_user(name: str) -> NotFoundError:
    return NotFoundError(f"user {name!r:.80} is not known here; add them first, or correct the name")
