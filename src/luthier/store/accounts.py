"""Users, their credentials and the audit log, in an SQL database."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import cast, get_args

from sqlalchemy import Connection, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from luthier.errors import InvalidInputError, NotFoundError
from luthier.store import rows
from luthier.store.database import Database
from luthier.store.server_store import Credential, CredentialKind, Entry, Role, User, author_after_removal
from luthier.store.tables import audit, credentials, experiments, users
from luthier.store.wing_tables import change_author

USE_NOTED_EVERY_S = 60.0
"""How often the last use of a credential is written; a credential may be used many times per second."""

_USERS = select(users)
_USER = select(users).where(users.c.name == bindparam("user"))
_ADD_USER = insert(users)
_CHANGE_USER = (
    update(users)
    .where(users.c.name == bindparam("user"))
    .values({column.name: bindparam(column.name) for column in users.c if column.name != "name"})
)
_REMOVE_USER = delete(users).where(users.c.name == bindparam("user"))
_CHANGE_AUTHOR = (
    update(experiments)
    .where(experiments.c.author == bindparam("user"))
    .values(author=bindparam("removed"), request_key=None)
)
_REMOVE_CREDENTIALS = delete(credentials).where(credentials.c.user_name == bindparam("user"))
_ALL_CREDENTIALS = select(
    *(column for column in credentials.c if column.name not in {"digest", "user_name"}),
    credentials.c.user_name.label("user"),
)
_CREDENTIALS = _ALL_CREDENTIALS.where(credentials.c.user_name == bindparam("user")).order_by(credentials.c.id)
_FIND = _ALL_CREDENTIALS.where(credentials.c.digest == bindparam("wanted"))
_GRANT = insert(credentials)
_DELETE_EXPIRED = delete(credentials).where(credentials.c.expires_at <= bindparam("now"))
_USE = update(credentials).where(credentials.c.id == bindparam("credential")).values(used_at=bindparam("now"))
_REVOKE = delete(credentials).where(credentials.c.id == bindparam("credential"))
_NOTE = insert(audit)
_ENTRIES = (
    select(audit.c.id, audit.c.at, audit.c.user_name.label("user"), audit.c.action, audit.c.target, audit.c.detail)
    .where(audit.c.id <= bindparam("last"))
    .order_by(audit.c.id.desc())
    .limit(bindparam("most"))
)


class SqlAccounts:
    """Stores users, credentials and the audit log in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def users(self) -> Sequence[User]:
        """Every user, by name."""
        found = self._database.read(lambda connection: [User(**row) for row in connection.execute(_USERS).mappings()])
        return sorted(found, key=lambda user: user.name)  # every database sorts text differently

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
        except IntegrityError:  # another process has just added the user
            self._database.write(work)

    def remove_user(self, name: str) -> None:
        """Delete a user and their credentials; their experiments and on-line sessions stay."""
        author = {"user": name, "removed": author_after_removal(name)}

        def work(connection: Connection) -> None:
            if connection.execute(_REMOVE_USER, {"user": name}).rowcount == 0:
                raise _no_user(name)
            connection.execute(_REMOVE_CREDENTIALS, {"user": name})
            connection.execute(_CHANGE_AUTHOR, author)
            change_author(connection, name, author["removed"])

        self._database.write(work, repeatable=False)

    def grant(self, digest: str, issued: Credential) -> Credential:
        """Store a new credential under the digest of its secret; the store numbers it."""
        row = _credential_row(digest, issued)

        def work(connection: Connection) -> int:
            connection.execute(_DELETE_EXPIRED, {"now": issued.created_at})
            return cast("tuple[int]", connection.execute(_GRANT, row).inserted_primary_key)[0]

        try:
            return replace(issued, id=self._database.write(work, repeatable=False))
        except IntegrityError:
            raise InvalidInputError("credential: this secret is already in use; generate another one") from None

    def find(self, digest: str, now: float) -> Credential | None:
        """The credential with this digest if it has not expired."""
        now = rows.finite(now, "now")
        row = self._database.read(lambda connection: connection.execute(_FIND, {"wanted": digest}).mappings().first())
        if row is None:
            return None
        found = Credential(**row)
        if found.expires_at is not None and found.expires_at <= now:
            return None
        if found.kind != "once" and found.used_at is not None and abs(now - found.used_at) < USE_NOTED_EVERY_S:
            return found
        statement = _REVOKE if found.kind == "once" else _USE
        parameters = {"credential": found.id} if found.kind == "once" else {"credential": found.id, "now": now}
        changed = self._database.write(
            lambda connection: connection.execute(statement, parameters).rowcount, repeatable=found.kind != "once"
        )
        return replace(found, used_at=now) if changed == 1 else None

    def credentials(self, user: str) -> Sequence[Credential]:
        """The credentials of one user, oldest first."""
        found = self._database.read(
            lambda connection: connection.execute(_CREDENTIALS, {"user": user}).mappings().all()
        )
        return [Credential(**row) for row in found]

    def revoke(self, credential_id: int) -> None:
        """Delete a credential if it exists."""
        parameters = {"credential": rows.bounded(credential_id)}
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
        # If the connection is lost meanwhile, a line may be written twice, which is better than never.
        self._database.write(lambda connection: connection.execute(_NOTE, row))

    def entries(self, *, before: int | None = None, limit: int = 100) -> Sequence[Entry]:
        """The newest lines of the audit log first."""
        last = rows.LARGEST_ID if before is None else rows.bounded(before) - 1
        parameters = {"last": last, "most": rows.positive(limit)}
        found = self._database.read(lambda connection: connection.execute(_ENTRIES, parameters).mappings().all())
        return [Entry(**row) for row in found]


def _user_row(user: User) -> dict[str, object]:
    if not user.name:
        raise InvalidInputError("user: the name is empty; a name is required")
    if user.role not in get_args(Role):
        raise InvalidInputError(f"user: the role {user.role!r} is unknown; give one of {', '.join(get_args(Role))}")
    rows.short(user.name, "user")
    rows.finite(user.created_at, "created_at")
    return asdict(user)


def _credential_row(digest: str, issued: Credential) -> dict[str, object]:
    if issued.kind not in get_args(CredentialKind):
        raise InvalidInputError(
            f"credential: the kind {issued.kind!r} is unknown; give one of {', '.join(get_args(CredentialKind))}"
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
    return NotFoundError(f"user {name!r:.80} does not exist; add the user first, or correct the name")
