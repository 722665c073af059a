"""What Slurm starts for a run, in place of the user's script: `python -I -S -B slurm_supervisor.py FOLDER`.

The supervisor of local runs is a child of this process, and the script is a child of that. For Slurm, this process
takes the place of the script, so that the script runs as with plain sbatch: it gives it the environment that Slurm
made, passes on the signals that Slurm sends to it alone, copies the output to the files that the script asked for, and
ends as the script did.

Slurm sends a signal to the batch process alone (`--signal=B:USR1@60`, `scancel --batch`), to its process group
(`scancel --full`), or to every process of the job (`scancel`, a time limit); only in the last case the script gets it
without help. Two witnesses, processes that do nothing else, tell the three cases apart.
"""
# ruff: noqa: PTH105, PTH108, PTH109, PTH118, PTH120, PTH123, PTH211
# pathlib or contextlib would double the time to start.

from __future__ import annotations

import os
import select
import sys
import time

TYPE_CHECKING = False  # as in typing, which costs 10 ms of processor time to import
if TYPE_CHECKING:
    import signal
    from typing import NoReturn

    from luthier.runners import supervisor
else:
    import _signal as signal

    sys.path.insert(0, os.path.dirname(__file__))  # Python's -I leaves it out
    import supervisor

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_KEPT = (  # what cannot be caught, what is about this process itself or its children, and what suspends a whole job
    *(signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGPIPE, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE),
    *(signal.SIGILL, signal.SIGTRAP, signal.SIGSYS, signal.SIGABRT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),
)
_NUMBERS = ("exit_code", "start_error")
_SIGNALS_APART_S = 0.25  # a busy node may take so long until a witness has reported
_COPY_EVERY_S = 1.0
_LONGEST_SLEEP_S = 3600.0
_CHUNK_BYTES = 1 << 20


class _Copy:
    """A file of the run, and the file of the user's that it is copied to while it grows."""

    def __init__(self, name: str, target: int) -> None:
        self._name = name
        self._target = target
        self._source = -1

    def go_on(self) -> None:
        """Copy what is new."""
        try:
            if self._source < 0:
                self._source = os.open(self._name, os.O_RDONLY)
            while chunk := os.read(self._source, _CHUNK_BYTES):
                while chunk:
                    chunk = chunk[os.write(self._target, chunk) :]
        except OSError:
            pass  # not there yet, or a full disk: the run has its own files


class _Witness:
    """A process that reports which signals it gets: in the group of this one, or in a session of its own."""

    def __init__(self, *, is_apart: bool) -> None:
        self.report, report_end = os.pipe()
        alive, self._alive_end = os.pipe()
        os.set_blocking(self.report, False)
        self._heard: dict[int, float] = {}
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._alive_end)
            _bear_witness(report_end, alive, is_apart=is_apart)
        os.close(report_end)
        os.close(alive)

    def listen(self) -> None:
        """Take in what was reported."""
        for number in _read(self.report):
            self._heard[number] = time.monotonic()

    def got(self, number: int, since: float) -> bool:
        """Whether it got the signal too."""
        return self._heard.get(number, -1.0) >= since - _SIGNALS_APART_S

    def forget(self, number: int) -> None:
        """Be ready for the next signal of this number."""
        self._heard.pop(number, None)

    def dismiss(self) -> None:
        """End it."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _bear_witness(report: int, alive: int, *, is_apart: bool) -> NoReturn:
    """Report signals until the process that wants to know them has ended."""
    try:
        if is_apart:
            os.setsid()
        wake = _listen()
        while alive not in select.select([wake, alive], [], [])[0]:
            os.write(report, _read(wake))
    finally:
        os._exit(0)


def _listen() -> int:
    """Turn signals into bytes in a pipe that can be waited on; return its end. They were blocked until now."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    for number in (*_passed_on(), signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    return readable


def _passed_on() -> list[int]:
    return [int(number) for number in signal.valid_signals() if number not in _KEPT]


def _read(pipe: int) -> bytes:
    try:
        return os.read(pipe, 4096)
    except BlockingIOError:
        return b""


class _Signals:
    """The signals that this process gets, and who else gets them."""

    def __init__(self) -> None:
        self._in_group, self._apart = _Witness(is_apart=False), _Witness(is_apart=True)
        self._wake = -1
        self._came: dict[int, float] = {}

    def listen(self) -> None:
        """Begin to catch signals, which were blocked until now."""
        self._wake = _listen()

    def wait(self, longest_s: float) -> None:
        """Wait for a signal, or the end of a child, and note it."""
        due = min(self._came.values(), default=None)
        left_s = longest_s if due is None else min(longest_s, due + _SIGNALS_APART_S - time.monotonic())
        select.select([self._wake, self._in_group.report, self._apart.report], [], [], max(0.0, left_s))
        for number in _read(self._wake):
            if number != signal.SIGCHLD:
                self._came.setdefault(number, time.monotonic())
        for witness in (self._in_group, self._apart):
            witness.listen()
        if any(number in _STOP_SIGNALS for number in self._came):
            os.close(os.open("told", os.O_WRONLY | os.O_CREAT, 0o666))

    def pass_on(self) -> None:
        """Send the script what it did not get by itself; a moment later, when the witnesses had time to report."""
        now = time.monotonic()
        for number, since in list(self._came.items()):
            by_all = self._apart.got(number, since)
            if by_all or now - since >= _SIGNALS_APART_S:
                del self._came[number]
                if not by_all:
                    _send(number, to_group=self._in_group.got(number, since))
                for witness in (self._in_group, self._apart):
                    witness.forget(number)

    def dismiss(self) -> None:
        """End the witnesses."""
        self._in_group.dismiss()
        self._apart.dismiss()


