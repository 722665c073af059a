"""Runs commands on this machine."""

import contextlib
import logging
import math
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from luthier.errors import InvalidInputError, UnavailableError
from luthier.runners import supervisor
from luthier.runners.base import Runner, RunnerKind, RunnerSetup
from luthier.runners.checks import (
    checked_key,
    checked_slots,
    checked_timeout,
    checked_wait,
    require_free_slot,
    verbatim,
)
from luthier.runners.job_folder import JobFolder, Process, identity_of
from luthier.runners.polling import poll_watched
from luthier.runners.supervisor import JobFile
from luthier.trial import Config, Execution, Job, Lost

logger = logging.getLogger(__name__)

_LOOK_AGAIN_S = 0.02
_LONGEST_WAIT_S = 3600.0


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments, passed on verbatim and without a shell.

    `environment` is added to the variables that programs inherit from luthier; `cwd` is where the program runs,
    by default where luthier runs. With `is_marked` the program is a script that reports when its application begins
    (`spec/script.py`): its wall time counts from there, and it fails if it never does.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    is_marked: bool = False

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise InvalidInputError("command: it is empty; give a program and its arguments")
        for name in self.environment:
            if not name or "=" in name:
                raise InvalidInputError(
                    f"environment: {name!r} is not a valid name of a variable; remove the '=', or give a name"
                )


@dataclass(slots=True)
class _Watched:
    """A job under way: `child` is its supervisor if this process started it, `pidfd` a handle on it in any case.

    `foreign` is what is reported of a folder that belongs to another configuration, and is not touched, and of a run
    that another machine had begun.
    """

    folder: JobFolder
    foreign: Execution | None = None
    child: int | None = None
    pidfd: int | None = None
    cancel_wanted: bool = False
    cancel_sent: bool = False

    def forget_process(self) -> None:
        if self.pidfd is not None:
            os.close(self.pidfd)
        self.child = self.pidfd = None
        self.cancel_sent = False


class CommandRunner:
    """Runs the command that `render` makes from a configuration, each run in `folder/<key>/` with its output files.

    Every command has a small supervisor process of its own, in another session than luthier: a Ctrl-C in the terminal
    reaches neither of them, and when luthier dies the command goes on, still under its time limit. To submit the same
    key again, from this or a later process, adopts that run: no key is ever executed twice. A folder that was prepared
    for another configuration is not adopted: the run is reported as lost, and the folder stays as it is.

    After `timeout_s`, or when cancelled, the command's whole process group gets SIGTERM and, `grace_s` later or as soon
    as the command itself has ended, SIGKILL; a process that left the group (a daemon) escapes.

    Wall time is that of the command alone. User and system time cover the command and every descendant it waited for.
    Peak memory is that of its largest single process, and cannot tell less than the 10 MB or so of the supervisor.
    """

    def __init__(
        self, render: Callable[[Config], Command], folder: str | Path, slots: int = 1, *, grace_s: float = 2.0
    ) -> None:
        self._grace_s = checked_wait("grace_s", grace_s)
        self._render = render
        self._folder = Path(folder).absolute()
        self._slots = checked_slots(slots)
        self._watched: dict[str, _Watched] = {}

    def submit(self, job: Job) -> None:
        """Start the command, or adopt the run if its key was started before, by any process.

        A full disk or a folder that cannot be written is an `UnavailableError`; a command that does not exist is
        reported by `poll` as failed.
        """
        checked_key(job.key)
        if job.key in self._watched:
            return
        require_free_slot(self._watched, self._slots)
        watched = _Watched(JobFolder(self._folder / job.key))
        if job.from_elsewhere and not watched.folder.has_job():
            self._watched[job.key] = replace(watched, foreign=_lost_elsewhere(job.key))
            return
        try:
            if not watched.folder.has_job():
                watched.folder.prepare(job_file(job, self._render(job.config), self._grace_s))
            watched.foreign = watched.folder.foreign(job.config)
            if watched.foreign is None and not watched.folder.is_claimed():
                watched.child = _start_supervisor(watched.folder.path)
                watched.pidfd = _pidfd(watched.child)
        except OSError as error:
            raise UnavailableError(f"{watched.folder.path}: cannot start the run: {error.strerror}") from error
        self._watched[job.key] = watched

    def poll(self, many: Sequence[str], wait_s: float) -> Sequence[Execution]:
        """Return those of the named jobs that have ended; names that were not submitted here are ignored."""
        return poll_watched(self._watched, many, wait_s, self._endings, _wait)

    def _endings(self, jobs: Collection[_Watched]) -> Sequence[Execution]:
        try:
            return [execution for job in jobs if (execution := _look(job))]
        except OSError as error:
            raise UnavailableError(f"{self._folder}: cannot read how runs ended: {error.strerror}") from error

    def cancel(self, many: Sequence[str]) -> None:
        """Ask the supervisors of the named jobs to end them, also of adopted ones."""
        for key in many:
            job = self._watched.get(key)
            if job is not None and job.foreign is None:
                job.cancel_wanted = True
                _send_cancel(job)

    def started_at(self, key: str) -> float | None:
        """When the time of a job under way began to count, in seconds since the epoch; None before that."""
        job = self._watched.get(key)
        return None if job is None or job.foreign is not None else job.folder.started_at()


