"""Runs one command to its end, whatever becomes of luthier: `python -I -S supervisor.py FOLDER`.

A script of its own with few and light imports, because one is started for every run. Everything it needs stands in the
file `job` of the folder, everything it learns goes to `claimed`, `stdout`, `stderr` and, last, `result`. While it lives
it holds an exclusive lock on `lock`; so a folder that is claimed, without lock and without result had its supervisor
killed. The first process to create `claimed` runs the command; any other goes away.
"""
# ruff: noqa: PTH104, PTH110, PTH118, PTH123, PTH208, S606
# pathlib would double the time to start; to run a program without a shell is the purpose of this file.

from __future__ import annotations

import fcntl
import os
import select
import sys
import time

TYPE_CHECKING = False  # as in typing, which costs 10 ms of processor time to import
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal  # the part in C; `signal` loads `enum` for names and costs another 10 ms

VERSION = b"luthier job 1"
TIMED_OUT, CANCELLED = 1, 2
CHANGING_FOLDER, OPENING_OUTPUT, EXECUTING = 1, 2, 3

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_RETRY_S = 0.002
_LONGEST_SLEEP_S = 3600.0


class JobFile:
    """What stands in `job`: everything needed to run the command, as bytes the system takes verbatim.

    No dataclass: to import that module takes longer than everything else here.
    """

    def __init__(
        self, timeout_s: float | None, grace_s: float, cwd: bytes, argv: list[bytes], environment: list[bytes]
    ) -> None:
        self.timeout_s = timeout_s
        self.grace_s = grace_s
        self.cwd = cwd
        self.argv = argv
        self.environment = environment

    def encoded(self) -> bytes:
        """The fields with NUL between them: the one byte that no argument, variable or path can hold."""
        timeout = b"" if self.timeout_s is None else repr(self.timeout_s).encode()
        head = [VERSION, timeout, repr(self.grace_s).encode(), self.cwd, str(len(self.argv)).encode()]
        return b"\0".join([*head, *self.argv, *self.environment])


def decoded(content: bytes) -> JobFile:
    """Read back what `JobFile.encoded` wrote; a ValueError means that it is something else."""
    fields = content.split(b"\0")
    if len(fields) < 5 or fields[0] != VERSION:
        raise ValueError("not a job file")
    argv_end = 5 + int(fields[4])
    timeout_s = float(fields[1]) if fields[1] else None
    return JobFile(timeout_s, float(fields[2]), fields[3], fields[5:argv_end], fields[argv_end:])


def start_of(pid: int) -> str:
    """When a process started, in the kernel's own ticks, or "" if there is no telling: tells reused pids apart."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


def _claim() -> bool:
    """Become the one supervisor of this folder; the lock stays held until this process ends."""
    lock = os.open("lock", os.O_RDWR | os.O_CREAT, 0o666)
    while not os.path.exists("claimed"):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_RETRY_S)  # another supervisor is about to claim, or somebody looks whether one lives
            continue
        try:
            claimed = os.open("claimed", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            return False
        os.write(claimed, f"{os.getpid()} {start_of(os.getpid())}\n".encode())
        os.close(claimed)
        return True
    return False


def _listen() -> int:
    """Turn the ends of children and requests to stop into bytes in a pipe that can be waited on; return its end."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, *_STOP_SIGNALS):
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    return readable


def _stop_requested(wake: int) -> bool:
    try:
        return any(number in _STOP_SIGNALS for number in os.read(wake, 4096))
    except BlockingIOError:
        return False


def _execute(job: JobFile) -> NoReturn:
    """Replace this process by the command, looked up in the PATH the command itself will see."""
    environment = dict(os.environb)
    environment.update(pair.partition(b"=")[::2] for pair in job.environment)
    program = job.argv[0]
    if b"/" in program:
        os.execve(program, job.argv, environment)
    error: OSError = FileNotFoundError(2, os.strerror(2))
    for folder in environment.get(b"PATH", b"/usr/local/bin:/usr/bin:/bin").split(b":"):
        try:
            os.execve(os.path.join(folder or b".", program), job.argv, environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as reason:
            error = reason  # there is one, but it cannot be run: worth more than "no such file"
    raise error


def _become(job: JobFile, report: int) -> NoReturn:
    """In the forked child: become the command, or say through `report` what went wrong."""
    stage = OPENING_OUTPUT
    try:
        os.setsid()
        for number in range(1, signal.NSIG):
            if number not in (signal.SIGKILL, signal.SIGSTOP) and signal.getsignal(number) not in (
                signal.SIG_DFL,
                None,
            ):
                signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666), descriptor)
        stage = CHANGING_FOLDER
        os.chdir(job.cwd)
        stage = EXECUTING
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        _execute(job)
    except OSError as error:
        os.write(report, f"{stage} {error.errno}".encode())
    finally:
        os._exit(127)


