"""What users can do with experiments: permission checks, the actions, and the audit log."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from luthier.engine.refinement import refined
from luthier.errors import InUseError, InvalidInputError, LuthierError, NotFoundError
from luthier.launch import LaunchRequest, Past, Requester, create, declared_by, discard_files, verify
from luthier.server.authentication import ForbiddenError, Principal
from luthier.server.text_checks import check_body
from luthier.spec.experiment import OF_ITS_HISTORY, Experiment
from luthier.spec.experiment_file import Declared
from luthier.spec.library import Library
from luthier.spec.yaml_lines import Document, parse_document
from luthier.store.base import ENDED, Record, RequestedBy, StopRequest
from luthier.store.ownership import is_alive, status_text
from luthier.store.server_store import Entry, ServerStore, shown_author

LONGEST_TEXT = 200_000
"""The maximum length of a YAML text: it is parsed in one or two seconds, and has room for a script of 128 KiB."""


STOP_WAIT_S = 20.0
"""How long a request to delete waits until the runs of the experiment are killed."""

SOURCE = "experiment.yaml"
"""The file name for the text of an experiment in error messages."""


RUN_TIMEOUT_S = 24 * 3600.0
"""The default time limit of a run."""


_STOP_ACTIONS: Mapping[StopRequest, str] = {"verify": "stop and verify", "drain": "stop", "kill": "stop now"}


class ConflictError(LuthierError):
    """Not possible in the current state; a retry may succeed later."""


@dataclass(frozen=True, slots=True)
class Launched:
    """An experiment in the queue, and what its user is told; not new if the key of the request was used before."""

    record: Record
    notes: tuple[str, ...]
    is_new: bool


@dataclass(frozen=True, slots=True)
class Operations:
    """The experiments of one store, as users with limited rights may see and change them.

    An experiment that a user may not see is reported as not found. `folder` is where runs are executed unless an
    experiment names another folder; if they are executed on this machine (`runs_here`), that one must exist.
    `run_timeout_s` is the time limit of runs whose experiment sets no `timeout`: a run that hangs would block others.
    """

    store: ServerStore
    folder: Path
    runs_here: bool = True
    clock: Callable[[], float] = time.time
    run_timeout_s: float | None = RUN_TIMEOUT_S

    def visible(self, who: Principal, experiment_id: int) -> Record:
        """An experiment that this user may see."""
        try:
            record = self.store.history.experiment(experiment_id)
        except NotFoundError:
            record = None
        if record is None or not who.may_see(
            record
        ):  # the same error for both, so that hidden experiments stay unknown
            raise NotFoundError(f"experiment {experiment_id} does not exist")
        return record

    def _all_visible(self, who: Principal) -> list[Record]:
        return [record for record in self.store.history.experiments() if who.may_see(record)]

    def check(self, text: str, who: Principal) -> Declared:
        """The experiment that a text describes; nothing is created, and no file is read.

        Only users who may launch it, and so run any program, learn whether its folder exists.
        """
        found = declared_by(parsed(text, SOURCE), self.folder, None, Library(self.store.components).get)
        cwd = found.experiment.cwd
        if (
            cwd is not None
            and cwd != str(self.folder)
            and self.runs_here
            and who.role != "viewer"
            and not _is_folder(cwd)
        ):
            raise InvalidInputError(f"{SOURCE}: experiment.folder: {cwd!r} does not exist on the server")
        return found

    def create(self, who: Principal, text: str, *, key: str | None = None, detail: str = "") -> Launched:
        """Queue the experiment that a text describes, unless the key was used before."""
        who.require("user")
        found = self.check(text, who)
        return self._launched(who, found, RequestedBy(who.name, text, key), detail)

    def clone(self, who: Principal, experiment_id: int, text: str | None = None) -> Launched:
        """Queue an experiment with the settings of another one, or with those of a text."""
        who.require("user")
        record, detail = self.visible(who, experiment_id), f"clone of experiment {experiment_id}"
        if text is not None:
            return self.create(who, text, detail=detail)
        _require_command(record)
        settings = {name: value for name, value in record.settings.items() if name not in OF_ITS_HISTORY}
        copied = Declared(record.name, Experiment.from_json(settings), notes=())
        return self._launched(who, copied, RequestedBy(who.name, record.source), detail)

    def stop(self, who: Principal, experiment_id: int, how: StopRequest = "drain") -> Record:
        """Ask an experiment to stop: active runs finish or are killed, and no new ones start.

        With `verify` only the search ends, and the best configuration so far is verified.
        """
        record = self._changeable(who, experiment_id)
        if status_text(record) not in ("queued", "running"):
            raise ConflictError(f"experiment {experiment_id} is not running: it is {status_text(record)}")
        if how == "verify":
            verify(experiment_id, self.store.history)
        else:
            self.store.history.request_stop(experiment_id, how)
        self._note(who, _STOP_ACTIONS[how], record)
        return self.store.history.experiment(experiment_id)

    def resume(self, who: Principal, experiment_id: int, budget: str | None = None) -> Record:
        """Let workers continue an experiment that was stopped, failed or was interrupted.

        With a new `budget`, `+30` for 30 more runs or a total, also one that has ended.
        """
        record = self._changeable(who, experiment_id)
        if record.status in ENDED and budget is None:
            raise ConflictError(
                f"experiment {experiment_id} {ENDED[record.status]}; continue it with a larger budget, or clone it"
            )
        _require_command(record)
        self._require_idle(record)
        if budget is not None:
            return self._refine(who, record, budget)
        if record.status != "queued":
            if not self.store.queue.enqueue(experiment_id, record.owner):
                raise InUseError(f"experiment {experiment_id} was just claimed by another process; try again")
            self._note(who, "resume", record)
        return self.store.history.experiment(experiment_id)

    def _refine(self, who: Principal, record: Record, budget: str) -> Record:
        if record.status == "queued":
            raise ConflictError(f"experiment {record.id} waits in the queue; stop it before its budget is changed")
        experiment = refined(self.store.history, record, budget)
        if not self.store.queue.enqueue_again(record, experiment.to_json()):
            raise InUseError(f"experiment {record.id} was just changed by another process; try again")
        self._note(who, f"resume with {experiment.budget} runs", record)
        return self.store.history.experiment(record.id)

    def share(self, who: Principal, experiment_id: int, *, shared: bool) -> Record:
        """Share an experiment with all users, or stop sharing it."""
        record = self._changeable(who, experiment_id)
        self.store.queue.share(experiment_id, shared=shared)
        self._note(who, "share" if shared else "unshare", record)
        return replace(record, shared=shared)

    def delete(self, who: Principal, experiment_id: int, *, stop: bool = False) -> None:
        """Delete an experiment, its runs and their files on this machine.

        With `stop`, a running experiment is stopped first and its runs are killed.
        """
        record = self._changeable(who, experiment_id)
        if stop:
            record = self._stopped(who, record)
        self._require_idle(record)
        runs = self.store.history.runs(experiment_id)
        if not self.store.queue.delete(experiment_id, record.owner):
            raise InUseError(f"experiment {experiment_id} was just claimed by another process; try again")
        self._note(who, "delete", record)
        discard_files(record.uid, runs)

    def _stopped(self, who: Principal, record: Record) -> Record:
        """Stop the experiment and wait until no process works on it; `InUseError` if that takes too long."""
        give_up_at = time.monotonic() + STOP_WAIT_S
        while status_text(record) in ("queued", "running"):
            if record.stop_requested != "kill":
                self.stop(who, record.id, "kill")
            elif time.monotonic() > give_up_at:
                raise InUseError(f"experiment {record.id} is being stopped; try again in a moment")
            else:
                time.sleep(0.1)
            record = self.store.history.experiment(record.id)
        return record

    def _launched(self, who: Principal, found: Declared, origin: RequestedBy, detail: str) -> Launched:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        experiment, history, now = found.experiment, self.store.history, self.clock()
        if experiment.timeout_s is None:
            experiment = replace(experiment, timeout_s=self.run_timeout_s)
        past = Past(history, lambda number: self.visible(who, number), lambda: self._all_visible(who))
        requester = Requester(self.store, origin, past, now)
        launch = create(LaunchRequest(experiment, found.name, requester=requester, notes=found.notes))
        is_new = launch.record.created_at == now
        if is_new:
            self._note(who, "launch", launch.record, detail)
        return Launched(launch.record, launch.notes if is_new else (), is_new)

    def _changeable(self, who: Principal, experiment_id: int) -> Record:
        record = self.visible(who, experiment_id)
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
        self.store.accounts.note(Entry(0, self.clock(), who.name, action, target, detail or record.name))


def parsed(text: str, source: str) -> Document:
    """The document in a text from a client; `source` is its name in error messages."""
    if len(text) > LONGEST_TEXT:
        raise InvalidInputError(f"{source}: the text has {len(text)} characters; the limit is {LONGEST_TEXT}")
    document = parse_document(text, source)
    try:
        check_body(document.values)  # YAML escapes can also produce lone surrogates
    except ValueError as error:
        raise InvalidInputError(f"{source}: {error}") from None
    return document


def _is_folder(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):  # a name that no file system accepts
        return False


def _require_command(record: Record) -> None:
    if record.settings.get("command") is None:
        raise InvalidInputError(
            f"experiment {record.id} tunes a Python function; only the program that defines it can run it"
        )
