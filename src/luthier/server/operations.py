"""What people ask of experiments from outside, whoever they are: checked, carried out, written to the audit log."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from luthier.errors import InUseError, InvalidInputError, LuthierError, NotFoundError
from luthier.launch.declared import declared_by
from luthier.launch.files import discard_files
from luthier.launch.start import with_earlier_best
from luthier.server.access import ForbiddenError, Principal
from luthier.server.texts import check_body
from luthier.spec.experiment_file import Declared
from luthier.spec.yaml_lines import Document, parse_document
from luthier.store.base import Json, Origin, Record, StopRequest
from luthier.store.ownership import is_alive, status_text
from luthier.store.server_store import Books, Entry, shown_author

LONGEST_TEXT = 200_000
"""A second or two of reading YAML; scripts that are run with it may have 128 KiB."""


STOP_WAIT_S = 20.0
"""How long a request to delete waits until the runs of an experiment are killed."""

SOURCE = "experiment.yaml"
"""What errors call the text of an experiment."""


RUN_TIMEOUT_S = 24 * 3600.0
"""How long a run may take where neither its experiment nor the site says anything."""


class NotNowError(LuthierError):
    """What was asked does not fit how things stand; it may at another time."""


@dataclass(frozen=True, slots=True)
class Operations:
    """The experiments of one store, for people who may see some of them.

    An experiment that somebody may not see is not there for them. `folder` is where runs are made. Runs of experiments
    that set no `timeout` may take `run_timeout_s`: nobody watches them, and one that hangs would block others.
    """

    books: Books
    folder: Path
    clock: Callable[[], float] = time.time
    run_timeout_s: float | None = RUN_TIMEOUT_S

    def seen(self, who: Principal, experiment_id: int) -> Record:
        """An experiment that this person may see."""
        try:
            record = self.books.history.experiment(experiment_id)
        except NotFoundError:
            record = None
        if record is None or not who.may_see(record):  # one answer for both: it does not tell what others have
            raise NotFoundError(f"there is no experiment {experiment_id}")
        return record

    def check(self, text: str) -> Declared:
        """The experiment that a text describes; nothing is created, and no file is read."""
        return declared_by(parsed(text, SOURCE), self.folder, None)

    def create(self, who: Principal, text: str, *, key: str | None = None, detail: str = "") -> tuple[Record, bool]:
        """Queue the experiment that a text describes, and tell whether it is a new one: not if the key was used."""
        who.require("user")
        found = self.check(text)
        history = self.books.history
        experiment = with_earlier_best(found.experiment, history, lambda number: self.seen(who, number))
        return self._launched(who, found.name, experiment.to_json(), Origin(who.name, text, key), detail)

    def clone(self, who: Principal, experiment_id: int, text: str | None = None) -> Record:
        """Queue an experiment with the settings of another one, or with what a text makes of them."""
        who.require("user")
        record, detail = self.seen(who, experiment_id), f"clone of experiment {experiment_id}"
        if text is not None:
            return self.create(who, text, detail=detail)[0]
        _require_command(record)
        return self._launched(who, record.name, record.settings, Origin(who.name, record.source), detail)[0]

    def stop(self, who: Principal, experiment_id: int, how: StopRequest = "drain") -> Record:
        """Ask an experiment to end: what is running finishes or is killed, nothing new begins."""
        record = self._changeable(who, experiment_id)
        if status_text(record) not in ("queued", "running"):
            raise NotNowError(f"experiment {experiment_id} is not running: it is {status_text(record)}")
        self.books.history.request_stop(experiment_id, how)
        self._note(who, "stop" if how == "drain" else "stop now", record)
        return self.books.history.experiment(experiment_id)

    def resume(self, who: Principal, experiment_id: int) -> Record:
        """Let workers go on with an experiment that was stopped, failed or was interrupted."""
        record = self._changeable(who, experiment_id)
        if record.status == "finished":
            raise NotNowError(f"experiment {experiment_id} is finished; clone it to run it again")
        _require_command(record)
        self._require_idle(record)
        if record.status != "queued":
            if not self.books.desk.enqueue(experiment_id, record.owner):
                raise InUseError(f"experiment {experiment_id} was taken up by another process this very moment")
            self._note(who, "resume", record)
        return self.books.history.experiment(experiment_id)

    def share(self, who: Principal, experiment_id: int, *, shared: bool) -> Record:
        """Let every user see an experiment, or no longer."""
        record = self._changeable(who, experiment_id)
        self.books.desk.share(experiment_id, shared=shared)
        self._note(who, "share" if shared else "unshare", record)
        return replace(record, shared=shared)

    def delete(self, who: Principal, experiment_id: int, *, stop: bool = False) -> None:
        """Forget an experiment and its runs, with the files they left on this machine.

        With `stop` one that is running is stopped first, and its runs are killed.
        """
        record = self._changeable(who, experiment_id)
        if stop:
            record = self._stopped(who, record)
        self._require_idle(record)
        runs = self.books.history.runs(experiment_id)
        if not self.books.desk.delete(experiment_id, record.owner):
            raise InUseError(f"experiment {experiment_id} was taken up by another process this very moment")
        self._note(who, "delete", record)
        discard_files(record.uid, runs)

    def _stopped(self, who: Principal, record: Record) -> Record:
        """The experiment once nobody works on it any more; `InUseError` if that takes too long."""
        give_up_at = time.monotonic() + STOP_WAIT_S
        while status_text(record) in ("queued", "running"):
            if record.stop_requested != "kill":
                self.stop(who, record.id, "kill")
            elif time.monotonic() > give_up_at:
                raise InUseError(f"experiment {record.id} is being stopped; try again in a moment")
            else:
                time.sleep(0.1)
            record = self.books.history.experiment(record.id)
        return record

    def _launched(
        self, who: Principal, name: str, settings: Mapping[str, Json], origin: Origin, detail: str
    ) -> tuple[Record, bool]:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if settings.get("timeout_s") is None:
            settings = {**settings, "timeout_s": self.run_timeout_s}
        now = self.clock()
        record = self.books.history.create(name, settings, now, origin)
        is_new = record.created_at == now
        if is_new:
            self._note(who, "launch", record, detail)
        return record, is_new

    def _changeable(self, who: Principal, experiment_id: int) -> Record:
        record = self.seen(who, experiment_id)
        if not who.may_change(record):
            raise ForbiddenError(
                f"experiment {experiment_id} belongs to {shown_author(record.author) or 'the command line'}"
            )
        return record

    def _require_idle(self, record: Record) -> None:
        if is_alive(record, self.clock()):
            raise InUseError(f"experiment {record.id} is running; stop it first")

    def _note(self, who: Principal, action: str, record: Record, detail: str = "") -> None:
        target = f"experiment {record.id}"
        self.books.accounts.note(Entry(0, self.clock(), who.name, action, target, detail or record.name))


def parsed(text: str, source: str) -> Document:
    """The document that a text from outside describes; `source` is what errors call it."""
    if len(text) > LONGEST_TEXT:
        raise InvalidInputError(f"{source}: it has {len(text)} characters; {LONGEST_TEXT} are the most")
    document = parse_document(text, source)
    try:
        check_body(document.values)  # YAML has escapes for half a character, too
    except ValueError as error:
        raise InvalidInputError(f"{source}: {error}") from None
    return document


def _require_command(record: Record) -> None:
    if record.settings.get("command") is None:
        raise InvalidInputError(f"experiment {record.id} tunes a Python function, which only its program has")
