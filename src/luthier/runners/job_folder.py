"""The folder of one run of a command: what its supervisor reads and writes there, seen from luthier's side."""

import fcntl
import hashlib
import json
import math
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from types import MappingProxyType

from luthier.runners import supervisor
from luthier.runners.checks import not_adopted
from luthier.runners.error_message import error_message
from luthier.runners.supervisor import JobFile, decoded, start_of
from luthier.trial import Config, Execution, Failed, Lost, Problem, Pruned, TimedOut, Value

NO_FILES: Mapping[str, bytes] = MappingProxyType({})
_STAGES = {
    supervisor.OPENING_OUTPUT: " (opening its output files)",
    supervisor.OPENING_MARK: " (opening the pipe that tells when the application begins)",
}
_NEVER_BEGAN = "the script ended before its application began; look for exit or exec in the header"
_METRICS = ("wall_s", "user_s", "system_s", "peak_memory_bytes", "exit_code")
_USAGE = (
    *("wall_s", "user_s", "system_s", "peak_memory_bytes", "minor_page_faults", "major_page_faults"),
    *("voluntary_switches", "involuntary_switches", "blocks_read", "blocks_written"),
)


@dataclass(frozen=True, slots=True)
class Process:
    """A process as noted in a file; `start` distinguishes it from a later one with the same pid."""

    pid: int
    start: str

    def is_alive(self) -> bool:
        """Whether this very process is still there."""
        return start_of(self.pid) == self.start


def identity_of(config: Config) -> bytes:
    """Identifies a configuration, independent of the command that a version of luthier makes from it."""
    plain = {name: _plain(value) for name, value in config.items()}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest().encode()


def _plain(value: Value) -> Value:
    """The value as JSON writes it: a store may return 1.0 as 1, and NumPy has its own types of numbers."""
    if isinstance(value, str | bool):
        return value
    return int(value) if isinstance(value, Integral) or float(value).is_integer() else float(value)


