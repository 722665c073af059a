"""Samples that the store does not have yet, in a file: what was acknowledged survives the death of the service."""

import fcntl
import hashlib
import json
import logging
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from luthier.errors import NotFoundError, UnavailableError
from luthier.online.records import OnlineSessions
from luthier.trial import Config, Sample

_log = logging.getLogger(__name__)
_SUFFIX = ".journal"


class Journal:
    """Appends samples to a file, one write call each, and moves finished files to the store.

    One folder belongs to one store and is locked while it is open. `rotate` begins a new file; `store_files` writes all
    older files to the store and removes each when the store has it. Both are idempotent: the store ignores samples
    that it has already.
    """

    def __init__(self, folder: Path) -> None:
        self.identity = ""
        self._folder = folder
        self._lock: int | None = None
        self._file: int | None = None
        self._size = 0
        self._number = 0

    def open(self) -> None:
        """Lock the folder and begin a file; `identity` is then the same for every service with this folder."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.identity = _identity(lock)
            except BaseException:
                os.close(lock)
                raise
            self._lock = lock
            self._number = max((int(path.stem) for path in self._files()), default=0)
            self._begin()
        except BlockingIOError:
            raise UnavailableError("another on-line service uses this store; stop it, or use another --store") from None
        except OSError as error:
            raise UnavailableError(f"{self._folder}: cannot be used: {error.strerror}; make it writable") from None

    def write(self, lines: bytes) -> None:
        """Append whole lines; they survive the death of this process. Raise `OSError` with nothing appended."""
        if self._file is None:
            self._begin()
        file = self._file
        assert file is not None  # noqa: S101 - `_begin` opens it or raises
        try:
            written = os.write(file, lines)
        except OSError:
            os.ftruncate(file, self._size)
            raise
        if written != len(lines):
            os.ftruncate(file, self._size)
            raise OSError(28, "No space left on device")
        self._size += written

    def rotate(self) -> bool:
        """Begin a new file if this one has samples; whether there are older files."""
        if self._size:
            self._end()
            self._begin()
        return any(int(path.stem) < self._number for path in self._files())

    def store_files(self, store: OnlineSessions) -> None:
        """Write the older files to the store, in order, and remove them. May run in another thread than `write`."""
        for path in sorted(self._files(), key=lambda path: int(path.stem)):
            if int(path.stem) < self._number:
                _store(path, store)
                path.unlink()

    def close(self) -> None:
        """End the file and unlock the folder."""
        self._end()
        if not self._size:
            (self._folder / f"{self._number}{_SUFFIX}").unlink(missing_ok=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _begin(self) -> None:
        path = self._folder / f"{self._number + 1}{_SUFFIX}"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._number, self._size = self._number + 1, 0

    def _end(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _files(self) -> list[Path]:
        return [path for path in self._folder.glob(f"*{_SUFFIX}") if path.stem.isascii() and path.stem.isdigit()]


def _identity(file: int) -> str:
    """A random text that is kept in the file."""
    known = os.pread(file, 32, 0).decode("ascii", "replace")
    if len(known) == len(uuid.uuid4().hex):
        return known
    made = uuid.uuid4().hex
    os.pwrite(file, made.encode(), 0)
    return made


def journal_folder(base: Path, store_name: str) -> Path:
    """The folder for the journal of one store."""
    return base / "online" / hashlib.sha256(store_name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def sample_line(session_text: str, sample: Sample, client_text: str, config_text: str) -> bytes:
    """The line of one sample; texts that repeat are given as JSON, because this is written for every report."""
    value = "null" if sample.value is None else repr(sample.value)
    return (
        f'{{{session_text},"number":{sample.number},"search":{sample.search},"client":{client_text},'
        f'"config":{config_text},"value":{value},"at":{sample.at!r}}}\n'
    ).encode()


def session_text(session_id: int, uid: str) -> str:
    """The part of a sample's line that says which session it belongs to."""
    return f'"session":{session_id},"uid":{json.dumps(uid)}'


def read_samples(path: Path) -> Iterator[tuple[int, str, Sample]]:
    """The samples of a file with the number and the uid of their session; damaged lines are left out."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                given = json.loads(line)
                sample = Sample(
                    given["number"],
                    given["search"],
                    given["client"],
                    Config(given["config"]),
                    given["value"],
                    given["at"],
                )
                yield int(given["session"]), str(given["uid"]), sample
            except (ValueError, KeyError, TypeError, RecursionError):
                _log.warning("%s, line %d: is damaged and left out", path, number)


def _store(path: Path, store: OnlineSessions) -> None:
    """Write the samples of one file to the store; those of deleted sessions are dropped."""
    by_session: dict[tuple[int, str], list[Sample]] = {}
    for session_id, uid, sample in read_samples(path):
        by_session.setdefault((session_id, uid), []).append(sample)
    for (session_id, uid), samples in by_session.items():
        try:
            if store.get(session_id).uid == uid:
                store.append(session_id, samples)
        except NotFoundError:
            continue
