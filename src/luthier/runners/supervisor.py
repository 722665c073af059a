"""Runs one command to its end, even if luthier ends before: `python -I -S supervisor.py FOLDER [tied]`.

A script of its own with few and light imports, because one is started for every run. Everything it needs is in the file
`job` of the folder, everything it learns goes to `claimed`, `stdout`, `stderr` and, last, `result`. While it lives it
holds an exclusive lock on `lock`; so a folder that is claimed, without lock and without result had its supervisor
killed. The first process to create `claimed` runs the command; any other one exits. With `tied` it stops the command
when its standard input, a pipe that its parent holds, ends.

A script that does something before its application begins says when that is: it writes a byte to the named pipe `began`
and waits. The supervisor reads its clock and replaces the pipe by a file with the time; then the script goes on. So the
clock is the supervisor's, and nothing that the script prints, closes or redirects can change it.
"""
# ruff: noqa: PTH103, PTH104, PTH108, PTH109, PTH110, PTH118, PTH123, PTH208, S606, SIM105
# pathlib or contextlib would double the time to start; to run a program without a shell is the purpose of this file.

from __future__ import annotations

import fcntl
import os
import select
import sys
import time

TYPE_CHECKING = False  # as in typing, which costs 10 ms of processor time to import
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping
    from typing import NoReturn
else:
    import _signal as signal  # the part in C; `signal` loads `enum` for names and costs another 10 ms

VERSION = b"luthier job 2"
TIMED_OUT, CANCELLED = 1, 2
CHANGING_FOLDER, OPENING_OUTPUT, EXECUTING, OPENING_MARK = 1, 2, 3, 4

TIED = "tied"
MARK = "began"
"""The named pipe in the folder of a run, until the application has begun; then a file with the time."""
MARK_VARIABLE = "LUTHIER_BEGAN"
"""Where a script finds the path of that pipe."""
COUNT_VARIABLE = "LUTHIER_IO_COUNT"
"""The folder for the counters of I/O: a name in that of the run; the command gets the whole path."""

_OWN_PREFIX = "LUTHIER_"
_POSTGRESQL_SECRETS = ("PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE")
_SIGNALS_APART_S = 0.05
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_RETRY_S = 0.002
_LONGEST_SLEEP_S = 3600.0


class JobFile:
    """What is in `job`: everything needed to run the command, as bytes the system takes verbatim.

    `identity` tells which configuration it is for, `is_marked` whether its time counts from a mark of the script's own.
    No dataclass: to import that module takes longer than everything else here.
    """

    def __init__(
        self,
        timeout_s: float | None,
        grace_s: float,
        cwd: bytes,
        argv: list[bytes],
        environment: list[bytes],
        *,
        identity: bytes,
        is_marked: bool = False,
    ) -> None:
        self.timeout_s = timeout_s
        self.grace_s = grace_s
        self.cwd = cwd
        self.argv = argv
        self.environment = environment
        self.identity = identity
        self.is_marked = is_marked

    def encoded(self) -> bytes:
        """The fields with NUL between them: the one byte that no argument, variable or path can hold."""
        timeout = b"" if self.timeout_s is None else repr(self.timeout_s).encode()
        mark = b"marked" if self.is_marked else b""
        head = [VERSION, timeout, repr(self.grace_s).encode(), self.identity, mark, self.cwd]
        return b"\0".join([*head, str(len(self.argv)).encode(), *self.argv, *self.environment])


def decoded(content: bytes) -> JobFile:
    """Read back what `JobFile.encoded` wrote; a ValueError means that it is something else."""
    fields = content.split(b"\0")
    if len(fields) < 7 or fields[0] != VERSION:
        raise ValueError("not a job file of this version")
    timeout, grace, identity, mark, cwd, count = fields[1:7]
    argv_end = 7 + int(count)
    return JobFile(
        float(timeout) if timeout else None,
        float(grace),
        cwd,
        fields[7:argv_end],
        fields[argv_end:],
        identity=identity,
        is_marked=bool(mark),
    )


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """What a tuned program gets of luthier's environment: nothing that is luthier's own.

    The password of PostgreSQL is luthier's if its store is there. If not, it is the user's and the program may need it.
    """
    own = _POSTGRESQL_SECRETS if environment.get("LUTHIER_STORE", "").startswith("postgres") else ()
    return {name: value for name, value in environment.items() if not name.startswith(_OWN_PREFIX) and name not in own}


def start_of(pid: int) -> str:
    """When a process started, in the kernel's own ticks, or "" if unknown; it tells reused pids apart."""
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


