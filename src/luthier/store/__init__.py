"""Stores for experiments and their runs: in memory, in an SQLite file, in a PostgreSQL database."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from luthier.errors import InvalidInputError
from luthier.folders import data_directory
from luthier.store.base import Store
from luthier.store.server_store import ServerStore
from luthier.store.url import without_password

if TYPE_CHECKING:
    from luthier.store.database import Backend, Database

__all__ = ["open_server_store", "open_store"]


def open_store(url: str | None = None, *, lock_timeout_s: float = 10) -> Store:
    """Open the store with this URL or file name; create or migrate it if necessary.

    Supported are `memory:`, `sqlite:///PATH`, a path that ends in `.db` or `.sqlite`, and
    `postgresql://USER@HOST/DATABASE`. The default is the environment variable LUTHIER_STORE, or else `luthier.db` in
    the data directory.
    """
    backend = _backend(url, lock_timeout_s)
    if backend is None:
        from luthier.store.memory import MemoryStore

        return MemoryStore()
    from luthier.store.sql import SqlStore

    return SqlStore(_prepared(backend))


def open_server_store(url: str | None = None, *, lock_timeout_s: float = 10) -> ServerStore:
    """Open a store with the queue and the accounts of a server; the URL is as for `open_store`."""
    backend = _backend(url, lock_timeout_s)
    if backend is None:
        raise InvalidInputError("store: memory: works within one process only; a server needs a file or a database")
    from luthier.store.accounts import SqlAccounts
    from luthier.store.components import SqlComponents
    from luthier.store.explanations import SqlExplanations
    from luthier.store.learned import SqlLearned
    from luthier.store.queue import SqlQueue
    from luthier.store.sql import SqlStore

    database = _prepared(backend)
    return ServerStore(
        SqlStore(database),
        SqlQueue(database),
        SqlAccounts(database),
        SqlComponents(database),
        SqlExplanations(database),
        SqlLearned(database),
        database,
        backend.where if "://" in backend.where else str(Path(backend.where).resolve()),
    )


def _default_file() -> Path:
    folder = data_directory()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"{folder}: cannot be created ({error.strerror}); set LUTHIER_STORE to a file you may write"
        ) from error
    return folder / "luthier.db"


def _backend(url: str | None, lock_timeout_s: float) -> "Backend | None":
    """The database for a URL; None for memory."""
    where = "store"
    if url is None:
        url = os.environ.get("LUTHIER_STORE") or None
        where = "LUTHIER_STORE"
    if url is None:
        return _sqlite(_default_file(), lock_timeout_s)
    scheme, mark, _ = url.partition(":")
    if mark and scheme in _BACKENDS:
        return _BACKENDS[scheme](url, lock_timeout_s)
    if Path(url).suffix in {".db", ".sqlite"} and "://" not in url:
        return _sqlite(Path(url), lock_timeout_s)
    raise InvalidInputError(
        f"{where}: {without_password(url)!r} is not a valid store; expected a file that ends in .db or .sqlite, "
        "sqlite:///PATH, postgresql://USER:PASSWORD@HOST/DATABASE or memory:"
    )


def _memory(url: str, _lock_timeout_s: float) -> None:
    if url != "memory:":
        raise InvalidInputError(f"store: {url!r} is not a valid store; write memory: without a name")


def _sqlite_url(url: str, lock_timeout_s: float) -> "Backend":
    path = url.removeprefix("sqlite:///")
    if path in {url, "", ":memory:"} or "?" in path:
        raise InvalidInputError(
            f"store: {without_password(url)!r} is not a valid store; expected sqlite:///PATH, without options"
        )
    return _sqlite(Path(path), lock_timeout_s)


def _sqlite(path: Path, lock_timeout_s: float) -> "Backend":
    from luthier.store.sqlite import sqlite_backend

    return sqlite_backend(path, lock_timeout_s)


def _postgresql(url: str, lock_timeout_s: float) -> "Backend":
    from luthier.store.postgresql import postgresql_backend

    return postgresql_backend(url, lock_timeout_s)


def _prepared(backend: "Backend") -> "Database":
    from luthier.store.database import Database
    from luthier.store.schema import prepare

    database = Database(backend)
    prepare(database)
    return database


_BACKENDS: dict[str, Callable[[str, float], "Backend | None"]] = {
    "memory": _memory,
    "sqlite": _sqlite_url,
    "postgresql": _postgresql,
    "postgresql+psycopg": _postgresql,
    "postgres": _postgresql,
}