def _send(number: int, *, to_group: bool) -> None:
    """Signal the script, if it has begun and not ended."""
    try:
        with open("claimed") as file:
            noted = file.read().split("\n")[1]
        pid, _, start = noted.partition(" ")
        if start == supervisor.start_of(int(pid)):
            (os.killpg if to_group else os.kill)(int(pid), number)
    except (OSError, IndexError, ValueError):
        pass


def _take_environment() -> None:
    """Take over the environment that Slurm gave the shell that started this: a shell may drop or add variables."""
    try:
        with open("environ", "rb") as file:
            variables = file.read().split(b"\0")
        os.unlink("environ")
    except OSError:
        return
    pairs = [variable.partition(b"=") for variable in variables if b"=" in variable]
    if pairs:
        os.environb.clear()
        os.environb.update((name, value) for name, _, value in pairs if name)


def expanded(pattern: str, job_name: str) -> str:
    """The path that a filename pattern of sbatch means; see the section "filename pattern" of its manual."""
    if "\\" in pattern:
        return pattern.replace("\\", "")
    number, values = os.environ.get("SLURM_JOB_ID", ""), {"n": "0", "t": "0", "s": "batch", "%": "%", "x": job_name}
    values |= {"j": number, "J": number, "A": number, "u": os.environ.get("SLURM_JOB_USER", "")}
    values["N"] = os.uname().nodename.partition(".")[0]
    path, position = "", 0
    while position < len(pattern):
        end = position + 1
        while pattern[position] == "%" and end < len(pattern) and pattern[end].isdigit():
            end += 1
        value = values.get(pattern[end : end + 1]) if pattern[position] == "%" else None
        if value is None:
            path, position = path + pattern[position], position + 1
        else:
            width = int(pattern[position + 1 : end] or "0")
            path, position = path + (value.zfill(min(width, 10)) if value.isdigit() else value), end + 1
    return path


def _open_copies(started_in: bytes) -> list[_Copy]:
    """The files of the user's that the output is copied to, as the file `output` says."""
    try:
        with open("output", "rb") as file:
            job_name, mode, *patterns = os.fsdecode(file.read()).split("\0")
    except FileNotFoundError:
        return []
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    opened: dict[bytes, int] = {}
    copies = []
    for name, pattern in zip(("stdout", "stderr"), patterns):  # noqa: B905 (strict= is not in Python 3.9)
        path = os.path.join(started_in, os.fsencode(expanded(pattern, job_name)))
        if pattern and path != b"/dev/null":
            if path not in opened:
                opened[path] = os.open(path, flags | (0 if mode[:1] in ("a", "A") else os.O_TRUNC), 0o666)
            copies.append(_Copy(name, opened[path]))
    return copies


def _start(folder: str) -> int:
    """Start the supervisor; return its pid. Signals are blocked."""
    pid = os.fork()
    if pid == 0:
        try:
            for number in _passed_on():
                signal.signal(number, lambda *_: None)  # it is in the group of this process, and gets its signals
            supervisor.main(folder, is_told_too=True)
        finally:
            os._exit(0)
    return pid


def _end() -> NoReturn:
    """End as the script did, or as Slurm ends a job whose script cannot be started."""
    try:
        with open("result") as file:
            result = file.read()
        code, error = (int(result.partition(f'"{name}": ')[2].split(",")[0].strip("}\n")) for name in _NUMBERS)
        code = error or code
    except (OSError, ValueError):
        code = 1
    if code < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
        code = 128 - code
    os._exit(code)


def main(folder: str) -> None:
    """Run the job in `folder` as Slurm would have run its script."""
    started_in = os.getcwdb()
    os.chdir(folder)
    _take_environment()
    link = f"cwd.{os.getpid()}"
    os.symlink(started_in, link)
    os.replace(link, "cwd")
    try:
        copies = _open_copies(started_in)
    except OSError as error:
        sys.exit(f"cannot open {os.fsdecode(error.filename)}: {error.strerror}")
    signal.pthread_sigmask(signal.SIG_BLOCK, _passed_on())
    signals = _Signals()
    child = _start(folder)
    signals.listen()
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        signals.wait(_COPY_EVERY_S if copies else _LONGEST_SLEEP_S)
        signals.pass_on()
        for copy in copies:
            copy.go_on()
    for copy in copies:
        copy.go_on()
    signals.dismiss()
    _end()


if __name__ == "__main__":
    main(sys.argv[1])