def _listen(*, tied: bool) -> list[int]:
    """Turn the ends of children and requests to stop into bytes in a pipe; return its end, and that of a parent's."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, *_STOP_SIGNALS):
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    if not tied:
        return [readable]
    parent = os.dup(0)
    os.set_blocking(parent, False)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)  # the command must not read the parent's pipe
    return [readable, parent]


def _stop_requested(wake: list[int]) -> bool:
    for descriptor in wake:
        try:
            said = os.read(descriptor, 4096)
        except BlockingIOError:
            continue
        if not said or any(number in _STOP_SIGNALS for number in said):  # only the parent's pipe can end
            return True
    return False


def _environment(job: JobFile) -> dict[bytes, bytes]:
    """The variables of the command: what it inherits, then those of the job, which win."""
    environment = {os.fsencode(name): os.fsencode(value) for name, value in inherited(os.environ).items()}
    environment.update(pair.partition(b"=")[::2] for pair in job.environment)
    if job.is_marked:
        environment[MARK_VARIABLE.encode()] = os.path.join(os.getcwdb(), MARK.encode())
    counters = environment.get(COUNT_VARIABLE.encode())
    if counters:
        environment[COUNT_VARIABLE.encode()] = counters = os.path.join(os.getcwdb(), counters)
        os.makedirs(counters, exist_ok=True)
    return environment


def _execute(argv: list[bytes], environment: dict[bytes, bytes]) -> NoReturn:
    """Replace this process by the command, looked up in the PATH the command itself will see."""
    program = argv[0]
    if b"/" in program:
        os.execve(program, argv, environment)
    error: OSError = FileNotFoundError(2, os.strerror(2))
    for folder in environment.get(b"PATH", b"/usr/local/bin:/usr/bin:/bin").split(b":"):
        try:
            os.execve(os.path.join(folder or b".", program), argv, environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as reason:
            error = reason  # there is one, but it cannot be run: worth more than "no such file"
    raise error


def _become(job: JobFile, report: int, go: int) -> NoReturn:
    """In the forked child: get ready, wait to be let go, say through `report` when that was, and become the command.

    Whatever goes wrong is said there too. If the supervisor dies before, `go` ends and so does the child.
    """
    stage = OPENING_OUTPUT
    try:
        os.setsid()
        _reset_signals()
        environment = _environment(job)
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666), descriptor)
        stage = CHANGING_FOLDER
        os.chdir(job.cwd)
        stage = EXECUTING
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        if os.read(go, 1):
            os.write(report, f"{time.monotonic()!r}\n".encode())
            _execute(job.argv, environment)
    except OSError as error:
        os.write(report, f"{stage} {error.errno}".encode())
    finally:
        os._exit(127)


def _reset_signals() -> None:
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP) and signal.getsignal(number) not in (signal.SIG_DFL, None):
            signal.signal(number, signal.SIG_DFL)


def _send(pid: int, number: int) -> None:
    """Signal the command and all of its group; before the child has made its own group, the child alone."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        os.kill(pid, number)  # not reaped yet, so the pid is still ours
    except PermissionError:
        pass  # the group is left with zombies or with processes that changed their user


def _watch(
    pid: int, wake: list[int], mark: int | None, job: JobFile, began: float, *, is_told_too: bool
) -> tuple[int, float | None]:
    """Wait for the command to end; return whether it had to be stopped, and why, and when the mark came.

    The command is not reaped yet.
    """
    stopped, marked = 0, None
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
        ready = wake[:1] if stopped else wake  # a pipe that has ended stays readable
        ready = ready if mark is None or marked is not None else [*ready, mark]
        ready = select.select(ready, [], [], min(max(0.0, next_at - now), _LONGEST_SLEEP_S))[0]
        if mark in ready:
            marked = _note_mark()
        if _stop_requested(wake) and not stopped:
            stopped, now = CANCELLED, time.monotonic()
            if not is_told_too:
                term_at = now
            elif os.path.exists("cancel"):
                kill_at = now + job.grace_s  # somebody else's scancel leaves as much time as Slurm does
    return stopped, marked


def _stopped_as_well(wake: list[int]) -> bool:
    """Whether a stop signal follows the end of the command: Slurm signals both, and the command may be faster."""
    give_up_at = time.monotonic() + (_SIGNALS_APART_S if "SLURM_JOB_ID" in os.environ else 0.0)
    while not _stop_requested(wake):
        left_s = give_up_at - time.monotonic()
        if left_s <= 0:
            return False
        select.select(wake, [], [], left_s)
    return True


