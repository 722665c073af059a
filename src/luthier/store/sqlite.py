"""Stores in an SQLite file, with the journal mode that its file system supports."""

import logging
import os
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sqlalchemy import URL, Connection, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from luthier.errors import InvalidInputError, LuthierError, StoreAwayError, StoreError
from luthier.store.database import Backend, damaged
from luthier.store.schema import check_known
from luthier.store.tables import VERSION_TABLE
from luthier.texts import visible

_logger = logging.getLogger(__name__)

# fmt: off
NETWORK_FILE_SYSTEMS = frozenset({
    "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "fhgfs", "fuse.ceph", "fuse.glusterfs", "fuse.sshfs", "glusterfs",
    "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "virtiofs",
    "wekafs",
})
# fmt: on
"""File systems that several machines share: a write-ahead log does not work there, because it needs shared memory."""


def sqlite_backend(path: Path, lock_timeout_s: float) -> Backend:
    """The backend for this file, which is created at the first use."""
    path = _absolute(path)
    _check_path(path)
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        # A connection for each transaction: no connection is shared by threads or survives a fork.
        poolclass=NullPool,
        hide_parameters=True,  # parameters may be secrets, and errors are logged
        connect_args={"timeout": lock_timeout_s, "check_same_thread": False},
    )

    def prepare(connection: sqlite3.Connection, entry: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # the driver must not start transactions itself
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            _choose_journal(connection, path, lock_timeout_s)
        except (sqlite3.Error, ValueError):  # ValueError: even SQLite's message cannot be decoded
            connection.close()
            raise
        entry.info["file"] = _identity(path)

    def check(connection: Connection) -> None:
        # Writes would go to a file that nobody sees any more.
        if _identity(path) != connection.info["file"]:
            raise StoreError(f"{path}: the file was removed or replaced while in use; put it back, or restart")

    event.listen(engine, "do_connect", lambda *_: _create_private(path))
    event.listen(engine, "connect", prepare)
    return Backend(
        where=str(path),
        engine=engine,
        explain=lambda error: explain(error, path, lock_timeout_s),
        check=check,
        begin_read="BEGIN",
        begin_write="BEGIN IMMEDIATE",
    )


def file_system(path: Path, mounts: str) -> str | None:
    """The type of the file system that holds a path, according to the text of /proc/mounts."""
    best: tuple[int, str] | None = None
    for line in mounts.splitlines():
        fields = line.split(" ")
        # Device, mount point, type; blanks and tabs in names are written in octal.
        if len(fields) < 3:
            continue
        mount = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[1]))
        # The later of two mounts at the same path hides the earlier one.
        if path.is_relative_to(mount) and (best is None or len(mount.parts) >= best[0]):
            best = len(mount.parts), fields[2]
    return None if best is None else best[1]


def explain(error: DBAPIError, path: Path, lock_timeout_s: float) -> LuthierError:
    """An error of SQLite as one line."""
    name = getattr(error.orig, "sqlite_errorname", "")
    said = visible(str(error.orig).partition("\n")[0])
    # Damaged pages may also show as text that is not UTF-8.
    if name.startswith("SQLITE_CORRUPT") or said.startswith("Could not decode"):
        return damaged(str(path), said.partition(" with text")[0])  # it continues with the whole text of the column
    for start, kind, text in _EXPLANATIONS:
        if name.startswith(start):
            return kind(f"{path}: " + text.format(said=said, lock_timeout_s=lock_timeout_s))
    return StoreError(f"{path}: SQLite error: {said}")


_EXPLANATIONS: tuple[tuple[str, Callable[[str], LuthierError], str], ...] = (
    (
        "SQLITE_BUSY",
        StoreAwayError,
        "locked by another process for more than {lock_timeout_s:g} s; try again when that process has ended",
    ),
    ("SQLITE_FULL", StoreError, "the disk is full; free some space and try again"),
    ("SQLITE_NOTADB", InvalidInputError, "not an SQLite database; use another file"),
    (
        "SQLITE_READONLY",
        StoreError,
        "read-only for you; change its permissions and those of its folder, or use another file",
    ),
    ("SQLITE_CANTOPEN", StoreError, "cannot be opened; check the permissions of the file and of its folder"),
    ("SQLITE_PERM", StoreError, "access denied; check the permissions of the file and of its folder"),
    ("SQLITE_IOERR", StoreError, "the file system failed ({said}); check the free space, quota and health of the disk"),
)


def _create_private(path: Path) -> None:
    """Create a new file that only its owner can read: it may contain password hashes and experiments of other users."""
    with suppress(OSError):  # it exists, or SQLite reports why it cannot be opened
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _absolute(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except RuntimeError as error:
        raise InvalidInputError(f"{path}: {error}; write the path without ~") from error


def _check_path(path: Path) -> None:
    try:
        if b"\0" in os.fsencode(path):
            raise ValueError("it contains a NUL character")
        if path.is_dir():
            raise InvalidInputError(f"{path}: this is a folder; use a file in it, such as {path / 'luthier.db'}")
        if not path.parent.is_dir():
            raise InvalidInputError(f"{path}: its folder does not exist; create it with: mkdir -p '{path.parent}'")
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{str(path)!r}: invalid file name ({error}); use another one") from error


def _choose_journal(connection: sqlite3.Connection, path: Path, lock_timeout_s: float) -> None:
    """Use a write-ahead log, or the slower rollback journal on file systems without shared memory."""
    system = _file_system_now(path)
    wanted = "delete" if system in NETWORK_FILE_SYSTEMS else "wal"
    # The mode of a file is stored in it: after its creation there is nothing to change.
    got = _journal(connection, "PRAGMA journal_mode")
    if got != wanted:
        # Changing the journal mode writes to the file.
        _check_version(connection, path)
        got = _retry_while_locked(lambda: _journal(connection, f"PRAGMA journal_mode = {wanted}"), lock_timeout_s)
    # With a write-ahead log, NORMAL cannot damage the file; a power failure may undo the last transactions.
    connection.execute(f"PRAGMA synchronous = {'NORMAL' if got == 'wal' else 'FULL'}")
    if got != "wal":
        _logger.warning(
            "%s: no write-ahead log on this file system (%s); writes are safe but slower", path, system or "unknown"
        )


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Raise if the store is from a newer luthier, before anything in the file is changed."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (VERSION_TABLE,)).fetchone():
        found = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()  # noqa: S608 a constant
        check_known(str(path), found and str(found[0]))


def _journal(connection: sqlite3.Connection, pragma: str) -> str:
    return str(connection.execute(pragma).fetchone()[0]).lower()


def _retry_while_locked(change: Callable[[], str], lock_timeout_s: float) -> str:
    """Change the journal mode and wait for other processes: SQLite itself does not wait if a deadlock is possible."""
    deadline = time.monotonic() + lock_timeout_s
    while True:
        try:
            return change()
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _file_system_now(path: Path) -> str | None:
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None  # not Linux: rely on the answer of SQLite
    return file_system(path.resolve(), mounts)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
