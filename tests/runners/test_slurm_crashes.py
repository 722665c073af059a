"""Whoever dies, and whenever: every run is made at most once, and reported once."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.slurm.cluster import Cluster, wait_until

from luthier.errors import UnavailableError
from luthier.runners.contract import collect
from luthier.runners.slurm import Batch, SlurmRunner
from luthier.trial import Config, Execution, Failed, Job, Lost, Pruned

PARENT = """
import sys
from luthier.runners.slurm import Batch, SlurmRunner
from luthier.trial import Config, Job

folder, script = sys.argv[1:]
runner = SlurmRunner(lambda config: Batch(script), folder)
runner.submit(Job("k", Config({})))
print("submitted", flush=True)
sys.stdin.read()
"""

LATE = 'kill -9 $PPID; until [ -e sent ]; do sleep 0.05; done; "$SBATCH" --hold "$@" >/dev/null; touch late'
DEAF = '"$SBATCH" "$@" >/dev/null; echo "sbatch: error: Socket timed out on send/recv operation" >&2; exit 1'


class Scene:
    """A folder, a job that leaves a trace and waits to be let go, and an sbatch that can be made to misbehave."""

    def __init__(self, folder: Path, slurm: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.slurm = slurm
        self.script = f"#!/bin/sh\necho run >> {folder}/log\nuntil [ -e {folder}/gate ]; do sleep 0.05; done\n"
        self.sbatch = shutil.which("sbatch")
        self.programs = folder / "bin"
        self.programs.mkdir()
        monkeypatch.setenv("PATH", f"{self.programs}:{os.environ['PATH']}")

    def misbehave(self, script: str) -> None:
        """Put another sbatch in front of the real one, whose path it finds in `$SBATCH`."""
        program = self.programs / "sbatch"
        program.write_text(f"#!/bin/sh\nSBATCH={self.sbatch}\ncd {self.folder}\n{script}\n")
        program.chmod(0o755)

    def behave(self) -> None:
        (self.programs / "sbatch").unlink()

    def dying_parent(self) -> None:
        """Submit the job from a process that its own sbatch kills."""
        argv = [sys.executable, "-c", PARENT, str(self.folder / "runs"), self.script]
        assert subprocess.run(argv, check=False).returncode == -signal.SIGKILL
        self.behave()

    def runner(self, script: str | None = None) -> SlurmRunner:
        batch = Batch(script or self.script)
        return SlurmRunner(
            lambda config: batch, self.folder / "runs", slots=4, grace_s=0.5, ask_every_s=0.2, settle_s=1.0
        )

    def adopter(self) -> SlurmRunner:
        """A runner that would fail rather than make up the job anew."""
        runner = SlurmRunner(
            lambda config: pytest.fail("rendered again"), self.folder / "runs", ask_every_s=0.2, settle_s=1.0
        )
        runner.submit(Job("k", Config({})))
        return runner

    def let_go(self) -> None:
        (self.folder / "gate").touch()

    def executions(self) -> int:
        log = self.folder / "log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def jobs(self) -> int:
        """How many jobs Slurm has seen of this scene's run."""
        name = (self.folder / "runs" / "k" / "name").read_text().strip()
        return len(self.slurm.run("squeue", "--noheader", "--states=all", f"--name={name}", "--format=%A").split())


@pytest.fixture
def scene(tmp_path: Path, slurm: Cluster, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, slurm, monkeypatch)


def finished(scene: Scene, runner: SlurmRunner) -> Execution:
    scene.let_go()
    return collect(runner, ["k"])["k"]


def test_killed_before_sbatch(scene: Scene) -> None:
    scene.misbehave("kill -9 $PPID")
    scene.dying_parent()
    assert finished(scene, scene.adopter()).problem is None
    assert (scene.executions(), scene.jobs()) == (1, 1)


def test_killed_after_sbatch_before_the_number_is_noted(scene: Scene) -> None:
    scene.misbehave('"$SBATCH" "$@"; kill -9 $PPID')
    scene.dying_parent()
    assert finished(scene, scene.adopter()).problem is None
    assert (scene.executions(), scene.jobs()) == (1, 1)


def test_killed_while_sbatch_is_still_on_its_way(scene: Scene) -> None:
    """The sbatch of the dead process comes through after another was sent: two jobs, one run."""
    scene.misbehave(LATE)
    scene.dying_parent()
    runner = scene.adopter()
    wait_until(lambda: not runner.poll(["k"], 0.02) and scene.executions() == 1, "the run has begun")
    (scene.folder / "sent").touch()
    wait_until((scene.folder / "late").exists, "the late sbatch has come through")
    for _ in range(20):
        assert not runner.poll(["k"], 0.1), "the late job was taken for the one that runs"
    assert finished(scene, runner).problem is None
    assert (scene.executions(), scene.jobs()) == (1, 2)
    assert scene.slurm.run("squeue", "--noheader", "--states=PENDING") == ""