class JobFolder:
    """One run's folder; nothing here waits."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def prepare(self, job: JobFile, files: Mapping[str, bytes] = NO_FILES) -> None:
        """Make the folder and put `files` there, then the job, whole or not at all: it is valid once `job` exists."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)  # its output may be private
        for name, content in files.items():
            (self.path / name).write_bytes(content)
            (self.path / name).chmod(0o700)  # some of them are scripts
        if job.is_marked:
            with suppress(FileExistsError):
                os.mkfifo(self.path / supervisor.MARK, 0o600)
        draft = self.path / f"job.{os.getpid()}"
        draft.write_bytes(job.encoded())
        draft.rename(self.path / "job")

    def has_job(self) -> bool:
        """Whether this run was prepared before."""
        return (self.path / "job").exists()

    def foreign(self, config: Config) -> Execution | None:
        """What to report if this run must not be adopted for a configuration; None if it may."""
        job = self._job()
        if job is not None and job.identity == identity_of(config):
            return None
        whose = "an unknown version of luthier" if job is None else "another configuration"
        return Execution(self.path.name, time.time(), 0.0, not_adopted(str(self.path), whose))

    def is_claimed(self) -> bool:
        """Whether a supervisor has claimed this run, dead or alive."""
        return (self.path / "claimed").exists()

    def withdraw(self) -> bool:
        """Prevent that a supervisor claims this run later; False if one has claimed it already."""
        try:
            os.close(os.open(self.path / "claimed", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        except FileExistsError:
            return False
        except FileNotFoundError:
            pass  # somebody removed the folder
        return True

    def is_supervised(self) -> bool:
        """Whether a supervisor is running: it holds the lock until it ends."""
        try:
            descriptor = os.open(self.path / "lock", os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def processes(self) -> list[Process]:
        """The supervisor and the command it started, as far as they have been noted."""
        try:
            lines = (self.path / "claimed").read_text().split("\n")[:-1]
        except FileNotFoundError:
            return []
        return [Process(int(pid), start) for pid, start in (line.split(" ") for line in lines)]

    def started_at(self) -> float | None:
        """When the time that counts began, of a command that was noted by its supervisor; None before that."""
        return None if len(self.processes()) < 2 else self.counted_from()

    def counted_from(self) -> float | None:
        """When the time that counts began of a run that was claimed; None while a script prepares its application."""
        path = self.path / supervisor.MARK
        try:
            return None if path.is_fifo() else float(path.read_text())
        except FileNotFoundError:
            return self._claimed_at()
        except ValueError:
            return None

    def request_cancel(self) -> None:
        """Note that it is luthier that stops this run.

        A job of a batch system that has not begun will then not begin.
        """
        with suppress(FileNotFoundError):
            (self.path / "cancel").touch()

    def is_cancelled(self) -> bool:
        """Whether luthier wanted this run stopped."""
        return (self.path / "cancel").exists()

    def claimed_at(self) -> float | None:
        """When a supervisor claimed this run; None before that."""
        try:
            return (self.path / "claimed").stat().st_mtime
        except FileNotFoundError:
            return None

    def kill_orphan(self) -> None:
        """End the command whose supervisor died, before it disturbs later runs."""
        for command in self.processes()[1:]:
            if command.start and command.is_alive():
                os.killpg(command.pid, signal.SIGKILL)

    def execution(self) -> Execution:
        """How the run ended; only valid when no supervisor is running."""
        key, logs = self.path.name, str(self.path)
        numbers = self._result()
        if isinstance(numbers, Lost):
            return Execution(key, self._claimed_at(), 0.0, numbers, logs=logs)
        metrics = {name: float(numbers[name]) for name in _METRICS if name in numbers}
        duration_s = float(numbers.get("duration_s", 0.0))
        return Execution(key, numbers["started_at"], duration_s, self._problem(numbers), metrics, logs=logs)

    def usage(self) -> Mapping[str, float]:
        """The resources that the command and its descendants used, as far as its supervisor noted them."""
        numbers = self._result()
        return {} if isinstance(numbers, Lost) else {name: numbers[name] for name in _USAGE if name in numbers}

    def _job(self) -> JobFile | None:
        """The job; None if its file is damaged or was written by another version."""
        try:
            return decoded((self.path / "job").read_bytes())
        except ValueError:
            return None

    def _claimed_at(self) -> float:
        for path in (self.path / "claimed", self.path):
            if path.exists():
                return path.stat().st_mtime
        return 0.0

    def _result(self) -> Mapping[str, float] | Lost:
        try:
            content = json.loads((self.path / "result").read_bytes())
        except FileNotFoundError:
            if not self.path.exists():
                return Lost(f"the folder of this run is gone: {self.path}")
            when = "" if self.processes() else " before it could start the command"
            return Lost(f"the supervisor of this run died{when}")
        except ValueError:
            content = None
        if not isinstance(content, dict) or not {"started_at", "stopped"} <= content.keys():
            return Lost(f"the result of this run is damaged: {self.path / 'result'}")
        if not all(isinstance(number, int | float) and math.isfinite(number) for number in content.values()):
            return Lost(f"the result of this run is damaged: {self.path / 'result'}")
        return content

    def _problem(self, numbers: Mapping[str, float]) -> Problem | None:
        if numbers["stopped"] == supervisor.CANCELLED:
            if self.is_cancelled():
                return Pruned("cancelled")
            return Lost("the supervisor of this run was stopped, but not by luthier")
        job = self._job()
        if job is None:
            return Lost(f"the job file of this run is damaged: {self.path / 'job'}")
        if numbers["stopped"] == supervisor.TIMED_OUT:
            return TimedOut(f"took longer than {job.timeout_s:g} s")
        if numbers.get("start_error"):
            return Failed(_start_error(job, int(numbers["start_stage"]), int(numbers["start_error"])))
        exit_code = int(numbers.get("exit_code", 0))
        if exit_code < 0:
            return Failed(f"killed by {_signal_name(-exit_code)}")
        if exit_code > 0:
            message = error_message(self.path / "stderr")
            when = " before the application began" if job.is_marked and "wall_s" not in numbers else ""
            return Failed(f"exit code {exit_code}{when}" + (f": {message}" if message else ""))
        return Failed(_NEVER_BEGAN) if job.is_marked and "wall_s" not in numbers else None


def note_in(path: Path) -> str | None:
    """The text of a small file, without its line end; None if it does not exist."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None


def write_note(path: Path, text: str) -> None:
    """Write a small file, whole or not at all; if somebody removed the folder, the run will be reported as lost."""
    draft = path.with_name(f"{path.name}.new")
    with suppress(FileNotFoundError):
        draft.write_text(f"{text}\n", encoding="utf-8")
        draft.rename(path)


def _start_error(job: JobFile, stage: int, error: int) -> str:
    program = os.fsdecode(job.argv[0])
    where = f" in {os.fsdecode(job.cwd)!r}" if stage == supervisor.CHANGING_FOLDER else ""
    return f"cannot start {program!r}{where}{_STAGES.get(stage, '')}: {os.strerror(error)}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
