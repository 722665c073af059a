import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import InvalidInputError, UnavailableError
from luthier.runners.base import Runner
from luthier.runners.command import Command, CommandRunner
from luthier.runners.contract import RunnerContract, collect
from luthier.runners.supervisor import JobFile, decoded
from luthier.trial import Config, Execution, Failed, Job, Lost, Pruned, TimedOut

SCRIPT = """
echo run >> "$STAGE/starts.$NUMBER"
case $BEHAVIOUR in
    fail) echo as told >&2; exit 3;;
    wait) read -r go < "$STAGE/gate";;
    hang) exec sleep 3600;;
esac
"""


class Fifo:
    """A named pipe held open at both ends, so that neither side ever blocks or sees an end while opening it."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self.descriptor = os.open(path, os.O_RDWR)

    def write(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def read_line(self) -> str:
        line = b""
        while not line.endswith(b"\n"):
            assert select.select([self.descriptor], [], [], 60)[0], "nobody wrote"
            line += os.read(self.descriptor, 1)
        return line.decode().strip()


class CommandStage:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gate = Fifo(folder / "gate")

    def render(self, config: Config) -> Command:
        names = {"STAGE": str(self.folder), "NUMBER": str(config["number"]), "BEHAVIOUR": str(config["behaviour"])}
        return Command(("sh", "-c", SCRIPT), names)

    def runner(self, slots: int) -> Runner:
        return CommandRunner(self.render, self.folder / "runs", slots)

    def let_go(self) -> None:
        self.gate.write("go\n" * 10)

    def starts(self, number: int) -> int:
        path = self.folder / f"starts.{number}"
        return len(path.read_text().splitlines()) if path.exists() else 0


class TestCommandRunner(RunnerContract):
    @pytest.fixture
    def stage(self, tmp_path: Path) -> Iterator[CommandStage]:
        stage = CommandStage(tmp_path)
        yield stage
        stage.let_go()
        os.close(stage.gate.descriptor)


def runner_of(
    folder: Path, *argv: str, grace_s: float = 2.0, environment: Mapping[str, str] = MappingProxyType({})
) -> CommandRunner:
    return CommandRunner(lambda config: Command(argv, environment), folder / "runs", grace_s=grace_s)


def run(folder: Path, *argv: str, timeout_s: float | None = None, **environment: str) -> Execution:
    runner = runner_of(folder, *argv, environment=environment)
    runner.submit(Job("k", Config({}), timeout_s))
    return collect(runner, ["k"])["k"]


def output(execution: Execution, name: str = "stdout") -> bytes:
    assert execution.logs is not None
    return (Path(execution.logs) / name).read_bytes()


def wait_gone(pid: int) -> None:
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert select.select([pidfd], [], [], 60)[0], "the process is still there"
    os.close(pidfd)


NASTY = [
    "",
    " ",
    "two words",
    "$(touch pwned) `id` $HOME",
    "a\nb\r\n",
    "'\"\\",
    "-n",
    "*",
    "größe 速度 🚀",
    "\udcff",
    ";|&<>",
    "a=b\t",
]


def test_arguments_arrive_verbatim(tmp_path: Path) -> None:
    execution = run(tmp_path, "sh", "-c", r'printf "%s\0" "$@"', "sh", *NASTY)
    assert output(execution) == b"".join(os.fsencode(text) + b"\0" for text in NASTY)


def test_environment_is_added_verbatim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", "kept")
    execution = run(tmp_path, "env", "-0", NEW="line\n= $(x)", EMPTY="")
    variables = output(execution).split(b"\0")
    assert {b"OURS=kept", b"NEW=line\n= $(x)", b"EMPTY="} <= set(variables)


def test_programs_are_found_in_the_path_the_command_sees(tmp_path: Path) -> None:
    program = tmp_path / "own-program"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    assert output(run(tmp_path, "own-program", PATH=f"/nowhere:{tmp_path}:/usr/bin:/bin")) == b"found\n"


def test_the_command_starts_with_a_clean_slate(tmp_path: Path) -> None:
    status = output(run(tmp_path / "a", "cat", "/proc/self/status")).decode()
    masks = dict(line.split(":\t") for line in status.splitlines() if line.startswith(("SigBlk", "SigIgn")))
    beyond_anybodys_reach = 0b11 << 31  # signals 32 and 33 belong to the C library and stay as they were inherited
    assert {int(mask, 16) & ~beyond_anybodys_reach for mask in masks.values()} == {0}
    pid, _, _, _, group, session = output(run(tmp_path / "b", "cat", "/proc/self/stat")).split()[:6]
    assert pid == group == session
    assert output(run(tmp_path / "c", "readlink", "/proc/self/fd/0")) == b"/dev/null\n"
    ours = os.dup2(0, 100, inheritable=True)
    assert output(run(tmp_path / "d", "ls", "/proc/self/fd")) == b"0\n1\n2\n3\n"  # 3 is the folder that ls reads
    os.close(ours)


def test_the_working_folder(tmp_path: Path) -> None:
    runner = CommandRunner(lambda config: Command(("pwd",), cwd=str(tmp_path)), tmp_path / "runs", slots=2)
    runner.submit(Job("given", Config({})))
    assert output(collect(runner, ["given"])["given"]) == os.fsencode(tmp_path) + b"\n"
    assert output(run(tmp_path, "pwd")) == os.fsencode(Path.cwd()) + b"\n"


def test_metrics(tmp_path: Path) -> None:
    code = "import time; data = b'x' * 100_000_000\nwhile time.process_time() < 0.1: pass"
    execution = run(tmp_path, sys.executable, "-c", code)
    metrics = execution.metrics
    assert set(metrics) == {"wall_s", "user_s", "system_s", "peak_memory_bytes", "exit_code"}
    assert 100e6 < metrics["peak_memory_bytes"] < 300e6
    assert metrics["user_s"] + metrics["system_s"] >= 0.09
    assert metrics["wall_s"] == execution.duration_s >= 0.09
    assert metrics["exit_code"] == 0


def test_the_time_of_a_command_is_its_own(tmp_path: Path) -> None:
    """To start the smallest program takes little longer here than where nothing else is done."""
    runner, counted, plain = runner_of(tmp_path, "/bin/true"), [], []
    for number in range(30):
        runner.submit(Job(f"k{number}", Config({})))
        counted.append(collect(runner, [f"k{number}"])[f"k{number}"].metrics["wall_s"])
        began = time.perf_counter()
        os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ), 0)
        plain.append(time.perf_counter() - began)
    assert 0 < min(counted) < 2.5 * min(plain)


def test_no_output_and_much_output(tmp_path: Path) -> None:
    execution = run(tmp_path / "none", "true")
    assert (output(execution), output(execution, "stderr")) == (b"", b"")
    much = run(tmp_path / "much", "sh", "-c", "head -c 20000000 /dev/zero; head -c 20000000 /dev/zero >&2; exit 1")
    assert len(output(much)) == len(output(much, "stderr")) == 20_000_000
    assert much.problem == Failed("exit code 1")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 7", "exit code 7"),
        ("exit 137", "exit code 137"),
        ("echo first >&2; printf 'disk \\033[31mfull\\033[0m\\a\\n\\n  \\n' >&2; exit 1", "exit code 1: disk full"),
        ("printf '%0300d' 0 >&2; exit 2", "exit code 2: " + "0" * 200),
        ("printf 'caf\\351' >&2; exit 2", "exit code 2: caf\ufffd"),
        ("kill -SEGV $$", "killed by SIGSEGV"),
        ("kill -KILL $$", "killed by SIGKILL"),
        ("kill -40 $$", "killed by signal 40"),
    ],
)
def test_how_failures_are_told(tmp_path: Path, script: str, reason: str) -> None:
    assert run(tmp_path, "bash", "-c", script).problem == Failed(reason)


def test_commands_that_cannot_start(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    assert run(tmp_path / "a", "xyz").problem == Failed("cannot start 'xyz': No such file or directory")
    assert run(tmp_path / "b", str(plain)).problem == Failed(f"cannot start '{plain}': Permission denied")
    plain.chmod(0o755)
    assert run(tmp_path / "c", str(plain)).problem == Failed(f"cannot start '{plain}': Exec format error")
    runner = CommandRunner(lambda config: Command(("true",), cwd="/no/where"), tmp_path / "runs")
    runner.submit(Job("k", Config({})))
    problem = collect(runner, ["k"])["k"].problem
    assert problem == Failed("cannot start 'true' in '/no/where': No such file or directory")


TREE = 'sh -c \'trap "" TERM; echo $$ > "$UP"; while :; do sleep 3600; done\' & echo $$ > "$UP"; wait'


@pytest.mark.parametrize("how", ["cancel", "timeout"])
def test_the_whole_process_tree_is_stopped(tmp_path: Path, how: str) -> None:
    up = Fifo(tmp_path / "up")
    runner = runner_of(tmp_path, "sh", "-c", TREE, grace_s=3600.0, environment={"UP": str(up.path)})
    runner.submit(Job("k", Config({}), timeout_s=2.0 if how == "timeout" else None))
    pids = [int(up.read_line()) for _ in range(2)]
    if how == "cancel":
        runner.cancel(["k"])
    problem = collect(runner, ["k"])["k"].problem
    assert problem == (Pruned("cancelled") if how == "cancel" else TimedOut("took longer than 2 s"))
    for pid in pids:
        wait_gone(pid)


def test_a_command_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    up = Fifo(tmp_path / "up")
    script = 'trap "" TERM; echo $$ > "$UP"; while :; do sleep 3600; done'
    runner = runner_of(tmp_path, "sh", "-c", script, grace_s=0.05, environment={"UP": str(up.path)})
    runner.submit(Job("k", Config({})))
    up.read_line()
    runner.cancel(["k"])
    execution = collect(runner, ["k"])["k"]
    assert execution.problem == Pruned("cancelled")
    assert execution.metrics["exit_code"] == -signal.SIGKILL
    assert execution.metrics["wall_s"] >= 0.05


def test_a_command_may_tidy_up_when_stopped(tmp_path: Path) -> None:
    up = Fifo(tmp_path / "up")
    script = 'trap "echo tidied; exit 0" TERM; echo $$ > "$UP"; while :; do sleep 0.01; done'
    runner = runner_of(tmp_path, "sh", "-c", script, grace_s=3600.0, environment={"UP": str(up.path)})
    runner.submit(Job("k", Config({})))
    up.read_line()
    runner.cancel(["k"])
    execution = collect(runner, ["k"])["k"]
    assert execution.problem == Pruned("cancelled")
    assert output(execution) == b"tidied\n"


def test_a_cancel_right_after_the_start_is_not_lost(tmp_path: Path) -> None:
    runner = runner_of(tmp_path, "sleep", "3600")
    for number in range(10):
        runner.submit(Job(f"k{number}", Config({})))
        runner.cancel([f"k{number}"])
        assert collect(runner, [f"k{number}"])[f"k{number}"].problem == Pruned("cancelled")


def test_a_run_begins_with_its_command_and_not_with_the_supervisor(tmp_path: Path) -> None:
    up = Fifo(tmp_path / "up")
    runner = runner_of(tmp_path, "sh", "-c", 'echo up > "$UP"; exec sleep 60', environment={"UP": str(up.path)})
    assert runner.started_at("k") is None
    runner.submit(Job("k", Config({})))
    up.read_line()
    claimed = tmp_path / "runs" / "k" / "claimed"
    while (began_at := runner.started_at("k")) is None:  # the supervisor writes it down while the command runs
        assert not runner.poll(["k"], 0.02)
    assert began_at == claimed.stat().st_mtime
    claimed.write_text(claimed.read_text().splitlines(keepends=True)[0])
    assert runner.started_at("k") is None, "no command has been started"
    runner.cancel(["k"])
    execution = collect(runner, ["k"])["k"]
    assert execution.started_at <= began_at + 0.1  # file times are a clock tick behind
    assert runner.started_at("k") is None
    os.close(up.descriptor)


def test_supervisors_leave_no_zombies(tmp_path: Path) -> None:
    execution = run(tmp_path, "true")
    supervisor = output(execution, "claimed").split()[0].decode()
    assert not Path(f"/proc/{supervisor}").exists()


@pytest.mark.parametrize("key", ["", ".", "..", "a/b", "a b", "ä", "a\n", "x" * 300])
def test_keys_name_folders(tmp_path: Path, key: str) -> None:
    with pytest.raises(InvalidInputError, match="key"):
        runner_of(tmp_path, "true").submit(Job(key, Config({})))
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("argv", [("a\0b",), ("true", "\0"), ("true", "\ud800")])
def test_what_no_program_can_be_given_is_refused(tmp_path: Path, argv: Sequence[str]) -> None:
    with pytest.raises(InvalidInputError, match="command"):
        runner_of(tmp_path, *argv).submit(Job("k", Config({})))


def test_commands_are_checked() -> None:
    for argv in ((), ("",)):
        with pytest.raises(InvalidInputError, match="empty"):
            Command(argv)
    for name in ("", "A=B"):
        with pytest.raises(InvalidInputError, match="variable"):
            Command(("true",), {name: "x"})


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_times_are_checked(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(InvalidInputError, match="grace_s"):
        runner_of(tmp_path, "true", grace_s=seconds)
    with pytest.raises(InvalidInputError, match="timeout_s"):
        runner_of(tmp_path, "true").submit(Job("k", Config({}), timeout_s=seconds))


def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    runner = runner_of(tmp_path, "true")
    with pytest.raises(UnavailableError, match=r"runs/k: cannot start the run: Not a directory"):
        runner.submit(Job("k", Config({})))
    (tmp_path / "runs").unlink()
    runner.submit(Job("k", Config({})))
    assert collect(runner, ["k"])["k"].problem is None


def test_a_result_that_cannot_be_written_is_a_lost_run(tmp_path: Path) -> None:
    script = f'mkdir "{tmp_path}/runs/k/result.new"'
    assert run(tmp_path, "sh", "-c", script).problem == Lost("the supervisor of this run died")


FREE_OF_NUL = st.binary(max_size=20).map(lambda text: text.replace(b"\0", b""))


@given(
    st.none() | st.floats(min_value=1e-6, max_value=1e9),
    FREE_OF_NUL,
    st.lists(FREE_OF_NUL, min_size=1),
    st.lists(FREE_OF_NUL),
    st.booleans(),
)
def test_job_files_read_back(
    timeout_s: float | None, cwd: bytes, argv: list[bytes], environment: list[bytes], is_marked: bool
) -> None:
    written = JobFile(timeout_s, 2.0, cwd, argv, environment, identity=b"a1", is_marked=is_marked)
    assert vars(decoded(written.encoded())) == vars(written)
