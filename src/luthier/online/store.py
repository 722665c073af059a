"""The on-line sessions of running programs, in an SQL database."""

import itertools
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import cast

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Double,
    ForeignKey,
    Integer,
    PrimaryKeyConstraint,
    RowMapping,
    Table,
    Text,
    UniqueConstraint,
    Update,
    bindparam,
    delete,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from luthier.errors import InvalidInputError, NotFoundError, StoreError
from luthier.online.records import OnlineRecord, OnlineSessions, OnlineStatus
from luthier.store import json_columns, rows
from luthier.store.database import Database
from luthier.store.server_store import ServerStore
from luthier.store.tables import AnyText, metadata
from luthier.store.wing_tables import WingTables
from luthier.trial import Config, Json, Sample, Value

online_sessions = Table(
    "online_sessions",
    metadata,
    Column("id", Integer, nullable=False),
    Column("uid", Text, nullable=False),
    Column("name", AnyText, nullable=False),
    Column("author", AnyText, nullable=False),
    Column("shared", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("status", Text, nullable=False),
    Column("seen_at", Double),
    Column("settings", AnyText, nullable=False),
    Column("view", AnyText),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("uid"),
    UniqueConstraint("author", "name"),
    sqlite_autoincrement=True,
)

online_samples = Table(
    "online_samples",
    metadata,
    Column("session_id", Integer, ForeignKey("online_sessions.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("search", Integer, nullable=False),
    Column("client", AnyText, nullable=False),
    Column("config", AnyText, nullable=False),
    Column("value", Double),
    Column("at", Double, nullable=False),
    PrimaryKeyConstraint("session_id", "number"),
)


_IS_SESSION = online_sessions.c.id == bindparam("session")
_RECORDS = select(online_sessions).order_by(online_sessions.c.id.desc())
_RECORD = select(online_sessions).where(_IS_SESSION)
_STATUS = select(online_sessions.c.id, online_sessions.c.status)
_NAMED = select(online_sessions).where(
    online_sessions.c.author == bindparam("author"), online_sessions.c.name == bindparam("name")
)
_CREATE = insert(online_sessions)
_SEEN = update(online_sessions).where(_IS_SESSION).values(seen_at=bindparam("now"))
_SEEN_WITH_VIEW = _SEEN.values(view=bindparam("new_view"))
_STOP = update(online_sessions).where(_IS_SESSION).values(status="stopped")
_SHARE = update(online_sessions).where(_IS_SESSION).values(shared=bindparam("now_shared"))
_LOCK = select(online_sessions.c.id).where(_IS_SESSION).with_for_update()
_DELETE_SAMPLES = delete(online_samples).where(online_samples.c.session_id == bindparam("session"))
_DELETE = delete(online_sessions).where(_IS_SESSION)
_CHANGE_AUTHOR = (
    update(online_sessions).where(_IS_SESSION).values(author=bindparam("new_author"), name=bindparam("new_name"))
)
_APPEND = {
    "sqlite": sqlite.insert(online_samples).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(online_samples).on_conflict_do_nothing(),
}
_SAMPLES = (
    select(online_samples)
    .where(online_samples.c.session_id == bindparam("session"), online_samples.c.number > bindparam("after"))
    .order_by(online_samples.c.number)
    .limit(bindparam("most"))
)


def online_sessions_in(store: ServerStore) -> OnlineSessions:
    """The on-line sessions of a store."""
    return SqlOnlineSessions(store.database)


class SqlOnlineSessions:
    """Stores on-line sessions and their samples in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, author: str, name: str, settings: Mapping[str, Json], now: float) -> OnlineRecord:
        """Add a session, or return the one of this author with this name."""
        if not name:
            raise InvalidInputError("session: the name is empty; a name is required")
        row: dict[str, object] = {
            "uid": uuid.uuid4().hex,
            "name": rows.short(name, "session"),
            "author": rows.short(author, "author"),
            "shared": False,
            "created_at": rows.finite(now, "created_at"),
            "status": "running",
            "settings": rows.to_json(settings, "settings"),
        }
        with suppress(IntegrityError):  # the name is taken
            self._database.write(lambda connection: connection.execute(_CREATE, row))
        found = self.find(author, name)
        return self.create(author, name, settings, now) if found is None else found  # None: it has just been deleted

    def get(self, session_id: int) -> OnlineRecord:
        """One session."""
        key = _key(session_id)
        row = self._database.read(lambda connection: connection.execute(_RECORD, key).mappings().first())
        if row is None:
            raise _no_session(session_id)
        return _record(row)

    def find(self, author: str, name: str) -> OnlineRecord | None:
        """The session of this author with this name."""
        key = {"author": author, "name": name}
        row = self._database.read(lambda connection: connection.execute(_NAMED, key).mappings().first())
        return None if row is None else _record(row)

    def all(
        self, *, author: str | None = None, before: int | None = None, limit: int | None = None
    ) -> Sequence[OnlineRecord]:
        """The newest sessions first."""
        wanted = _RECORDS if limit is None else _RECORDS.limit(rows.positive(limit))
        if author is not None:
            wanted = wanted.where(or_(online_sessions.c.author == author, online_sessions.c.shared))
        if before is not None:
            wanted = wanted.where(online_sessions.c.id < rows.bounded(before))
        found = self._database.read(lambda connection: connection.execute(wanted).mappings().all())
        return [_record(row) for row in found]

    def status(self) -> Mapping[int, OnlineStatus]:
        """The status of every session."""
        found = self._database.read(lambda connection: connection.execute(_STATUS).all())
        return {number: cast("OnlineStatus", status) for number, status in found}

    def append(self, session_id: int, samples: Sequence[Sample]) -> None:
        """Add samples; those with a number that the session already has are ignored."""
        _key(session_id)
        if not samples:
            return
        new = [_sample_row(session_id, sample) for sample in samples]
        try:
            self._database.write(lambda connection: connection.execute(_APPEND[connection.dialect.name], new))
        except IntegrityError:  # samples refer to their session
            raise _no_session(session_id) from None

    def samples(self, session_id: int, *, after: int = 0, limit: int | None = None) -> Sequence[Sample]:
        """The samples with a number above `after`, by number."""
        most = rows.LARGEST_ID if limit is None else rows.positive(limit)
        parameters = {**_key(session_id), "after": rows.bounded(after), "most": most}

        def work(connection: Connection) -> Sequence[RowMapping]:
            found = connection.execute(_SAMPLES, parameters).mappings().all()
            if not found and connection.execute(_RECORD, _key(session_id)).first() is None:
                raise _no_session(session_id)
            return found

        return [_sample(row) for row in self._database.read(work)]

    def update(self, session_id: int, *, seen_at: float, view: Mapping[str, Json] | None = None) -> None:
        """Record that the session is served, and what it looks like."""
        parameters: dict[str, object] = {"now": rows.finite(seen_at, "seen_at")}
        if view is None:
            return self._change(_SEEN, session_id, parameters)
        return self._change(_SEEN_WITH_VIEW, session_id, {**parameters, "new_view": rows.to_json(view, "view")})

    def request_stop(self, session_id: int) -> None:
        """Stop the search."""
        self._change(_STOP, session_id, {})

    def share(self, session_id: int, *, shared: bool) -> None:
        """Share a session with all users, or stop sharing it."""
        self._change(_SHARE, session_id, {"now_shared": shared})

    def delete(self, session_id: int) -> None:
        """Delete a session and its samples."""
        key = _key(session_id)

        def work(connection: Connection) -> None:
            if connection.execute(_LOCK, key).first() is None:  # locked: samples that arrive meanwhile must wait
                raise _no_session(session_id)
            connection.execute(_DELETE_SAMPLES, key)
            connection.execute(_DELETE, key)

        self._database.write(work, repeatable=False)

    def _change(self, statement: Update, session_id: int, parameters: Mapping[str, object]) -> None:
        parameters = {**_key(session_id), **parameters}
        if self._database.write(lambda connection: connection.execute(statement, parameters).rowcount) == 0:
            raise _no_session(session_id)


def change_author(connection: Connection, author: str, new_author: str) -> None:
    """Give all sessions of an author to another one; a name that is taken there gets a number."""
    names = select(online_sessions.c.name)
    mine = select(online_sessions.c.id, online_sessions.c.name).where(online_sessions.c.author == author)
    taken = set(connection.execute(names.where(online_sessions.c.author == new_author)).scalars())
    for number, name in connection.execute(mine).all():
        candidates = itertools.chain([name], (f"{name} ({count})" for count in itertools.count(2)))
        new = next(candidate for candidate in candidates if candidate not in taken)
        taken.add(new)
        connection.execute(_CHANGE_AUTHOR, {"session": number, "new_author": new_author, "new_name": new})


def _key(session_id: int) -> dict[str, object]:
    if not 0 < session_id <= rows.LARGEST_ID:
        raise _no_session(session_id)
    return {"session": session_id}


def _no_session(session_id: int) -> NotFoundError:
    return NotFoundError(f"on-line session {session_id} is not in this store")


def _record(row: RowMapping) -> OnlineRecord:
    """The session in a row; a damaged one is without settings and view, so that the others can still be listed."""
    try:
        settings = json_columns.mapping(row["settings"])
        view = None if row["view"] is None else json_columns.mapping(row["view"])
    except json_columns.DAMAGE:
        settings, view = {}, None
    return OnlineRecord(**{**row, "settings": settings, "view": view})


def _sample_row(session_id: int, sample: Sample) -> dict[str, object]:
    where = f"sample {sample.number}"
    return {
        "session_id": session_id,
        "number": sample.number,
        "search": sample.search,
        "client": sample.client,
        "config": rows.to_json(sample.config, where),
        "value": rows.finite_or_none(sample.value, where),
        "at": rows.finite(sample.at, where),
    }


def _sample(row: RowMapping) -> Sample:
    try:
        config = Config(cast("Mapping[str, Value]", json_columns.mapping(row["config"])))
    except json_columns.DAMAGE:
        raise StoreError(
            f"sample {row['number']} of on-line session {row['session_id']} is damaged; restore the store from a backup"
        ) from None
    return Sample(row["number"], row["search"], row["client"], config, row["value"], row["at"])


TABLES = WingTables(change_author=change_author)
