import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from luthier.runners import command, supervisor
from luthier.runners.command import Command, CommandRunner
from luthier.runners.contract import collect
from luthier.trial import Config, Failed, Job, Lost, Pruned, TimedOut, Value

PARENT = """
import os, sys
from luthier.runners.command import Command, CommandRunner
from luthier.runners.contract import collect
from luthier.trial import Config, Job

folder, script, timeout, end = sys.argv[1:5]
keys = sys.argv[5:]
runner = CommandRunner(lambda config: Command(("sh", "-c", script)), folder, slots=len(keys), grace_s=0.1)
print("ready", flush=True)
sys.stdin.readline()
for key in keys:
    runner.submit(Job(key, Config({}), float(timeout) if timeout else None))
if end == "die":
    os.kill(os.getpid(), 9)
if end == "collect":
    print(sum(execution.problem is None for execution in collect(runner, keys).values()), flush=True)
sys.stdin.readline()
"""


class Scene:
    """A folder with two named pipes, a command that uses them, and parents that can be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pipes = {}
        for name in ("up", "gate"):
            os.mkfifo(folder / name)
            self.pipes[name] = os.open(folder / name, os.O_RDWR)
        self.parents: list[subprocess.Popen[str]] = []
        self.script = f'echo $$ >> "{folder}/log"; echo $$ > "{folder}/up"; read go < "{folder}/gate"; echo 42'

    def parent(
        self, *keys: str, end: str = "stay", timeout: str = "", script: str | None = None
    ) -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", PARENT, str(self.folder / "runs"), script or self.script, timeout, end, *keys]
        parent = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.parents.append(parent)
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        return parent

    def orphan(self, timeout: str = "") -> int:
        """Start the command `k` from a parent that is then killed; return the command's pid."""
        parent = self.parent("k", timeout=timeout)
        go(parent)
        pid = self.command_pid()
        parent.kill()
        parent.wait()
        return pid

    def adopter(self, *keys: str) -> CommandRunner:
        """A runner in this process that has adopted the keys, and would fail rather than start anything new."""
        runner = CommandRunner(lambda config: pytest.fail("rendered again"), self.folder / "runs", slots=len(keys))
        for key in keys:
            runner.submit(Job(key, Config({})))
        return runner

    def command_pid(self) -> int:
        line = b""
        while not line.endswith(b"\n"):
            assert select.select([self.pipes["up"]], [], [], 60)[0], "the command never started"
            line += os.read(self.pipes["up"], 1)
        return int(line)

    def let_go(self) -> None:
        os.write(self.pipes["gate"], b"go\n" * 20)

    def stop_all(self) -> None:
        """Leave no command behind, whatever a test did."""
        keys = [path.parent.name for path in self.folder.glob("runs/*/job")]
        if keys:
            runner = self.adopter(*keys)
            runner.cancel(keys)
            collect(runner, keys)

    def executions(self) -> int:
        return len((self.folder / "log").read_text().splitlines())

    def supervisor_pid(self) -> int:
        return int((self.folder / "runs" / "k" / "claimed").read_text().split()[0])


def go(parent: "subprocess.Popen[str]") -> None:
    assert parent.stdin is not None
    parent.stdin.write("go\n")
    parent.stdin.flush()


def wait_ended(pid: int) -> None:
    """Wait until a process has ended; its parent need not have noticed it."""
    give_up_at = time.monotonic() + 60
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < give_up_at
        select.select([], [], [], 0.01)


def wait_gone(pid: int) -> None:
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert select.select([pidfd], [], [], 60)[0], "the process is still there"
    os.close(pidfd)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    for parent in scene.parents:
        parent.kill()
        parent.communicate()
    scene.stop_all()
    for descriptor in scene.pipes.values():
        os.close(descriptor)


def test_a_command_outlives_its_parent_and_is_adopted(scene: Scene) -> None:
    scene.orphan()
    runner = scene.adopter("k")
    assert not runner.poll(["k"], 0)
    scene.let_go()
    execution = collect(runner, ["k"])["k"]
    assert execution.problem is None
    assert execution.metrics["exit_code"] == 0
    assert (scene.folder / "runs" / "k" / "stdout").read_text() == "42\n"
    assert scene.executions() == 1


def test_a_result_waits_for_whoever_comes(scene: Scene) -> None:
    pid = scene.orphan()
    scene.let_go()
    wait_gone(scene.supervisor_pid())
    first, second = (collect(scene.adopter("k"), ["k"])["k"] for _ in range(2))
    assert first == second
    assert first.problem is None
    assert (scene.folder / "log").read_text() == f"{pid}\n"


def test_parents_killed_before_their_supervisors_are_up(scene: Scene) -> None:
    keys = [f"k{number}" for number in range(8)]
    parent = scene.parent(*keys, end="die", script=f'echo run >> "{scene.folder}/log"')
    go(parent)
    assert parent.wait() == -signal.SIGKILL
    reported = collect(scene.adopter(*keys), keys)
    assert [execution.problem for execution in reported.values()] == [None] * 8
    assert scene.executions() == 8