def _send(pid: int, number: int) -> None:
    """Signal the command and all of its group; before the child has made its own group, the child alone."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        os.kill(pid, number)  # not reaped yet, so the pid is still ours
    except PermissionError:
        pass  # the group is left with zombies or with processes that changed their user


def _watch(pid: int, wake: int, job: JobFile, began: float) -> int:
    """Wait for the command to end; return whether it had to be stopped, and why. It is not reaped yet."""
    stopped = 0
    term_at = None if job.timeout_s is None else began + job.timeout_s
    kill_at = None
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        now = time.monotonic()
        if term_at is not None and now >= term_at:
            stopped = stopped or TIMED_OUT
            _send(pid, signal.SIGTERM)
            term_at, kill_at = None, now + job.grace_s
        if kill_at is not None and now >= kill_at:
            _send(pid, signal.SIGKILL)
            kill_at = None
        next_at = min((at for at in (term_at, kill_at) if at is not None), default=now + _LONGEST_SLEEP_S)
        select.select([wake], [], [], min(max(0.0, next_at - now), _LONGEST_SLEEP_S))
        if _stop_requested(wake) and not stopped:
            stopped = CANCELLED
            term_at = time.monotonic()
    if stopped:
        _send(pid, signal.SIGKILL)  # what the command started and left behind
    return stopped


def _run(job: JobFile, wake: int) -> dict[str, float]:
    """Run the command and return the numbers that tell how it went."""
    started_at = time.time()
    if _stop_requested(wake):
        return {"started_at": started_at, "stopped": CANCELLED}
    report, report_end = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)  # until the child has default handlers
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _become(job, report_end)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.close(report_end)
    _note_command(pid)
    stopped = _watch(pid, wake, job, began)
    wall_s = time.monotonic() - began
    _, status, usage = os.wait4(pid, 0)
    stage, _, error = os.read(report, 64).partition(b" ")
    return {
        "started_at": started_at,
        "stopped": stopped,
        "wall_s": wall_s,
        "user_s": usage.ru_utime,
        "system_s": usage.ru_stime,
        "peak_memory_bytes": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        "exit_code": os.waitstatus_to_exitcode(status),
        "start_stage": int(stage or 0),
        "start_error": int(error or 0),
    }


def _note_command(pid: int) -> None:
    """Let whoever finds this supervisor dead know which command it left behind."""
    try:
        claimed = os.open("claimed", os.O_WRONLY | os.O_APPEND)
        os.write(claimed, f"{pid} {start_of(pid)}\n".encode())
        os.close(claimed)
    except OSError:
        pass  # a full disk is no reason to leave the command without a supervisor


def _write_result(numbers: dict[str, float]) -> None:
    """Write `result` so that it is there whole or not at all."""
    content = "{" + ", ".join(f'"{name}": {number!r}' for name, number in numbers.items()) + "}\n"
    descriptor = os.open("result.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.write(descriptor, content.encode())
    os.fsync(descriptor)
    os.close(descriptor)
    os.rename("result.new", "result")


def _close_inherited() -> None:
    """Let go of files luthier itself was started with: whoever waits for their end must not wait for the command."""
    try:
        highest = max(map(int, os.listdir("/proc/self/fd")))
    except OSError:
        highest = 255  # no /proc: the usual limit
    os.closerange(3, highest + 1)


def main(folder: str) -> None:
    """Run the job that stands in `folder`, unless somebody else does or did."""
    _close_inherited()
    os.chdir(folder)
    with open("job", "rb") as file:
        job = decoded(file.read())
    if _claim():
        _write_result(_run(job, _listen()))


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    finally:
        os._exit(0)  # nothing is left to tidy up, and whoever waits for the result waits for this
