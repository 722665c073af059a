"""Jobs through PSI/J: its local executor, and its Slurm executor on a real Slurm."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.slurm.cluster import Cluster, wait_until

from luthier.errors import InvalidInputError, NotFoundError, UnavailableError
from luthier.runners.base import Runner
from luthier.runners.command import Command
from luthier.runners.contract import RunnerContract, collect
from luthier.runners.psij import Allocation, PsijRunner
from luthier.trial import Config, Execution, Failed, Job, Lost, Pruned

pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # see `local`

SCRIPT = """
echo run >> "$STAGE/starts.$NUMBER"
case $BEHAVIOUR in
    fail) echo as told >&2; exit 3;;
    wait) until [ -e "$STAGE/gate" ]; do sleep 0.05; done;;
    hang) exec sleep 3600;;
esac
"""
ALLOCATION = Allocation(walltime_s=3600.0)

PARENT = """
import sys
from luthier.runners.command import Command
from luthier.runners.psij import Allocation, PsijRunner
from luthier.trial import Config, Job

executor, folder, script = sys.argv[1:]
command = Command(("sh", "-c", script))
runner = PsijRunner(lambda config: command, executor, folder, allocation=Allocation(walltime_s=60.0), ask_every_s=1)
runner.submit(Job("k", Config({})))
print("submitted", flush=True)
sys.stdin.read()
"""


def runner_of(folder: Path, render: Callable[[Config], Command], executor: str, slots: int = 4) -> PsijRunner:
    return PsijRunner(render, executor, folder / "runs", slots, allocation=ALLOCATION, grace_s=0.5, ask_every_s=1)


class PsijStage:
    """A folder in which jobs leave traces."""

    def __init__(self, folder: Path, executor: str) -> None:
        self.folder = folder
        self.executor = executor

    def render(self, config: Config) -> Command:
        names = {"STAGE": str(self.folder), "NUMBER": str(config["number"]), "BEHAVIOUR": str(config["behaviour"])}
        return Command(("bash", "-c", SCRIPT), names)

    def runner(self, slots: int) -> Runner:
        return runner_of(self.folder, self.render, self.executor, slots)

    def let_go(self) -> None:
        (self.folder / "gate").touch()

    def starts(self, number: int) -> int:
        path = self.folder / f"starts.{number}"
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def local() -> Iterator[str]:
    """PSI/J's local executor; it drops the pipe of a process unclosed, a moment after that has ended."""
    yield "local"
    from psij.executors.local import _ProcessReaper

    wait_until(lambda: not _ProcessReaper.get_instance()._jobs, "PSI/J has let go of all processes")


class TestPsijOnThisMachine(RunnerContract):
    @pytest.fixture
    def stage(self, local: str, tmp_path: Path) -> PsijStage:
        return PsijStage(tmp_path, local)


class TestPsijOnSlurm(RunnerContract):
    @pytest.fixture
    def stage(self, slurm: Cluster, tmp_path: Path) -> PsijStage:
        return PsijStage(tmp_path, "slurm")


class Scene:
    """A folder, a job that leaves a trace and waits to be let go, and a process that submits it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = f"echo run >> {folder}/log; until [ -e {folder}/gate ]; do sleep 0.05; done"

    def runner(self, executor: str) -> PsijRunner:
        return runner_of(self.folder, lambda config: Command(("sh", "-c", self.script)), executor)

    def adopter(self, executor: str) -> PsijRunner:
        """A runner that would fail rather than make up the job anew."""
        runner = runner_of(self.folder, lambda config: pytest.fail("rendered again"), executor)
        runner.submit(JOB)
        return runner

    def argv(self, executor: str) -> list[str]:
        return [sys.executable, "-c", PARENT, executor, str(self.folder / "runs"), self.script]

    def die_after_submitting(self, executor: str) -> None:
        with subprocess.Popen(self.argv(executor), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
            assert parent.stdout is not None
            assert parent.stdout.readline() == b"submitted\n"
            parent.kill()

    def finished(self, runner: PsijRunner) -> Execution:
        (self.folder / "gate").touch()
        return collect(runner, ["k"])["k"]

    def executions(self) -> int:
        log = self.folder / "log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def wait_begun(self, runner: PsijRunner) -> None:
        wait_until(lambda: not runner.poll(["k"], 0.02) and self.executions() == 1, "the run has begun")
        assert runner.started_at("k") is not None

    def misbehave(self, program: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put another program in front of one of Slurm's."""
        path = self.folder / "bin" / program
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")

    def start_by_hand(self) -> None:
        """Do what a job does that is started after all."""
        (self.folder / "gate").touch()
        subprocess.run(["sh", self.folder / "runs" / "k" / "batch"], check=True)

    def text(self, name: str) -> str:
        return (self.folder / "runs" / "k" / name).read_text().strip()