def _lost_elsewhere(key: str) -> Execution:
    return Execution(key, time.time(), 0.0, Lost("it was submitted on another machine, whose luthier died"))


def job_file(job: Job, command: Command, grace_s: float) -> JobFile:
    """What the supervisor of a command needs to know."""
    return JobFile(
        checked_timeout(job.timeout_s),
        grace_s,
        verbatim("cwd", [str(Path(command.cwd or ".").absolute())])[0],
        verbatim("command", command.argv),
        verbatim("environment", [f"{name}={value}" for name, value in command.environment.items()]),
        identity=identity_of(job.config),
        is_marked=command.is_marked,
    )


def _start_supervisor(folder: Path) -> int:
    # SIGTERM stays blocked until the supervisor is ready for it, so that a cancel right after the start is not lost.
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", supervisor.__file__, str(folder)],
        supervisor.inherited(os.environ),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=[signal.SIGTERM],
    )


def _pidfd(pid: int) -> int | None:
    """A handle that becomes readable when the process ends, where the system supports it."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _look(job: _Watched) -> Execution | None:
    """Return how the job ended, None while it runs."""
    if job.foreign is not None:
        return job.foreign
    if job.child is not None:
        if not _reaped(job.child):
            return None
        job.forget_process()
    if job.folder.is_supervised():  # adopted, or another's supervisor was faster than ours
        _follow(job)
        return None
    job.forget_process()
    if not job.folder.is_claimed() and not job.folder.withdraw():
        return None  # a supervisor that was slow to start, of a process that died, has it now
    execution = job.folder.execution()
    if isinstance(execution.problem, Lost):
        logger.info("run %s is lost: %s", execution.key, execution.problem.reason)
        with contextlib.suppress(OSError):
            job.folder.kill_orphan()
    return execution


def _reaped(child: int) -> bool:
    """Whether our child has ended; takes it off the process table."""
    try:
        return os.waitpid(child, os.WNOHANG)[0] == child
    except ChildProcessError:
        return True  # someone else in this process reaped it


def _supervisor_of(job: _Watched) -> Process | None:
    """The supervisor of an adopted job, if it is alive on this machine and has noted its pid."""
    noted = job.folder.processes()[:1]
    return noted[0] if noted and noted[0].is_alive() and job.folder.is_supervised() else None


def _follow(job: _Watched) -> None:
    """Find the supervisor of an adopted job, and stop it if that was requested."""
    if job.pidfd is None:
        process = _supervisor_of(job)
        pidfd = _pidfd(process.pid) if process is not None else None
        if pidfd is not None and process is not None and not process.is_alive():
            os.close(pidfd)  # it died in between; the pid may be another's by now
            pidfd = None
        job.pidfd = pidfd
    if job.cancel_wanted and not job.cancel_sent:
        _send_cancel(job)


def _send_cancel(job: _Watched) -> None:
    with contextlib.suppress(OSError):
        job.folder.request_cancel()
    pid = job.child
    if pid is None:
        process = _supervisor_of(job)
        pid = process.pid if process is not None else None
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        job.cancel_sent = True


def _wait(jobs: Collection[_Watched], left_s: float) -> None:
    """Sleep until one of the supervisors ends; only for a moment if the system cannot wait for one of them."""
    pidfds = [job.pidfd for job in jobs if job.pidfd is not None]
    if len(pidfds) < len(jobs) or any(job.cancel_wanted and not job.cancel_sent for job in jobs):
        left_s = min(left_s, _LOOK_AGAIN_S)
    if not pidfds:
        time.sleep(left_s)
        return
    poller = select.poll()
    for pidfd in pidfds:
        poller.register(pidfd, select.POLLIN)
    poller.poll(math.ceil(min(left_s, _LONGEST_WAIT_S) * 1000))


def _make(setup: RunnerSetup, _argument: str) -> Runner:
    return CommandRunner(setup.command, setup.folder, setup.slots)


LOCAL = RunnerKind(_make)
"""Runs commands on this machine."""