def test_a_prepared_job_that_nobody_claimed_is_started_as_it_was_written(scene: Scene) -> None:
    folder = scene.folder / "runs"
    runner = CommandRunner(lambda config: Command(("echo", "as written")), folder)
    runner.submit(Job("k", Config({})))
    collect(runner, ["k"])
    for name in ("claimed", "lock", "stdout", "result"):
        (folder / "k" / name).unlink()
    assert collect(scene.adopter("k"), ["k"])["k"].problem is None
    assert (folder / "k" / "stdout").read_text() == "as written\n"


def test_two_submitters_race(scene: Scene) -> None:
    keys = [f"k{number}" for number in range(6)]
    script = f'echo run >> "{scene.folder}/log"'
    parents = [scene.parent(*keys, end="collect", script=script) for _ in range(2)]
    for parent in parents:
        go(parent)
    assert [parent.stdout.readline() for parent in parents if parent.stdout is not None] == ["6\n", "6\n"]
    assert scene.executions() == 6


def test_two_runners_follow_the_same_run(scene: Scene) -> None:
    scene.orphan()
    runners = [scene.adopter("k"), scene.adopter("k")]
    scene.let_go()
    first, second = (collect(runner, ["k"]) for runner in runners)
    assert first == second
    assert scene.executions() == 1


def test_a_dead_supervisor_is_a_lost_run_and_its_command_is_ended(scene: Scene) -> None:
    runner = CommandRunner(lambda config: Command(("sh", "-c", scene.script)), scene.folder / "runs")
    runner.submit(Job("k", Config({})))
    command = scene.command_pid()
    os.kill(scene.supervisor_pid(), signal.SIGKILL)
    assert collect(runner, ["k"])["k"].problem == Lost("the supervisor of this run died")
    wait_gone(command)


def test_a_dead_supervisor_of_an_adopted_run(scene: Scene) -> None:
    command = scene.orphan()
    runner = scene.adopter("k")
    assert not runner.poll(["k"], 0)
    os.kill(scene.supervisor_pid(), signal.SIGKILL)
    assert isinstance(collect(runner, ["k"])["k"].problem, Lost)
    wait_gone(command)


def test_a_run_reported_as_lost_is_not_started_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    supervisors: list[int] = []

    def slow_start(folder: Path) -> int:
        """Start a supervisor that stops itself before its first instruction, as if it got no processor."""
        start = [sys.executable, "-I", "-S", supervisor.__file__, str(folder)]
        shell = ["/bin/sh", "-c", 'kill -STOP $$; exec "$@"', "sh", *start]
        supervisors.append(os.posix_spawn(shell[0], shell, os.environ, setsid=True))
        os.waitpid(supervisors[-1], os.WUNTRACED)
        return supervisors[-1]

    monkeypatch.setattr(command, "_start_supervisor", slow_start)
    first, second = (
        CommandRunner(lambda config: Command(("touch", str(tmp_path / "executed"))), tmp_path / "runs")
        for _ in range(2)
    )
    first.submit(Job("k", Config({})))  # its process is killed now: nobody follows the first supervisor
    second.submit(Job("k", Config({})))
    os.kill(supervisors[1], signal.SIGKILL)
    assert isinstance(collect(second, ["k"])["k"].problem, Lost)
    os.kill(supervisors[0], signal.SIGCONT)
    os.waitpid(supervisors[0], 0)
    assert not (tmp_path / "executed").exists()


def test_an_adopted_run_can_be_cancelled(scene: Scene) -> None:
    command = scene.orphan()
    runner = scene.adopter("k")
    runner.cancel(["k"])
    assert collect(runner, ["k"])["k"].problem == Pruned("cancelled")
    wait_gone(command)


def test_a_cancel_waits_until_the_supervisor_has_written_itself_down(scene: Scene) -> None:
    command = scene.orphan()
    claimed = scene.folder / "runs" / "k" / "claimed"
    written = claimed.read_bytes()
    claimed.write_bytes(b"")
    runner = scene.adopter("k")
    runner.cancel(["k"])
    assert not runner.poll(["k"], 0)
    claimed.write_bytes(written)
    assert collect(runner, ["k"])["k"].problem == Pruned("cancelled")
    wait_gone(command)


def test_time_limits_hold_when_luthier_is_dead(scene: Scene) -> None:
    command = scene.orphan(timeout="1.0")
    wait_gone(command)
    assert collect(scene.adopter("k"), ["k"])["k"].problem == TimedOut("took longer than 1 s")


def test_a_supervisor_stopped_by_others_is_a_lost_run(scene: Scene) -> None:
    runner = CommandRunner(lambda config: Command(("sh", "-c", scene.script)), scene.folder / "runs")
    runner.submit(Job("k", Config({})))
    scene.command_pid()
    os.kill(scene.supervisor_pid(), signal.SIGTERM)
    problem = collect(runner, ["k"])["k"].problem
    assert isinstance(problem, Lost)
    assert "not by luthier" in problem.reason


