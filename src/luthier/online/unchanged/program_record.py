"""What is kept of the tuning of a running program: an on-line session in the store, and a folder on this machine.

The folder holds the original files and the notes. It exists as long as the tuning has not ended, so that the same
command continues it after luthier was killed.
"""

import fcntl
import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from luthier.errors import InUseError, InvalidInputError, NotFoundError, StoreError
from luthier.folders import data_directory
from luthier.online.records import OnlineRecord, OnlineSessions
from luthier.online.session import OnlineSession
from luthier.online.session_view import SessionView
from luthier.online.unchanged.program_tuning import Note
from luthier.store.server_store import LOCAL_USER
from luthier.texts import shown
from luthier.trial import Config, Json, Sample

_LOG = logging.getLogger(__name__)

SHOW_EVERY_S = 0.5
BEAT_EVERY_S = 1.0

_MOST_NAMES = 1000


@dataclass(slots=True)
class ProgramRecord:
    """The record of one tuning; it is an `Evidence`."""

    sessions: OnlineSessions
    record: OnlineRecord
    folder: Path
    _lock: int
    _unsaved: list[Sample] = field(default_factory=list)
    _unshown: SessionView | None = None
    _shown_at: float = 0.0
    _seen_at: float = 0.0

    def samples(self) -> list[Sample]:
        """The samples that were kept."""
        return list(self.sessions.samples(self.record.id))

    def notes(self) -> list[Note]:
        """The notes that were kept; one that luthier was killed while writing is ignored."""
        return list(_notes(self.folder / "notes"))

    def keep(self, sample: Sample) -> None:
        """Write a sample to the store; if the store cannot be reached now, with the next one."""
        self._unsaved.append(sample)
        with suppress(StoreError):
            self._save()

    def note(self, note: Note) -> None:
        """Write a note to the folder."""
        line = json.dumps({**asdict(note), "config": dict(note.config)})
        with (self.folder / "notes").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def show(self, view: SessionView, now: float) -> None:
        """Write what people see to the store, at most twice a second."""
        self._unshown = view
        self._show(now)

    def is_stop_requested(self, now: float) -> bool:
        """Whether a user stopped or deleted the session; also tells the store that it is in use."""
        if now - self._seen_at < BEAT_EVERY_S:
            return False
        self._seen_at = now
        try:
            self._show(now)
            self.sessions.update(self.record.id, seen_at=now)
            return self.sessions.get(self.record.id).stop_requested
        except NotFoundError:
            return True
        except StoreError:
            return False

    def finish(self, view: SessionView, now: float, *, has_ended: bool) -> None:
        """Write what is left; if the tuning has ended, mark it so and delete the folder."""
        try:
            self._save()
            self.sessions.update(self.record.id, seen_at=now, view=view.to_json())
            if has_ended:
                self.sessions.request_stop(self.record.id)
        except NotFoundError:
            _LOG.warning("on-line session %s was deleted meanwhile", self.record.name)
        except StoreError as error:
            _LOG.warning("the end of on-line session %s could not be stored: %s", self.record.name, error)
        if has_ended:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.close()

    def close(self) -> None:
        """Let another process continue it."""
        os.close(self._lock)

    def _save(self) -> None:
        if self._unsaved:
            self.sessions.append(self.record.id, self._unsaved)
            self._unsaved.clear()

    def _show(self, now: float) -> None:
        if self._unshown is not None and now - self._shown_at >= SHOW_EVERY_S:
            with suppress(StoreError):
                self.sessions.update(self.record.id, seen_at=now, view=self._unshown.to_json())
                self._shown_at, self._unshown = now, None


def open_record(
    sessions: OnlineSessions, name: str, usual_name: str, session: OnlineSession, now: float
) -> ProgramRecord:
    """The record of a new tuning, or of one that did not end and has this name.

    Without a name it is `usual_name`, with a number if there was a tuning of that name which has ended.
    """
    settings = {"space": session.space.to_json(), **session.settings.to_json()}
    names = [name] if name else [usual_name, *(f"{usual_name}-{number}" for number in range(2, _MOST_NAMES))]
    for one in names:
        opened = _opened(sessions, one, settings, now)
        if isinstance(opened, ProgramRecord):
            return opened
        if name:
            raise InvalidInputError(f"--name {shown(name)}: {opened}; give another name")
    raise InvalidInputError(f"there are {_MOST_NAMES} tunings named {usual_name}; give another one with --name")


def _opened(sessions: OnlineSessions, name: str, settings: Mapping[str, Json], now: float) -> "ProgramRecord | str":
    """The record with this name, new or to be continued; or why it cannot be used."""
    record = sessions.create(LOCAL_USER, name, settings, now)
    folder = data_directory() / "running-programs" / record.uid
    has_samples = bool(sessions.samples(record.id, limit=1))
    if not folder.is_dir() and has_samples:
        return "this tuning has ended"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = _locked(folder / "lock", name)
    if record.settings == json.loads(json.dumps(settings)):
        return ProgramRecord(sessions, record, folder, lock)
    os.close(lock)
    if any(folder.glob("original-*")):
        raise InvalidInputError(
            f"on-line session {shown(name)} was killed, and has other parameters or settings; continue it with its own "
            "command, so that the original files are put back"
        )
    if has_samples:
        return "this tuning has other parameters or settings"
    sessions.delete(record.id)  # nothing was measured
    shutil.rmtree(folder)
    return _opened(sessions, name, settings, now)


def _locked(path: Path, name: str) -> int:
    """Lock a file until this process ends."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise InUseError(
            f"on-line session {shown(name)} is in use by another luthier process; wait until it ends"
        ) from None
    return descriptor


def _notes(path: Path) -> Iterator[Note]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        with suppress(ValueError, TypeError):
            kept = json.loads(line)
            yield Note(**{**kept, "config": Config(kept["config"])})