def test_a_late_sbatch_does_not_bring_back_what_was_cancelled(scene: Scene) -> None:
    scene.misbehave(LATE)
    scene.dying_parent()
    runner = scene.adopter()
    runner.cancel(["k"])
    (scene.folder / "sent").touch()
    wait_until((scene.folder / "late").exists, "the late sbatch has come through")
    assert collect(runner, ["k"])["k"].problem == Pruned("cancelled")
    assert scene.executions() == 0


def test_killed_while_the_job_runs(scene: Scene) -> None:
    argv = [sys.executable, "-c", PARENT, str(scene.folder / "runs"), scene.script]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        parent.kill()
    assert finished(scene, scene.adopter()).problem is None
    assert (scene.executions(), scene.jobs()) == (1, 1)


def test_an_answer_that_was_lost(scene: Scene) -> None:
    """Slurm took the job, but sbatch did not hear of it."""
    scene.misbehave(DEAF)
    runner = scene.runner()
    runner.submit(Job("k", Config({})))
    assert finished(scene, runner).problem is None
    assert (scene.executions(), scene.jobs()) == (1, 1)


def test_a_limit_on_jobs_is_waited_for_as_long_as_others_are_queued(scene: Scene) -> None:
    limit = "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit)"
    runner = scene.runner()
    runner.submit(Job("other", Config({})))
    scene.misbehave(f'echo "{limit}" >&2; exit 1')
    runner.submit(Job("k", Config({})))
    for _ in range(10):
        assert not runner.poll(["k", "other"], 0.1)
    scene.let_go()
    reported = collect(runner, ["k", "other"])
    assert reported["other"].problem is None
    assert reported["k"].problem == Failed(limit)


def test_the_controller_goes_away_and_comes_back(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    runner, hanging = scene.runner(), scene.runner("#!/bin/sh\nexec sleep 3600\n")
    runner.submit(Job("before", Config({})))
    hanging.submit(Job("cancelled", Config({})))
    wait_until(lambda: not runner.poll(["before"], 0.02) and scene.executions() == 1, "the run has begun")
    scene.slurm.order("stop slurmctld")
    try:
        runner.submit(Job("during", Config({})))
        hanging.cancel(["cancelled"])
        scene.let_go()
        wait_until((scene.folder / "runs" / "before" / "result").exists, "the run has ended")
        for _ in range(10):
            assert not runner.poll(["before", "during"], 0.1)
    finally:
        scene.slurm.order("start slurmctld")
    reported = collect(runner, ["before", "during"])
    assert [execution.problem for execution in reported.values()] == [None, None]
    assert scene.executions() == 2
    assert collect(hanging, ["cancelled"])["cancelled"].problem == Pruned("cancelled")
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "Unable to contact slurm controller" in warnings[0]


def test_a_job_that_starts_after_it_was_called_off_does_nothing(scene: Scene) -> None:
    scene.misbehave('"$SBATCH" --hold "$@"')
    runner = scene.runner()
    runner.submit(Job("k", Config({})))
    runner.cancel(["k"])  # the runner itself is not asked before the job is over
    number = (scene.folder / "runs" / "k" / "id").read_text().strip()
    scene.slurm.run("scontrol", "release", number)
    squeue = ("squeue", "--noheader", "--states=all", f"--jobs={number}", "--format=%T")
    wait_until(lambda: scene.slurm.run(*squeue).strip() == "COMPLETED", "the job is over")
    assert collect(runner, ["k"])["k"].problem == Pruned("cancelled")
    assert scene.executions() == 0


def test_a_node_daemon_that_is_restarted_is_no_loss(scene: Scene) -> None:
    runner = scene.runner()
    runner.submit(Job("k", Config({})))
    wait_until(lambda: not runner.poll(["k"], 0.02) and scene.executions() == 1, "the run has begun")
    for order in ("stop", "start"):
        scene.slurm.order(f"{order} {scene.slurm.nodes[0]}")
    assert finished(scene, runner).problem is None


def test_a_run_whose_supervisor_died_is_lost(scene: Scene) -> None:
    runner = scene.runner()
    runner.submit(Job("k", Config({})))
    wait_until(lambda: not runner.poll(["k"], 0.02) and scene.executions() == 1, "the run has begun")
    os.kill(int((scene.folder / "runs" / "k" / "claimed").read_text().split()[0]), signal.SIGKILL)
    problem = collect(runner, ["k"])["k"].problem
    assert isinstance(problem, Lost)
    assert "left no record; Slurm says FAILED" in problem.reason


def test_a_job_that_vanished_with_its_folder_is_lost(scene: Scene) -> None:
    runner = scene.runner()
    runner.submit(Job("k", Config({})))
    wait_until(lambda: not runner.poll(["k"], 0.02) and scene.executions() == 1, "the run has begun")
    shutil.rmtree(scene.folder / "runs" / "k")
    scene.let_go()
    problem = collect(runner, ["k"])["k"].problem
    assert isinstance(problem, Lost)
    assert "gone" in problem.reason


def test_a_folder_that_cannot_be_written_is_told(scene: Scene) -> None:
    (scene.folder / "runs").write_text("no folder")
    with pytest.raises(UnavailableError, match="cannot submit the run"):
        scene.runner().submit(Job("k", Config({})))
