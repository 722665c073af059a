"""The runner on a cluster with a real accounting: slurmdbd over MariaDB."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.slurm import accounting
from tests.slurm.cluster import Cluster, cluster, missing_program, wait_until

from luthier.runners import slurm_text
from luthier.runners.contract import collect
from luthier.runners.slurm import Batch, SlurmRunner
from luthier.runners.slurm_commands import call
from luthier.runners.slurm_text import ListedJob
from luthier.trial import Config, Job, Lost

ENDS_EARLY = "trap 'exit 0' TERM; sleep 3600 & wait"


@pytest.fixture(scope="module")
def slurm_cluster() -> Iterator[Cluster]:
    """A throw-away Slurm that keeps accounts."""
    if (program := missing_program(*accounting.PROGRAMS)) is not None:
        missing(f"Slurm's accounting ({program}) is not installed; as root: sh tests/services.sh")
    with cluster(accounted=True) as up:
        yield up


class Scene:
    """Runs that begin under one runner and are adopted by another, after the controller has forgotten them."""

    def __init__(self, folder: Path, slurm: Cluster) -> None:
        self.folder = folder
        self.slurm = slurm
        self.numbers: dict[str, int] = {}
        self.jobs: dict[str, Job] = {}

    def begin(self, **bodies: str) -> None:
        """Submit a job for each of the scripts; returns when all of them have begun."""
        runner = self.runner(lambda config: Batch(f"#!/bin/bash\n{config['body']}\n", options=(str(config["where"]),)))
        for key, body in bodies.items():
            where = f"--nodelist={self.slurm.nodes[key == 'node']}"
            self.jobs[key] = Job(key, Config({"body": body, "where": where}))
            runner.submit(self.jobs[key])
        wait_until(lambda: all(self.note(key, "claimed") for key in bodies), f"{list(bodies)} have begun")
        self.numbers |= {key: int(self.note(key, "taken")) for key in bodies}

    def runner(self, render: Callable[[Config], Batch]) -> SlurmRunner:
        return SlurmRunner(render, self.folder, slots=8, grace_s=0.5, ask_every_s=0.2, settle_s=1.0)

    def adopter(self, *keys: str) -> SlurmRunner:
        """Another runner, with the named runs as its own."""
        runner = self.runner(lambda config: pytest.fail("rendered again"))
        for key in keys:
            runner.submit(self.jobs[key])
        return runner

    def note(self, key: str, name: str) -> str:
        path = self.folder / key / name
        return path.read_text().strip() if path.exists() else ""

    def wait_accounted(self, *keys: str) -> dict[str, ListedJob]:
        """Wait until the accounting has the first ends of the named runs under their names; return them."""
        wait_until(lambda: len(self._accounted(keys)) == len(keys), f"the ends of {keys} are in the accounting")
        return self._accounted(keys)

    def _accounted(self, keys: Sequence[str]) -> dict[str, ListedJob]:
        names = {self.note(key, "name"): key for key in keys}
        listed = ask_accounting(*(self.numbers[key] for key in keys))
        ended = [entry for entry in listed if entry.ended_at is not None and entry.name in names]
        return {names[entry.name]: entry for entry in reversed(ended)}

    def give_numbers_away(self) -> None:
        """Let jobs of somebody else's have the numbers of all runs: a controller without memory counts anew."""
        self.slurm.wait_idle()
        submit = ("sbatch", "--parsable", "--job-name=another", "--output=/dev/null", "--wrap=exit 9")
        numbers = set(self.numbers.values())
        while int(self.slurm.run(*submit)) < max(numbers):
            pass

        def others_accounted() -> bool:
            others = [entry for entry in ask_accounting(*numbers) if entry.name == "another"]
            return {entry.number for entry in others if entry.state == "FAILED"} == numbers

        wait_until(others_accounted, "the other jobs are in the accounting")


@pytest.fixture
def scene(slurm: Cluster, tmp_path: Path) -> Scene:
    return Scene(tmp_path, slurm)


def ask_accounting(*numbers: int) -> list[ListedJob]:
    return slurm_text.parse_sacct(call(slurm_text.sacct_command(numbers)))