JOB = Job("k", Config({}))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.fixture
def closed_queue(slurm: Cluster) -> Iterator[Cluster]:
    """A Slurm that takes jobs and starts none."""
    slurm.run("scontrol", "update", "PartitionName=main", "State=DOWN")
    yield slurm
    slurm.run("scontrol", "update", "PartitionName=main", "State=UP")


def test_a_process_outlives_the_one_that_submitted_it(scene: Scene, local: str) -> None:
    scene.die_after_submitting(local)
    assert scene.finished(scene.adopter(local)).problem is None
    assert scene.executions() == 1


def test_a_job_outlives_the_process_that_submitted_it(scene: Scene, slurm: Cluster) -> None:
    scene.die_after_submitting("slurm")
    assert scene.finished(scene.adopter("slurm")).problem is None
    assert scene.executions() == 1


def test_an_adopted_job_can_be_cancelled(scene: Scene, slurm: Cluster) -> None:
    scene.die_after_submitting("slurm")
    runner = scene.adopter("slurm")
    scene.wait_begun(runner)
    runner.cancel(["k"])
    execution = collect(runner, ["k"])["k"]
    assert execution.problem == Pruned("cancelled")
    assert execution.metrics["wall_s"] == execution.duration_s > 0
    assert scene.adopter("slurm").poll(["k"], 0) == [execution]