def _note_mark() -> float:
    """Let a script go on that waits for its application to be timed; return when that was.

    The clock is read before that: a supervisor that gets no processor must not make an application look fast.
    """
    marked = time.monotonic()
    try:
        descriptor = os.open("began.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.write(descriptor, f"{time.time()!r}\n".encode())
        os.close(descriptor)
        marked = time.monotonic()
        os.rename("began.new", MARK)
    except OSError:
        _remove_mark()  # a full disk: the script goes on all the same
    return marked


def _remove_mark() -> None:
    try:
        os.unlink(MARK)
    except OSError:
        pass  # somebody removed the folder


def _run(job: JobFile, wake: list[int], *, is_told_too: bool) -> dict[str, float]:
    """Run the command and return the numbers that tell how it went."""
    started_at = time.time()
    if _stop_requested(wake):
        return {"started_at": started_at, "stopped": CANCELLED}
    try:
        mark = os.open(MARK, os.O_RDWR | os.O_NONBLOCK) if job.is_marked else None
    except OSError as error:
        return {"started_at": started_at, "stopped": 0, "start_stage": OPENING_MARK, "start_error": error.errno or 0}
    pid, report, go = _prepared(job)
    _note_command(pid)
    started_at, began = time.time(), time.monotonic()
    _let_go(go)
    said = os.read(report, 128)
    if b"\n" in said:
        began = float(said.partition(b"\n")[0])  # as the child reports it, right before it becomes the command
    stopped, marked = _watch(pid, wake, mark, job, began, is_told_too=is_told_too)
    ended = time.monotonic()
    if not stopped and _stopped_as_well(wake):
        stopped = CANCELLED
    if stopped:
        _send(pid, signal.SIGKILL)  # what the command started and left behind
    if mark is not None and marked is None:
        _remove_mark()
    _, status, usage = os.wait4(pid, 0)
    stage, _, error_number = (said + os.read(report, 128)).rpartition(b"\n")[2].partition(b" ")
    counted_from = began if mark is None else marked
    return {
        "started_at": started_at,
        "stopped": stopped,
        "duration_s": ended - began,
        **({} if counted_from is None else {"wall_s": ended - counted_from}),
        "user_s": usage.ru_utime,
        "system_s": usage.ru_stime,
        "peak_memory_bytes": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        "minor_page_faults": usage.ru_minflt,
        "major_page_faults": usage.ru_majflt,
        "voluntary_switches": usage.ru_nvcsw,
        "involuntary_switches": usage.ru_nivcsw,
        "blocks_read": usage.ru_inblock,
        "blocks_written": usage.ru_oublock,
        "exit_code": os.waitstatus_to_exitcode(status),
        "start_stage": int(stage or 0),
        "start_error": int(error_number or 0),
    }


def _prepared(job: JobFile) -> tuple[int, int, int]:
    """Fork the process that is to become the command; return its pid, where it reports, and where it is let go.

    All that can be done before is done before, so that none of it is timed.
    """
    report, report_end = os.pipe()
    go, go_end = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)  # until the child has default handlers
    pid = os.fork()
    if pid == 0:
        os.close(go_end)
        _become(job, report_end, go)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.close(report_end)
    os.close(go)
    return pid, report, go_end


def _let_go(go: int) -> None:
    try:
        os.write(go, b"!")
    except BrokenPipeError:
        pass  # it could not even get ready, and has said why


def _note_command(pid: int) -> None:
    """Note which command is running, for the case that this supervisor dies."""
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
    """Close the files that luthier itself was started with: a reader of theirs must not wait for the command."""
    try:
        highest = max(map(int, os.listdir("/proc/self/fd")))
    except OSError:
        highest = 255  # no /proc: the usual limit
    os.closerange(3, highest + 1)


def main(folder: str, *, tied: bool = False, is_told_too: bool = False) -> None:
    """Run the job in `folder`, unless another supervisor does or did.

    With `tied` it is stopped when the parent ends; with `is_told_too` stop signals reach the command by themselves.
    """
    _close_inherited()
    os.chdir(folder)
    with open("job", "rb") as file:
        job = decoded(file.read())
    if _claim():
        _write_result(_run(job, _listen(tied=tied), is_told_too=is_told_too))


if __name__ == "__main__":
    try:
        main(sys.argv[1], tied=TIED in sys.argv[2:])
    finally:
        os._exit(0)  # nothing is left to clean up, and others wait for this process to end
