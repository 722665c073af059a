import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.slurm.cluster import Cluster, wait_until

from luthier.errors import InvalidInputError, NotFoundError
from luthier.runners.base import Runner
from luthier.runners.contract import RunnerContract, collect
from luthier.runners.slurm import Batch, SlurmRunner
from luthier.trial import Config, Execution, Failed, Job, Lost, Pruned, TimedOut

SCRIPT = """#!/bin/bash
echo run >> "$STAGE/starts.$NUMBER"
case $BEHAVIOUR in
    fail) echo as told >&2; exit 3;;
    wait) until [ -e "$STAGE/gate" ]; do sleep 0.05; done;;
    hang) exec sleep 3600;;
esac
"""


class SlurmStage:
    """A folder in which jobs leave traces."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def render(self, config: Config) -> Batch:
        names = {"STAGE": str(self.folder), "NUMBER": str(config["number"]), "BEHAVIOUR": str(config["behaviour"])}
        return Batch(SCRIPT, names)

    def runner(self, slots: int) -> Runner:
        return runner_of(self.folder, self.render, slots)

    def let_go(self) -> None:
        (self.folder / "gate").touch()

    def starts(self, number: int) -> int:
        path = self.folder / f"starts.{number}"
        return len(path.read_text().splitlines()) if path.exists() else 0


class TestSlurmRunner(RunnerContract):
    @pytest.fixture
    def stage(self, slurm: Cluster, tmp_path: Path) -> SlurmStage:
        return SlurmStage(tmp_path)


def runner_of(folder: Path, render: Callable[[Config], Batch], slots: int = 8) -> SlurmRunner:
    return SlurmRunner(render, folder / "runs", slots, grace_s=0.5, ask_every_s=0.2, settle_s=1.0)


def run(
    folder: Path,
    body: str,
    *,
    options: tuple[str, ...] = (),
    timeout_s: float | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Execution:
    runner = runner_of(folder, lambda config: Batch(f"#!/bin/bash\n{body}\n", environment, options))
    runner.submit(Job("k", Config({}), timeout_s))
    return collect(runner, ["k"])["k"]


def output(execution: Execution, name: str = "stdout") -> str:
    assert execution.logs is not None
    return (Path(execution.logs) / name).read_text()


def wait_started(runner: SlurmRunner, *keys: str) -> None:
    """Poll until the named jobs run."""

    def all_run() -> bool:
        assert not runner.poll(keys, 0.02)
        return all(runner.started_at(key) is not None for key in keys)

    wait_until(all_run, f"{keys} have begun")


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(TEXTS, min_size=20, max_size=60))
def test_every_text_reaches_the_job_verbatim(
    slurm: Cluster, tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    texts += ["a,b=c,ALL", "$(touch pwned)`id`", "line\nline\r\n", "'\"\\", "größe 速度 🚀", "", "*", "-n"]
    environment = {f"TEXT{number}": text for number, text in enumerate(texts)}
    execution = run(tmp_path_factory.mktemp("environment"), "env -0", environment=environment)
    assert execution.logs is not None
    content = (Path(execution.logs) / "stdout").read_bytes()
    seen = dict(pair.partition(b"=")[::2] for pair in content.split(b"\0"))
    assert {name: seen[name.encode()].decode() for name in environment} == environment


def test_the_job_has_the_options_of_its_script_and_more(slurm: Cluster, tmp_path: Path) -> None:
    there = tmp_path / "it's 100 %j"
    there.mkdir()
    body = f'# first\n#SBATCH --comment "two words"\n\n#SBATCH --chdir="{there}"\npwd; echo "$SLURM_CPUS_PER_TASK"'
    execution = run(there, body, options=("--cpus-per-task=2",))
    assert execution.problem is None
    assert output(execution) == f"{there}\n2\n"
    assert "Comment=two words" in slurm.run("scontrol", "show", "job", _number(execution))


def test_any_interpreter_will_do(slurm: Cluster, tmp_path: Path) -> None:
    runner = runner_of(tmp_path, lambda config: Batch("#!/usr/bin/env python3\nprint(6 * 7)\n"))
    runner.submit(Job("k", Config({})))
    assert output(collect(runner, ["k"])["k"]) == "42\n"


def test_steps_are_measured_and_end_with_their_job(slurm: Cluster, tmp_path: Path) -> None:
    execution = run(tmp_path, "srun sleep 3600", timeout_s=0.5)
    assert execution.problem == TimedOut("took longer than 0.5 s")
    assert execution.metrics["wall_s"] == execution.duration_s >= 0.5
    assert execution.metrics["wall_s"] < 60


def test_slurm_is_told_how_the_script_ended(slurm: Cluster, tmp_path: Path) -> None:
    for body, code in (("exit 7", "7:0"), ("kill -9 $$", "0:9")):
        execution = run(tmp_path / code, body)
        listed = slurm.run("scontrol", "show", "job", _number(execution))
        assert "JobState=FAILED" in listed
        assert f"ExitCode={code}" in listed


def test_time_in_the_queue_does_not_count(slurm: Cluster, tmp_path: Path) -> None:
    runner = runner_of(tmp_path, lambda config: Batch("#!/bin/sh\ntrue\n", options=("--hold",)))
    runner.submit(Job("k", Config({})))
    for _ in range(20):
        assert not runner.poll(["k"], 0.02)
    assert runner.started_at("k") is None
    released_at = time.time()
    slurm.run("scontrol", "release", (tmp_path / "runs" / "k" / "id").read_text().strip())
    execution = collect(runner, ["k"])["k"]
    assert execution.problem is None
    assert execution.started_at >= released_at - 0.1  # file times are a clock tick behind
    assert execution.started_at + execution.duration_s <= time.time()


def test_the_start_is_known_while_it_runs(slurm: Cluster, tmp_path: Path) -> None:
    runner = runner_of(tmp_path, lambda config: Batch("#!/bin/sh\nexec sleep 3600\n"))
    before = time.time()
    runner.submit(Job("k", Config({})))
    wait_started(runner, "k")
    began_at = runner.started_at("k")
    assert began_at is not None
    assert before - 0.1 <= began_at <= time.time()
    runner.cancel(["k"])
    execution = collect(runner, ["k"])["k"]
    assert execution.problem == Pruned("cancelled")
    assert execution.duration_s > 0
    assert runner.started_at("k") is None


def test_a_waiting_job_can_be_cancelled(slurm: Cluster, tmp_path: Path) -> None:
    runner = runner_of(tmp_path, lambda config: Batch("#!/bin/sh\ntouch ran\n", options=("--hold",)))
    runner.submit(Job("k", Config({})))
    assert not runner.poll(["k"], 0)
    runner.cancel(["k"])
    execution = collect(runner, ["k"])["k"]
    assert (execution.problem, execution.duration_s) == (Pruned("cancelled"), 0.0)
    runner.submit(Job("k", Config({})))
    assert collect(runner, ["k"])["k"].problem == Pruned("cancelled")


def test_what_slurm_never_takes_has_failed(slurm: Cluster, tmp_path: Path) -> None:
    refused = run(tmp_path / "a", "true", options=("--partition=nowhere",)).problem
    assert isinstance(refused, Failed)
    assert "Invalid partition name specified" in refused.reason
    assert run(tmp_path / "b", "true", options=("--nodes=99",)).problem == Failed(
        "Slurm will never start it: PartitionConfig"
    )
    assert "PENDING" not in slurm.run("squeue", "--noheader", "--format=%T")


def test_a_refusal_stands(slurm: Cluster, tmp_path: Path) -> None:
    options = ["--partition=nowhere"]
    runner = runner_of(tmp_path, lambda config: Batch("#!/bin/sh\ntouch ran\n", options=tuple(options)))
    runner.submit(Job("k", Config({})))
    first = collect(runner, ["k"])
    options.clear()
    runner.submit(Job("k", Config({})))
    assert collect(runner, ["k"]) == first


def test_a_closed_partition_is_waited_for(slurm: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    runner = runner_of(tmp_path, lambda config: Batch("#!/bin/sh\ntrue\n"))
    slurm.run("scontrol", "update", "PartitionName=main", "State=DRAIN")
    try:
        for key in "ab":
            runner.submit(Job(key, Config({})))
        for _ in range(20):
            assert not runner.poll(["a", "b"], 0.05)
    finally:
        slurm.run("scontrol", "update", "PartitionName=main", "State=UP")
    assert all(execution.problem is None for execution in collect(runner, ["a", "b"]).values())
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "partition not available" in warnings[0]


def test_a_job_without_python_says_so(slurm: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    bare = tmp_path / "bin"
    bare.mkdir()
    for program in ("sh", "ln", "uname", "sed"):
        (bare / program).symlink_to(f"/bin/{program}")
    problem = run(tmp_path, "true", options=(f"--export=PATH={bare}",)).problem
    assert isinstance(problem, Failed)
    assert problem.reason.startswith("no Python on ")


def test_another_python_is_found_in_the_path(slurm: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    assert run(tmp_path, "true").problem is None


def test_filters_in_the_environment_are_no_trouble(
    slurm: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("SQUEUE_FORMAT", "%i"), ("SQUEUE_PARTITION", "urgent"), ("SBATCH_ARRAY_INX", "1-3")):
        monkeypatch.setenv(name, value)
    assert run(tmp_path, "true").problem is None


def test_without_slurm_nothing_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    runner = runner_of(tmp_path, lambda config: Batch("#!/bin/sh\n"))
    with pytest.raises(NotFoundError, match="sbatch: no such program"):
        runner.submit(Job("k", Config({})))
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("script", "environment", "options", "message"),
    [
        ("echo 1", {}, (), "names no interpreter"),
        ("#!/bin/sh", {"": "x"}, (), "is not a valid name of a variable"),
        ("#!/bin/sh", {"a=b": "x"}, (), "is not a valid name of a variable"),
        ("#!/bin/sh", {}, ("--array=1-3",), "one job"),
        ("#!/bin/sh\n#SBATCH -W\n", {}, (), "one job"),
    ],
)
def test_bad_batches(script: str, environment: dict[str, str], options: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Batch(script, environment, options)


@pytest.mark.parametrize(
    ("job", "batch"),
    [
        (Job("../k", Config({})), Batch("#!/bin/sh")),
        (Job("k", Config({}), 0.0), Batch("#!/bin/sh")),
        (Job("k", Config({})), Batch("#!/bin/sh", {"A": "\0"})),
        (Job("k", Config({})), Batch("#!/bin/sh\n\0")),
        (Job("k", Config({})), Batch("#!/bin/sh", options=("\ud800",))),
    ],
)
def test_bad_jobs_change_nothing(slurm_cluster: Cluster, tmp_path: Path, job: Job, batch: Batch) -> None:
    runner = runner_of(tmp_path, lambda config: batch)
    with pytest.raises(InvalidInputError):
        runner.submit(job)
    assert not (tmp_path / "runs").exists()


def _number(execution: Execution) -> str:
    return output(execution, "taken").strip()


FATES = {
    "timeout": "sleep 3600",
    "cancelled": "sleep 3600",
    "preempted": "trap 'exit 0' TERM; sleep 3600 & wait",
    "requeued": "sleep 3600",
    "memory": "python3 -c 'import time; x = bytearray(300_000_000); time.sleep(3600)'; echo went on",
    "node": "sleep 3600",
}


def test_every_fate_is_told_apart(slurm: Cluster, tmp_path: Path) -> None:
    """All at once, because Slurm takes its time over some of them."""

    def render(config: Config) -> Batch:
        fate = str(config["fate"])
        node = slurm.nodes[1] if fate == "node" else slurm.nodes[0]
        options = [f"--nodelist={node}", *(["--mem=50M"] if fate == "memory" else [])]
        return Batch(f"#!/bin/bash\n{FATES[fate]}\n", options=tuple(options))

    runner = runner_of(tmp_path, render)
    for fate in ("timeout", "cancelled", "node", "memory", "requeued"):
        runner.submit(Job(fate, Config({"fate": fate})))
    wait_started(runner, "timeout", "cancelled", "node", "requeued")
    began_at = runner.started_at("timeout") or 0.0
    wait_until(lambda: time.time() > began_at + 2.0, "it may end: Slurm counts whole seconds")
    number = {fate: (tmp_path / "runs" / fate / "taken").read_text().strip() for fate in FATES if fate != "preempted"}
    slurm.run("scontrol", "update", f"JobId={number['timeout']}", "EndTime=now")
    slurm.run("scancel", number["cancelled"])
    slurm.run("scontrol", "update", f"JobId={number['requeued']}", "Requeue=1")
    slurm.run("scontrol", "requeue", number["requeued"])
    slurm.lose(slurm.nodes[1])
    ended = collect(runner, [fate for fate in FATES if fate != "preempted"])
    problems = {fate: execution.problem for fate, execution in ended.items()}
    assert problems == {
        "timeout": TimedOut("Slurm ended it at its time limit"),
        "cancelled": Lost("it was cancelled, but not by luthier"),
        "requeued": Lost("it was requeued after it had begun"),
        "memory": Failed("out of memory"),
        "node": Lost("its node failed"),
    }
    assert ended["timeout"].metrics["wall_s"] > 0


def test_a_preempted_run_is_not_taken_for_a_fast_one(slurm: Cluster, tmp_path: Path) -> None:
    body = f"#!/bin/bash\n{FATES['preempted']}\n"
    runner = runner_of(tmp_path, lambda config: Batch(body, options=("--nodes=2", "--exclusive")))
    runner.submit(Job("k", Config({})))
    wait_started(runner, "k")
    slurm.run("sbatch", "--partition=urgent", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=true")
    assert collect(runner, ["k"])["k"].problem == Lost("it was preempted by another job")


def test_what_slurm_has_forgotten_is_known_from_its_record(slurm: Cluster, tmp_path: Path) -> None:
    runner = runner_of(tmp_path, lambda config: Batch(f"#!/bin/sh\n{config['body']}\n"))
    configs = {
        name: Config({"body": body})
        for name, body in (("done", "exit 0"), ("failed", "exit 5"), ("lost", "sleep 3600"))
    }
    for name, config in configs.items():
        runner.submit(Job(name, config))
    wait_started(runner, "lost")
    for name in ("done", "failed"):
        wait_until((tmp_path / "runs" / name / "result").exists, f"{name} has a result")
    supervisor = (tmp_path / "runs" / "lost" / "claimed").read_text().split()[0]
    os.kill(int(supervisor), 9)
    slurm.forget_jobs()
    adopter = runner_of(tmp_path, lambda config: pytest.fail("rendered again"))
    keys = ["done", "failed", "lost"]
    for key in keys:
        adopter.submit(Job(key, configs[key]))
    problems = [execution.problem for execution in collect(adopter, keys).values()]
    number = (tmp_path / "runs" / "lost" / "id").read_text().strip()
    lost = Lost(f"Slurm no longer knows job {number}, and it left no record")
    assert sorted(problems, key=str) == sorted([None, Failed("exit code 5"), lost], key=str)