def test_a_command_that_ends_first_when_both_are_stopped_is_a_lost_run(scene: Scene) -> None:
    """A batch system signals the supervisor and the command at once, and the command may be faster."""
    command = scene.orphan()
    runner = scene.adopter("k")
    os.kill(scene.supervisor_pid(), signal.SIGSTOP)
    os.kill(scene.supervisor_pid(), signal.SIGTERM)
    os.write(scene.pipes["gate"], b"go\n")
    wait_ended(command)
    os.kill(scene.supervisor_pid(), signal.SIGCONT)
    assert collect(runner, ["k"])["k"].problem == Lost("the supervisor of this run was stopped, but not by luthier")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"started_at": "x", "stopped": 0}', b"\xff", b"null"])
def test_damaged_results_are_lost_runs(scene: Scene, content: bytes) -> None:
    scene.orphan()
    runner = scene.adopter("k")
    scene.let_go()
    collect(runner, ["k"])
    (scene.folder / "runs" / "k" / "result").write_bytes(content)
    problem = collect(scene.adopter("k"), ["k"])["k"].problem
    assert isinstance(problem, Lost)
    assert "damaged" in problem.reason


def test_a_folder_that_vanished_is_a_lost_run(scene: Scene) -> None:
    script = f'rm -r "{scene.folder}/runs/k"; exit 3'
    runner = CommandRunner(lambda config: Command(("sh", "-c", script)), scene.folder / "runs")
    runner.submit(Job("k", Config({})))
    problem = collect(runner, ["k"])["k"].problem
    assert isinstance(problem, Lost)
    assert "gone" in problem.reason


def test_an_adopted_failure_keeps_its_reason(scene: Scene) -> None:
    parent = scene.parent("k", end="die", script="echo broken >&2; exit 9")
    go(parent)
    parent.wait()
    assert collect(scene.adopter("k"), ["k"])["k"].problem == Failed("exit code 9: broken")


def test_an_interrupt_from_the_terminal_does_not_reach_the_command(scene: Scene) -> None:
    parent = scene.parent("k")
    go(parent)
    command = scene.command_pid()
    assert len({os.getsid(parent.pid), os.getsid(command), os.getsid(scene.supervisor_pid())}) == 3
    assert os.getpgid(command) == command


def test_the_supervisor_imports_little() -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import supervisor; print(*sys.modules)"
    argv = [sys.executable, "-I", "-S", "-c", code, str(Path(supervisor.__file__).parent)]
    modules = set(subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split())
    assert "supervisor" in modules
    assert not modules & {"enum", "re", "typing", "json", "subprocess", "pathlib", "dataclasses", "signal"}


SAME = Config({"b": 1.0, "a": "x", "c": True})
AS_READ_BACK = Config({"c": True, "a": "x", "b": 1})


def files_in(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.mark.parametrize(
    "other", [{"b": 2, "a": "x", "c": True}, {"a": "x", "c": True}, {"b": 1, "a": "x", "c": 1}, {}]
)
def test_a_folder_of_another_configuration_is_left_alone(scene: Scene, other: dict[str, Value]) -> None:
    runner = CommandRunner(lambda config: Command(("echo", str(config["b"]))), scene.folder / "runs")
    runner.submit(Job("k", SAME))
    first = collect(runner, ["k"])
    before = files_in(scene.folder / "runs" / "k")
    adopter = CommandRunner(lambda config: pytest.fail("rendered again"), scene.folder / "runs")
    adopter.submit(Job("k", Config(other)))
    assert adopter.started_at("k") is None
    execution = collect(adopter, ["k"])["k"]
    assert isinstance(execution.problem, Lost)
    assert "another configuration" in execution.problem.reason
    assert execution.logs is None
    assert files_in(scene.folder / "runs" / "k") == before
    adopter.submit(Job("k", AS_READ_BACK))
    assert collect(adopter, ["k"]) == first


@pytest.mark.parametrize("job", [b"luthier job 1\x00\x002.0\x00/\x001\x00true", b"", b"luthier job 2\x00", b"\xff"])
def test_a_folder_of_another_version_is_left_alone(scene: Scene, job: bytes) -> None:
    folder = scene.folder / "runs" / "k"
    folder.mkdir(parents=True)
    (folder / "job").write_bytes(job)
    (folder / "result").write_text('{"started_at": 1.0, "stopped": 0, "wall_s": 0.5, "exit_code": 0}')
    before = files_in(folder)
    runner = CommandRunner(lambda config: pytest.fail("rendered again"), scene.folder / "runs")
    runner.submit(Job("k", Config({})))
    problem = collect(runner, ["k"])["k"].problem
    assert isinstance(problem, Lost)
    assert "unknown version of luthier" in problem.reason
    assert files_in(folder) == before
    (folder / "job").unlink()


def test_a_job_file_that_is_damaged_while_it_runs_is_a_lost_run(scene: Scene) -> None:
    scene.orphan()
    runner = scene.adopter("k")
    (scene.folder / "runs" / "k" / "job").write_bytes(b"nothing")
    scene.let_go()
    problem = collect(runner, ["k"])["k"].problem
    assert isinstance(problem, Lost)
    assert "damaged" in problem.reason
    shutil.rmtree(scene.folder / "runs" / "k")
