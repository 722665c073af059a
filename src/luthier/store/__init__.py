"""Histories of experiments: in memory, in an SQLite file, in a PostgreSQL database."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from luthier.errors import InvalidInputError
from luthier.store.base import Store
from luthier.store.url import without_password

if TYPE_CHECKING:
    from luthier.store.database import Backend

__all__ = ["data_directory", "open_store"]


def open_store(url: str | None = None, *, lock_timeout_s: float = 10) -> Store:
    """Open the store that a URL or a file name stands for, creating or migrating it if need be.

    `memory:`, `sqlite:///PATH`, a path that ends in `.db` or `.sqlite`, or `postgresql://USER@HOST/DATABASE`. Without a
    name: what the environment variable LUTHIER_STORE says, else `luthier.db` in the data directory.
    """
    where = "store"
    if url is None:
        url = os.environ.get("LUTHIER_STORE") or None
        where = "LUTHIER_STORE"
    if url is None:
        return _open_sqlite(_default_file(), lock_timeout_s)
    scheme, mark, _ = url.partition(":")
    if mark and scheme in _OPENERS:
        return _OPENERS[scheme](url, lock_timeout_s)
    if Path(url).suffix in {".db", ".sqlite"} and "://" not in url:
        return _open_sqlite(Path(url), lock_timeout_s)
    raise InvalidInputError(
        f"{where}: {without_password(url)!r} names no store; expected a file that ends in .db or .sqlite, "
        "sqlite:///PATH, postgresql://USER:PASSWORD@HOST/DATABASE or memory:"
    )


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


def _open_memory(url: str, _lock_timeout_s: float) -> Store:
    from luthier.store.memory import MemoryStore

    if url != "memory:":
        raise InvalidInputError(f"store: {url!r} names no store; a store in memory has no name: memory:")
    return MemoryStore()


def _open_sqlite_url(url: str, lock_timeout_s: float) -> Store:
    path = url.removeprefix("sqlite:///")
    if path in {url, "", ":memory:"} or "?" in path:
        raise InvalidInputError(
            f"store: {without_password(url)!r} names no file; expected sqlite:///PATH, without options"
        )
    return _open_sqlite(Path(path), lock_timeout_s)


def _open_sqlite(path: Path, lock_timeout_s: float) -> Store:
    from luthier.store.sqlite import sqlite_backend

    return _open(sqlite_backend(path, lock_timeout_s))


def _open_postgresql(url: str, lock_timeout_s: float) -> Store:
    from luthier.store.postgresql import postgresql_backend

    return _open(postgresql_backend(url, lock_timeout_s))


def _open(backend: "Backend") -> Store:
    from luthier.store.database import Database
    from luthier.store.schema import prepare
    from luthier.store.sql import SqlStore

    database = Database(backend)
    prepare(database)
    return SqlStore(database)


_OPENERS: dict[str, Callable[[str, float], Store]] = {
    "memory": _open_memory,
    "sqlite": _open_sqlite_url,
    "postgresql": _open_postgresql,
    "postgresql+psycopg": _open_postgresql,
    "postgres": _open_postgresql,
}