def test_killed_before_the_id_is_noted(scene: Scene, closed_queue: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two jobs are in the queue: one of them runs, the other goes away, and neither is taken for the other."""
    scene.misbehave("sbatch", f'"{shutil.which("sbatch")}" "$@"; kill -9 $PPID', monkeypatch)
    assert subprocess.run(scene.argv("slurm"), check=False).returncode == -signal.SIGKILL
    (scene.folder / "bin" / "sbatch").unlink()
    runner = scene.adopter("slurm")
    both = closed_queue.run("squeue", "--noheader", "--states=PENDING", "--format=%A").split()
    assert len(both) == 2
    closed_queue.run("scontrol", "update", "PartitionName=main", "State=UP")
    scene.wait_begun(runner)
    running = ("squeue", "--noheader", "--states=RUNNING", "--format=%A")
    wait_until(lambda: len(closed_queue.run(*running).split()) == 1, "one of them has gone away")
    gone = next(number for number in both if number not in closed_queue.run(*running).split())
    (scene.folder / "runs" / "k" / "taken").write_text(gone)  # what is there if both begin at the same moment
    for _ in range(50):
        assert not runner.poll(["k"], 0.1), "the job that went away was taken for the one that runs"
    assert scene.finished(runner).problem is None
    assert scene.executions() == 1


def test_a_waiting_job_can_be_cancelled(scene: Scene, closed_queue: Cluster) -> None:
    runner = scene.runner("slurm")
    runner.submit(JOB)
    assert not runner.poll(["k"], 0)
    assert runner.started_at("k") is None
    runner.cancel(["k"])
    scene.start_by_hand()
    assert scene.executions() == 0, "a job that was called off began"
    execution = collect(runner, ["k"])["k"]
    assert (execution.problem, execution.duration_s) == (Pruned("cancelled"), 0.0)
    assert closed_queue.run("squeue", "--noheader", "--states=PENDING") == ""


def test_a_job_that_others_cancel_is_lost(scene: Scene, closed_queue: Cluster) -> None:
    runner = scene.runner("slurm")
    runner.submit(JOB)
    closed_queue.run("scancel", scene.text("id"))
    execution = collect(runner, ["k"])["k"]
    assert execution.problem == Lost("its job left no record; PSI/J says CANCELED")
    assert scene.adopter("slurm").poll(["k"], 0) == [execution]
    scene.start_by_hand()
    assert scene.executions() == 0, "a job that was given up began"


def test_a_run_whose_supervisor_died_is_lost(scene: Scene, slurm: Cluster) -> None:
    runner = scene.runner("slurm")
    runner.submit(JOB)
    scene.wait_begun(runner)
    os.kill(int(scene.text("claimed").split()[0]), signal.SIGKILL)
    problem = collect(runner, ["k"])["k"].problem
    assert isinstance(problem, Lost)


def test_a_run_whose_folder_was_removed_is_lost(scene: Scene, local: str) -> None:
    runner = scene.runner(local)
    runner.submit(JOB)
    scene.wait_begun(runner)
    shutil.rmtree(scene.folder / "runs" / "k")
    problem = scene.finished(runner).problem
    assert isinstance(problem, Lost)
    assert "gone" in problem.reason


def test_a_run_that_was_cut_short_is_lost(scene: Scene, local: str) -> None:
    """Whoever stops a job signals all of it, and its command may well end as if nothing was."""
    scene.script = "read -r _ _ _ job _ </proc/$PPID/stat; kill -TERM $job"
    runner = scene.runner(local)
    runner.submit(JOB)
    assert scene.finished(runner).problem == Lost("it was stopped, but not by luthier")


def test_a_node_without_python_is_told(scene: Scene, local: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/python")
    programs = scene.folder / "bin"
    programs.mkdir()
    for name in ("bash", "cat", "dirname", "date", "uname"):
        (programs / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(programs))
    runner = scene.runner(local)
    runner.submit(JOB)
    problem = collect(runner, ["k"])["k"].problem
    assert isinstance(problem, Failed)
    assert problem.reason.startswith("no Python on ")


def test_a_queue_that_cannot_be_read_is_no_end(scene: Scene, slurm: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """The reason for which one job waits breaks every answer that PSI/J gets."""
    runner = scene.runner("slurm")
    runner.submit(JOB)
    scene.wait_begun(runner)
    node = next(node for node in slurm.nodes if node not in slurm.run("squeue", "--noheader", "--format=%N"))
    partition = ("scontrol", "update", "PartitionName=main")
    slurm.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test")
    slurm.run(*partition, "State=DOWN")
    caplog.set_level("WARNING", "psij")
    try:
        slurm.run("sbatch", "--partition=urgent", f"--nodelist={node}", "--output=/dev/null", "--wrap=true")
        listed = ("squeue", "--noheader", "--states=PENDING", "--Format=Reason:90")
        wait_until(lambda: "," in slurm.run(*listed), "a reason with a comma is listed")
        runner.submit(Job("waiting", Config({})))
        wait_unread(runner, ["k", "waiting"], caplog)
        runner.cancel(["waiting"])
        assert collect(runner, ["waiting"])["waiting"].problem == Pruned("cancelled")
        assert scene.finished(runner).problem is None
    finally:
        slurm.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
        slurm.run(*partition, "State=UP")


def test_a_queue_that_does_not_answer_is_no_end(
    scene: Scene, closed_queue: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    runner = scene.runner("slurm")
    runner.submit(JOB)
    scene.misbehave("squeue", "exit 1", monkeypatch)
    caplog.set_level("WARNING", "psij")
    wait_unread(runner, ["k"], caplog)
    (scene.folder / "bin" / "squeue").unlink()
    closed_queue.run("scontrol", "update", "PartitionName=main", "State=UP")
    assert scene.finished(runner).problem is None


def wait_unread(runner: PsijRunner, keys: list[str], caplog: pytest.LogCaptureFixture) -> None:
    """Poll until PSI/J has failed to read the queue often enough to call every job failed, and has not done so."""

    def is_so() -> bool:
        assert not runner.poll(keys, 0.02)
        assert [runner._watched[key].doubts for key in keys] == [0] * len(keys)
        return caplog.text.count("Polling error") >= 5

    wait_until(is_so, "PSI/J could not read the queue")


def test_a_moment_without_answers_is_no_end(
    scene: Scene, closed_queue: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PSI/J takes all jobs for failed when it cannot ask."""
    runner, path = scene.runner("slurm"), os.environ["PATH"]
    runner.submit(JOB)
    monkeypatch.setenv("PATH", "/nowhere")
    wait_until(lambda: not runner.poll(["k"], 0.02) and runner._watched["k"].doubts > 0, "PSI/J says it failed")
    monkeypatch.setenv("PATH", path)
    closed_queue.run("scontrol", "update", "PartitionName=main", "State=UP")
    assert scene.finished(runner).problem is None


def test_what_a_job_asks_for(scene: Scene, slurm: Cluster) -> None:
    allocation = Allocation("urgent", "project", nodes=2, processes_per_node=2)
    runner = PsijRunner(
        lambda config: Command(("sh", "-c", scene.script)), "slurm", scene.folder / "runs", allocation=allocation
    )
    runner.submit(Job("k", Config({}), timeout_s=61.0))
    assert scene.finished(runner).problem is None
    shown = slurm.run("scontrol", "show", "job", scene.text("id"))
    for words in ("Partition=urgent", "Account=project", "NumNodes=2", "NumTasks=4", "TimeLimit=00:04:00"):
        assert words in shown


def test_a_first_refusal_is_told_and_a_later_one_waited_for(
    scene: Scene, slurm: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    runner = scene.runner("slurm")
    partition = ("scontrol", "update", "PartitionName=main")
    slurm.run(*partition, "State=DRAIN")
    try:
        with pytest.raises(UnavailableError, match=r"psij:slurm: sbatch: error: .*partition not available"):
            runner.submit(JOB)
        slurm.run(*partition, "State=UP")
        (scene.folder / "gate").touch()
        runner.submit(JOB)
        collect(runner, ["k"])
        slurm.run(*partition, "State=DRAIN")
        runner.submit(Job("later", Config({})))
        for _ in range(5):
            assert not runner.poll(["later"], 0.1)
    finally:
        slurm.run(*partition, "State=UP")
    assert collect(runner, ["later"])["later"].problem is None
    assert scene.executions() == 2
    assert len([record for record in caplog.records if "trying again until it works" in record.getMessage()]) == 1


@pytest.mark.parametrize(
    ("allocation", "message"),
    [
        ({"queue": "a\nrm -r"}, r"queue: 'a\\nrm -r' is not allowed in a batch script"),
        ({"nodes": 0}, "nodes: 0 is below 1"),
        ({"walltime_s": 59.0}, "walltime: 59 s is less than a minute"),
    ],
)
def test_what_no_job_can_ask_for(allocation: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Allocation(**allocation)


def test_bad_input_is_told_and_nothing_is_begun(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFoundError, match="psij:pbspro2: PSI/J has no such executor; known: cobalt, flux, "):
        scene.runner("pbspro2")
    with pytest.raises(InvalidInputError, match="a b/runs': PSI/J needs a folder without spaces"):
        runner_of(scene.folder / "a b", lambda config: Command(("true",)), "local")
    unlimited = PsijRunner(lambda config: Command(("true",)), "local", scene.folder / "runs")
    with pytest.raises(InvalidInputError, match="walltime: a batch system ends jobs after some time"):
        unlimited.submit(JOB)
    assert not (scene.folder / "runs").exists()
    monkeypatch.setitem(sys.modules, "psij", None)
    with pytest.raises(NotFoundError, match=r"psij: the package is not installed; pip install 'luthier\[psij\]'"):
        scene.runner("local")
