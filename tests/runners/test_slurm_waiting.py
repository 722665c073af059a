"""What a job waits for is known, on a real Slurm; a job that can never start is not waited for."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.slurm import accounting
from tests.slurm.cluster import Cluster, cluster, missing_program, wait_until

from luthier.runners.base import BatchRunner
from luthier.runners.contract import collect
from luthier.runners.pace import Pace
from luthier.runners.slurm import Batch, SlurmRunner
from luthier.trial import BatchJob, Config, Execution, Failed, Job

TRUE = "#!/bin/sh\ntrue\n"


def runner_of(folder: Path, *options: str, script: str = TRUE, ask_every_s: float = 0.2) -> SlurmRunner:
    return SlurmRunner(
        lambda config: Batch(script, options=options), folder, 8, grace_s=0.5, ask_every_s=ask_every_s, settle_s=1.0
    )


def wait_for(runner: SlurmRunner, key: str, state: str) -> BatchJob:
    """Poll until a job is in a state."""
    found: list[BatchJob] = []

    def is_there() -> bool:
        assert not runner.poll([key], 0.02)
        job = runner.batch_job(key)
        assert job is not None
        found.append(job)
        return job.state == state

    wait_until(is_there, f"{key} is {state}")
    return found[-1]


def names(slurm: Cluster) -> list[str]:
    return slurm.run("squeue", "--noheader", "--states=PENDING,RUNNING", "--format=%j").split()


def test_a_job_that_waits_says_for_what(slurm: Cluster, tmp_path: Path) -> None:
    runner = runner_of(tmp_path, "--hold", script="#!/bin/sh\nexec sleep 3600\n")
    assert isinstance(runner, BatchRunner)
    assert runner.batch_job("k") is None
    runner.submit(Job("k", Config({})))
    job = wait_for(runner, "k", "PENDING")
    assert (job.reason, job.began_at) == ("JobHeldUser", None)
    assert job.number == slurm.run("squeue", "--noheader", "--format=%A").strip()
    slurm.run("scontrol", "release", job.number)
    running = wait_for(runner, "k", "RUNNING")
    assert (running.number, running.reason) == (job.number, "")
    assert running.began_at is not None
    runner.cancel(["k"])
    assert collect(runner, ["k"])["k"].batch_job == job.number
    assert runner.batch_job("k") is None


def test_a_job_that_is_not_accepted_yet_says_why(slurm: Cluster, tmp_path: Path) -> None:
    runner = runner_of(tmp_path)
    slurm.run("scontrol", "update", "PartitionName=main", "State=DRAIN")
    try:
        runner.submit(Job("k", Config({})))
        job = runner.batch_job("k")
        assert job is not None
        assert (job.number, job.state, job.began_at) == ("", "NOT SUBMITTED", None)
        assert "partition not available" in job.reason
    finally:
        slurm.run("scontrol", "update", "PartitionName=main", "State=UP")
    assert collect(runner, ["k"])["k"].batch_job is not None


def test_people_recognise_their_jobs_in_squeue(slurm: Cluster, tmp_path: Path) -> None:
    """Two runs of the same label are two jobs; without a label there is the key."""
    runner = runner_of(tmp_path, "--hold")
    for key in "ab":
        runner.submit(Job(key, Config({}), label="3-run12"))
    runner.submit(Job("c", Config({})))
    assert sorted(name.rpartition("-")[0] for name in names(slurm)) == [
        "3-run12-luthier",
        "3-run12-luthier",
        "c-luthier",
    ]
    assert len(set(names(slurm))) == 3
    assert "3-run12-" in slurm.run("squeue", "--noheader"), "in the columns that squeue shows by default"
    runner.cancel(["a", "b", "c"])
    collect(runner, ["a", "b", "c"])


def test_a_result_is_reported_long_before_the_next_question_is_due(slurm: Cluster, tmp_path: Path) -> None:
    runner = runner_of(tmp_path, ask_every_s=3600.0)
    began = time.monotonic()
    for key in "ab":
        runner.submit(Job(key, Config({})))
        assert collect(runner, [key])[key].problem is None
    assert time.monotonic() - began < 3600.0


def test_a_pace_that_is_hurried_slows_down_again() -> None:
    pace = Pace(10.0, 30.0)
    pace.done(0.0)
    pace.hurry(1.0)
    assert pace.left_s(0.0) == 1.0
    pace.done(1.0)
    assert pace.left_s(1.0) == 1.5
    pace.hurry()
    pace.hurry(100.0)
    assert pace.left_s(1.0) == 1.5, "whoever is in less of a hurry does not slow it down"
    for _ in range(20):
        pace.done(1.0)
    pace.hurry()
    assert pace.left_s(1.0) == 10.0


@pytest.fixture(scope="module")
def limited() -> Iterator[Cluster]:
    """A Slurm that enforces limits: jobs of the QOS `short` may take a minute, those of `small` one processor."""
    if (program := missing_program(*accounting.PROGRAMS)) is not None:
        missing(f"Slurm's accounting ({program}) is not installed; as root: sh tests/services.sh")
    with cluster(accounted=True) as up:
        user = up.run("id", "--user", "--name").strip()
        for words in (
            ("add", "account", "all"),
            ("add", "qos", "short", "MaxWall=1"),
            ("add", "qos", "small", "MaxTRESPerJob=cpu=1"),
            ("add", "qos", "single", "MaxJobsPerUser=1"),
            ("add", "user", user, "account=all", "qos=normal,short,small,single"),
            ("modify", "user", user, "set", "DefaultAccount=all"),
        ):
            up.run("sacctmgr", "--immediate", *words)
        with Path(up.environment["SLURM_CONF"]).open("a") as config:
            config.write("\nAccountingStorageEnforce=limits,qos\n")
        for order in ("stop", "start"):
            up.order(f"{order} slurmctld")
        up.wait_idle()
        yield up


def ended(limited: Cluster, monkeypatch: pytest.MonkeyPatch, folder: Path, *options: str) -> Execution:
    for name, value in limited.environment.items():
        monkeypatch.setenv(name, value)
    runner = runner_of(folder, *options)
    runner.submit(Job("k", Config({})))
    return collect(runner, ["k"])["k"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--qos=short", "--time=10"), "QOSMaxWallDurationPerJobLimit"),
        (("--qos=small", "--ntasks=2"), "QOSMaxCpuPerJobLimit"),
    ],
)
def test_a_job_above_the_limit_of_one_job_has_failed(
    limited: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: tuple[str, ...], reason: str
) -> None:
    execution = ended(limited, monkeypatch, tmp_path, *options)
    assert execution.problem == Failed(f"Slurm will never start it: {reason}")
    assert execution.batch_job is not None
    wait_until(lambda: names(limited) == [], "the job is cancelled")
    assert ended(limited, monkeypatch, tmp_path / "normal", "--time=10").problem is None


def test_a_limit_on_all_jobs_of_a_user_is_waited_for(
    limited: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in limited.environment.items():
        monkeypatch.setenv(name, value)
    other = limited.run("sbatch", "--parsable", "--qos=single", "--output=/dev/null", "--wrap=sleep 3600").strip()
    wait_until(lambda: "RUNNING" in limited.run("squeue", "--noheader", "--format=%T"), "the other job runs")
    runner = runner_of(tmp_path, "--qos=single")
    runner.submit(Job("k", Config({})))
    wait_until(lambda: _reason(runner) == "QOSMaxJobsPerUserLimit", "Slurm has said why")
    limited.run("scancel", other)
    assert collect(runner, ["k"])["k"].problem is None


def _reason(runner: SlurmRunner) -> str:
    assert not runner.poll(["k"], 0.02)
    job = runner.batch_job("k")
    assert job is not None
    return job.reason
