"""Runs commands as jobs of the batch systems that PSI/J knows: PBS, LSF, Flux, Cobalt."""

import logging
import math
import re
import shlex
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from luthier.errors import InvalidInputError, NotFoundError, UnavailableError
from luthier.runners.base import Runner, RunnerKind, RunnerSetup
from luthier.runners.checks import (
    checked_key,
    checked_slots,
    checked_timeout,
    checked_wait,
    require_free_slot,
)
from luthier.runners.command import Command, job_file
from luthier.runners.pace import Pace
from luthier.runners.polling import poll_watched
from luthier.runners.psij_folder import PsijFolder
from luthier.trial import BatchJob, Config, Execution, Job

if TYPE_CHECKING:
    import psij

logger = logging.getLogger(__name__)

_LOOK_EVERY_S = (0.05, 1.0)
_SURE_AFTER = 2
_LONGEST_SAYING = 200
_PLAIN = re.compile(r"[\w.@:/+-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Allocation:
    """What every job asks of the batch system; without `walltime_s` a little more time than the run's own limit."""

    queue: str = ""
    account: str = ""
    nodes: int = 1
    processes_per_node: int = 1
    walltime_s: float | None = None

    def __post_init__(self) -> None:
        for name in ("queue", "account"):
            if not _PLAIN.fullmatch(text := getattr(self, name)):
                raise InvalidInputError(
                    f"{name}: {text!r} is not allowed in a batch script; use letters, digits and . _ @ : / + -"
                )
        for name in ("nodes", "processes_per_node"):
            if not getattr(self, name) >= 1:
                raise InvalidInputError(f"{name}: {getattr(self, name)} is below 1; give 1 or more")
        if self.walltime_s is not None and not 60 <= self.walltime_s < math.inf:
            raise InvalidInputError(f"walltime: {self.walltime_s:g} s is less than a minute; give a minute or more")

    def limit_s(self, timeout_s: float | None) -> float:
        """How long a job may take; whole minutes, as some systems accept nothing shorter."""
        if self.walltime_s is not None:
            return self.walltime_s
        if timeout_s is None:
            raise InvalidInputError("walltime: a batch system ends jobs after some time; give a walltime or a timeout")
        return (math.ceil(timeout_s / 60) + 2) * 60.0  # the supervisor comes first, and has time to write


@dataclass(slots=True)
class _Watched:
    """A run under way.

    `job` is what PSI/J knows of it, None before it is asked (again). `doubts` counts how often PSI/J reported
    it as over while there was no record, `said` is that report; it is not asked again before `again_at`. `foreign` is
    what is reported of a folder that belongs to another configuration, and is not touched.
    """

    folder: PsijFolder
    timeout_s: float | None
    job: "psij.Job | None" = None
    cancel_sent: bool = False
    doubts: int = 0
    said: str = "PSI/J has no such job"
    again_at: float = 0.0
    foreign: Execution | None = None


class PsijRunner:
    """Submits the command that `render` makes from a configuration through one of PSI/J's executors.

    Each run has `folder/<key>/`, which the compute nodes must see under the same path. There the command runs under the
    same small supervisor as a local one: it takes the run on only once, so no key is ever executed twice, measures it
    without the time in the queue, and ends it `timeout_s` after its start. The record that it leaves decides. PSI/J
    reports a job that it does not find as completed, so its report counts only where there is no record, and only if it
    is repeated at least `ask_every_s` seconds later. Jobs outlive luthier and are adopted when their key is submitted
    again, by their id; where that was never written down, the job is submitted again and one of the two ends
    immediately.

    A first job that is refused is an `UnavailableError`. Once a job was accepted, others are tried again until they are
    accepted: all ask for the same, so the queue must be full or not reachable.
    """

    def __init__(
        self,
        render: Callable[[Config], Command],
        executor: str,
        folder: str | Path,
        slots: int = 1,
        *,
        allocation: Allocation | None = None,
        grace_s: float = 2.0,
        ask_every_s: int = 10,
    ) -> None:
        self._render = render
        self._name = checked_executor(executor)
        self._folder = Path(folder).absolute()
        if (path := str(self._folder)) != shlex.quote(path):
            raise InvalidInputError(f"{path!r}: PSI/J needs a folder without spaces and special signs in its path")
        self._slots = checked_slots(slots)
        self._allocation = allocation or Allocation()
        self._grace_s = checked_wait("grace_s", grace_s)
        checked_wait("ask_every_s", ask_every_s)
        self._ask_every_s = ask_every_s
        self._executor: psij.JobExecutor | None = None
        self._watched: dict[str, _Watched] = {}
        self._looking = Pace(*_LOOK_EVERY_S)
        self._is_accepted = False

    def submit(self, job: Job) -> None:
        """Submit the job, or adopt it if its key was submitted before, by any process."""
        if checked_key(job.key) in self._watched:
            return
        require_free_slot(self._watched, self._slots)
        executor = self._opened()
        run = _Watched(PsijFolder(self._folder / job.key), checked_timeout(job.timeout_s))
        try:
            if not run.folder.run.has_job():
                self._allocation.limit_s(run.timeout_s)
                run.folder.prepare(job_file(job, self._render(job.config), self._grace_s), self._name)
            run.foreign = run.folder.run.foreign(job.config)
            if run.foreign is None and run.folder.ending() is None:
                self._engage(run, executor)
        except OSError as error:
            raise UnavailableError(f"{run.folder.path}: cannot submit the run: {error.strerror}") from error
        except UnavailableError as error:
            if not self._is_accepted and run.folder.native_id() is None:
                raise
            logger.warning("%s; trying again until it works", error)
        self._watched[job.key] = run
        self._looking.hurry()

    def poll(self, many: Sequence[str], wait_s: float) -> Sequence[Execution]:
        """Return those of the named jobs that have ended; names that were not submitted here are ignored."""
        return poll_watched(self._watched, many, wait_s, self._endings, self._wait)

    def _endings(self, runs: Collection[_Watched]) -> Sequence[Execution]:
        now = time.monotonic()
        if self._looking.left_s(now) > 0:
            return []
        self._looking.done(now)
        try:
            ended = [execution for run in runs if (execution := self._look(run, now))]
        except OSError as error:
            raise UnavailableError(f"{self._folder}: cannot read how runs ended: {error.strerror}") from error
        if ended:
            self._looking.hurry()
        return ended

    def _wait(self, _runs: Collection[_Watched], left_s: float) -> None:
        time.sleep(min(left_s, max(0.0, self._looking.left_s(time.monotonic()))))

    def cancel(self, many: Sequence[str]) -> None:
        """Cancel the named jobs; `poll` asks PSI/J to do so until it has worked."""
        for key in many:
            if key in self._watched and self._watched[key].foreign is None:
                self._watched[key].folder.run.request_cancel()
                self._watched[key].again_at = 0.0
        self._looking.hurry()

    def started_at(self, key: str) -> float | None:
        """When the time of a run began to count, in seconds since the epoch; None while its job waits or prepares."""
        run = self._watched.get(key)
        return None if run is None or run.foreign is not None else run.folder.counted_from()

    def batch_job(self, key: str) -> BatchJob | None:
        """What PSI/J says about a job; a job that has begun since is shown as active."""
        run = self._watched.get(key)
        if run is None or run.foreign is not None:
            return None
        number, began_at = run.folder.native_id(), run.folder.run.claimed_at()
        if number is None:
            return BatchJob("", "NOT SUBMITTED", began_at=began_at)
        status = None if run.job is None else run.job.status
        if status is None or status.state.final:
            return BatchJob(number, "UNKNOWN", "" if status is None else run.said, began_at)
        return BatchJob(number, "ACTIVE" if began_at is not None else status.state.name, status.message or "", began_at)

    def _look(self, run: _Watched, now: float) -> Execution | None:
        """How the run ended, None while that is unknown; from time to time PSI/J is asked."""
        if (execution := run.foreign or _numbered(run, run.folder.ending())) is not None:
            return execution
        if now < run.again_at:
            return None
        run.again_at = now + self._ask_every_s
        status = None if run.job is None else run.job.status
        is_there = status is not None and not status.state.final
        is_off = run.folder.run.is_cancelled() and (run.cancel_sent or not is_there)
        if (is_off or run.doubts >= _SURE_AFTER) and not run.folder.run.is_supervised():
            return _numbered(run, run.folder.close(run.said))
        if status is None:
            self._try_again(run)
        elif status.state.final:
            run.said = _said(status)
            run.doubts += 1
            run.job = None
        else:
            if status.state.name != "NEW":  # in which it is until PSI/J has asked about it
                run.doubts = 0
            _note_id(run)
            self._call_off(run)
        return None

    def _try_again(self, run: _Watched) -> None:
        try:
            self._engage(run, self._opened())
        except UnavailableError as error:
            logger.info("%s", error)
            run.doubts += run.folder.native_id() is not None

    def _engage(self, run: _Watched, executor: "psij.JobExecutor") -> None:
        """Have PSI/J submit the job, or follow the one that was submitted before."""
        import psij

        native_id = run.folder.native_id()
        job = psij.Job(self._spec(run))
        with _in_one_line(f"psij:{self._name}"):
            if native_id is None:
                executor.submit(job)
            else:
                executor.attach(job, native_id)
        run.job, run.cancel_sent, self._is_accepted = job, False, True
        _note_id(run)

    def _call_off(self, run: _Watched) -> None:
        """Have PSI/J cancel a job that luthier wants stopped."""
        if run.cancel_sent or run.job is None or not run.folder.run.is_cancelled():
            return
        try:
            with _in_one_line(f"psij:{self._name}"):
                run.job.cancel()
            run.cancel_sent = True
        except UnavailableError as error:
            logger.info("%s", error)

    def _opened(self) -> "psij.JobExecutor":
        if self._executor is None:
            from psij import JobExecutor
            from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig

            config = BatchSchedulerExecutorConfig(
                work_directory=self._folder / ".psij",
                queue_polling_interval=self._ask_every_s,
                initial_queue_polling_delay=self._ask_every_s,
                queue_polling_error_threshold=sys.maxsize,  # by default an answer that cannot be read fails all jobs
            )
            with _in_one_line(f"psij:{self._name}"):
                self._executor = JobExecutor.get_instance(self._name, config=config)
        return self._executor

    def _spec(self, run: _Watched) -> "psij.JobSpec":
        import psij

        wanted = self._allocation
        resources = psij.ResourceSpecV1(
            node_count=wanted.nodes, process_count=wanted.nodes * wanted.processes_per_node, cpu_cores_per_process=1
        )
        attributes = psij.JobAttributes(
            duration=timedelta(seconds=wanted.limit_s(run.timeout_s)),
            queue_name=wanted.queue or None,
            account=wanted.account or None,
        )
        arguments = [str(run.folder.path / "batch")]
        return psij.JobSpec("/bin/sh", arguments, resources=resources, attributes=attributes)


def _note_id(run: _Watched) -> None:
    """Write down which job was submitted, once it is known: Flux reports it later than others."""
    if run.job is not None and run.job.native_id is not None and run.folder.native_id() is None:
        run.folder.note_id(run.job.native_id)


def _numbered(run: _Watched, execution: Execution | None) -> Execution | None:
    """How a run ended, with the id of its job."""
    return None if execution is None else replace(execution, batch_job=run.folder.native_id())


def checked_executor(name: str) -> str:
    """Return `name` if PSI/J is installed and has an executor of that name."""
    theirs = logging.getLogger("psij")
    if theirs.level == logging.NOTSET:
        theirs.setLevel(logging.ERROR)  # a queue that it cannot read is a traceback every few seconds
        # Its only error, of a process that is gone already, cannot be formatted: a traceback too.
        logging.getLogger("psij.executors.local").setLevel(logging.CRITICAL)
    try:
        from psij import JobExecutor
    except ImportError:
        raise NotFoundError("psij: the package is not installed; pip install 'luthier[psij]'") from None
    names = JobExecutor.get_executor_names()
    if name not in names:
        raise NotFoundError(f"psij:{name}: PSI/J has no such executor; known: {', '.join(sorted(names))}")
    return name


@contextmanager
def _in_one_line(what: str) -> Iterator[None]:
    """Turn any error into one line: executors raise what their libraries raise."""
    try:
        yield
    except Exception as error:
        reason = "; ".join(line.strip() for line in str(error.__cause__ or error).splitlines() if line.strip())
        raise UnavailableError(f"{what}: {reason or type(error).__name__}") from error


def _said(status: "psij.JobStatus") -> str:
    reason = (status.message or "").strip().partition("\n")[0][:_LONGEST_SAYING]
    return f"PSI/J says {status.state.name}" + (f": {reason}" if reason else "")


def _make(setup: RunnerSetup, executor: str) -> Runner:
    return PsijRunner(setup.command, executor, setup.folder, setup.slots, allocation=setup.allocation)


def _check(executor: str) -> None:
    if not executor:
        raise InvalidInputError("psij: the executor is missing; write for example psij:pbs")
    if checked_executor(executor) == "local":
        raise InvalidInputError("psij:local cannot find runs again after a restart of luthier; write local")


PSIJ = RunnerKind(_make, _check, is_local=False, takes_allocation=True)
"""Submits commands through one of PSI/J's executors, which is the argument."""
