"""Histories of experiments: in memory, in an SQLite file, in a PostgreSQL database."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from luthier.errors import InvalidInputError
from luthier.store.base import Store
from luthier.store.server_store import Books
from luthier.store.url import without_password

if TYPE_CHECKING:
    from luthier.store.database import Backend, Database

__all__ = ["data_directory", "open_books", "open_store"]


def open_store(url: str | None = None, *, lock_timeout_s: float = 10) -> Store:
    """Open the store that a URL or a file name stands for, creating or migrating it if need be.

    `memory:`, `sqlite:///PATH`, a path that ends in `.db` or `.sqlite`, or `postgresql://USER@HOST/DATABASE`. Without a
    name: what the environment variable LUTHIER_STORE says, else `luthier.db` in the data directory.
    """
    backend = _backend(url, lock_timeout_s)
    if backend is None:
        from luthier.store.memory import MemoryStore

        return MemoryStore()
    from luthier.store.sql import SqlStore

    return SqlStore(_prepared(backend))


def open_books(url: str | None = None, *, lock_timeout_s: float = 10) -> Books:
    """Open a store with everything that a server keeps beside the history; it is named as for `open_store`."""
    backend = _backend(url, lock_timeout_s)
    if backend is None:
        raise InvalidInputError("store: memory: is of one process only, a server needs more; name a file or a database")
    from luthier.store.accounts import SqlAccounts
    from luthier.store.queue import SqlDesk
    from luthier.store.sql import SqlStore

    database = _prepared(backend)
    return Books(SqlStore(database), SqlDesk(database), SqlAccounts(database))


def data_directory() -> Path:
    """The folder for what luthier keeps for this user; it may not exist yet."""
    configured = Path(os.environ.get("XDG_DATA_HOME", ""))
    if configured.is_absolute():  # others are to be ignored, says the XDG base directory specification
        return configured / "luthier"
    try:
        return Path.home() / ".local" / "share" / "luthier"
    except RuntimeError as error:
        raise InvalidInputError(
            f"no home folder for this user: {error}; set HOME, XDG_DATA_HOME or LUTHIER_STORE"
        ) from error


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
    """The database that a name stands for; None for memory."""
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
        f"{where}: {without_password(url)!r} names no store; expected a file that ends in .db or .sqlite, "
        "sqlite:///PATH, postgresql://USER:PASSWORD@HOST/DATABASE or memory:"
    )


def _memory(url: str, _lock_timeout_s: float) -> None:
    if url != "memory:":
        raise InvalidInputError(f"store: {url!r} names no store; a store in memory has no name: memory:")


def _sqlite_url(url: str, lock_timeout_s: float) -> "Backend":
    path = url.removeprefix("sqlite:///")
    if path in {url, "", ":memory:"} or "?" in path:
        raise InvalidInputError(
            f"store: {without_password(url)!r} names no file; expected sqlite:///PATH, without options"
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