def test_the_accounting_says_what_the_controller_said(slurm: Cluster) -> None:
    submit = ("sbatch", "--parsable", "--no-requeue", "--output=/dev/null")
    numbers = [int(slurm.run(*submit, f"--wrap={body}")) for body in ("sleep 1", "exit 3", "sleep 3600")]
    numbers.append(int(slurm.run(*submit, f"--nodelist={slurm.nodes[1]}", "--wrap=sleep 3600")))
    numbers.append(int(slurm.run(*submit, "--hold", "--job-name=a | name|with bars", "--wrap=true")))

    def said() -> dict[int, ListedJob]:
        listed = slurm_text.parse_squeue(call(slurm_text.squeue_command(os.geteuid())))
        return {entry.number: replace(entry, reason="") for entry in listed if entry.number in numbers}

    wait_until(lambda: [said()[number].state for number in numbers[2:4]] == ["RUNNING"] * 2, "the jobs have begun")
    slurm.run("scancel", str(numbers[2]), str(numbers[4]))
    slurm.lose(slurm.nodes[1])
    wait_until(lambda: all(entry.is_over for entry in said().values()), "all jobs are over")
    assert [said()[number].state for number in numbers] == [
        "COMPLETED",
        "FAILED",
        "CANCELLED",
        "NODE_FAIL",
        "CANCELLED",
    ]
    assert all(entry.started_at is not None and entry.ended_at is not None for entry in said().values())
    wait_until(lambda: {entry.number: entry for entry in ask_accounting(*numbers)} == said(), "both say the same")


def test_what_the_controller_has_forgotten_is_told_by_the_accounting(scene: Scene) -> None:
    scene.begin(node="sleep 3600", cancelled="sleep 3600", requeued=ENDS_EARLY, done="sleep 1")
    wait_until((scene.folder / "done" / "result").exists, "one run has ended, a second after the others began")
    requeued = scene.numbers["requeued"]
    scene.slurm.run("scancel", str(scene.numbers["cancelled"]))
    scene.slurm.run("scontrol", "update", f"JobId={requeued}", "Requeue=1")
    scene.slurm.run("scontrol", "requeue", str(requeued))
    scene.slurm.lose(scene.slurm.nodes[1])
    accounted = scene.wait_accounted("done", "cancelled", "node", "requeued")
    scene.slurm.run("scontrol", "update", f"JobId={requeued}", "StartTime=now")
    starts = ["REQUEUED", "COMPLETED"]
    wait_until(lambda: [start.state for start in ask_accounting(requeued)] == starts, "it was started again")
    scene.slurm.forget_jobs()
    ended = collect(scene.adopter(*accounted), list(accounted))
    assert {key: execution.problem for key, execution in ended.items()} == {
        "done": None,
        "cancelled": Lost("it was cancelled, but not by luthier"),
        "node": Lost("its node failed"),
        "requeued": Lost("the supervisor of this run was stopped, but not by luthier"),
    }
    node = accounted["node"]
    assert node.started_at is not None
    assert node.ended_at is not None
    assert ended["node"].duration_s == node.ended_at - node.started_at > 0
    assert node.started_at <= ended["node"].started_at < node.ended_at + 1


def test_an_accounting_that_is_away_or_knows_nothing(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.begin(cancelled="sleep 3600")
    scene.slurm.run("scancel", str(scene.numbers["cancelled"]))
    scene.wait_accounted("cancelled")
    scene.slurm.order("stop slurmdbd")
    scene.begin(done="true", lost="sleep 3600", unknown="sleep 3600")
    wait_until((scene.folder / "done" / "result").exists, "one run has ended")
    for order in ("stop slurmctld", "clear slurmctld", "start slurmdbd", "start slurmctld"):
        scene.slurm.order(order)
    for node in scene.slurm.nodes:
        scene.slurm.lose(node)
    scene.give_numbers_away()
    adopter = scene.adopter("done")
    scene.slurm.order("stop slurmdbd")
    try:
        ended = collect(adopter, ["done"])
        adopter.submit(scene.jobs["lost"])
        ended |= collect(adopter, ["lost"])
    finally:
        scene.slurm.order("start slurmdbd")
    [warning] = caplog.messages
    assert "Connection refused" in warning
    for key in ("cancelled", "unknown"):
        adopter.submit(scene.jobs[key])
    ended |= collect(adopter, ["cancelled", "unknown"])
    assert {key: execution.problem for key, execution in ended.items()} == {
        "done": None,
        "lost": Lost(f"Slurm no longer knows job {scene.numbers['lost']}, and it left no record"),
        "cancelled": Lost("it was cancelled, but not by luthier"),
        "unknown": Lost(f"Slurm no longer knows job {scene.numbers['unknown']}, and it left no record"),
    }
