"""Finished experiments become records that new jobs are matched with."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.replayed import replayed

from luthier.runners.replay import ReplayedRun, ReplayRunner
from luthier.space import Integer, Space
from luthier.spec.component import Component
from luthier.spec.experiment import Experiment
from luthier.spec.script import JobScript
from luthier.store import open_server_store
from luthier.store.base import RequestedBy
from luthier.store.ownership import this_process
from luthier.store.server_store import ServerStore
from luthier.submission.matching import NewJob
from luthier.submission.store import job_records_in
from luthier.submission.tuned_jobs import Matcher, examine
from luthier.trial import Config

NOW = 1_700_000_000.0
SCRIPT = """#!/bin/bash
#SBATCH -J angry_ant
#SBATCH -N 2
srun /home/ann/ant/solver --size=4
"""
COMPONENT = Component.model_validate(
    {
        "parameters": {
            "level": {"type": "int", "default": 1, "env_var": True},
            "fixed": {"type": "str", "default": "yes", "env_var": True},
        },
        "plugin": "constraint=fast",
    }
)
SPACE = Space(Integer("level", 1, 8, default=1))


@pytest.fixture
def store(tmp_path: Path) -> ServerStore:
    return open_server_store(f"sqlite:///{tmp_path}/x.db")


def finished(
    store: ServerStore, seconds: Callable[[Config], float], *, script: JobScript | None = None, author: str = ""
) -> int:
    """An experiment that has finished, in virtual time."""
    command = script or JobScript(COMPONENT, SCRIPT, "job.sh", "slurm", component_name="cache")
    experiment = Experiment(space=SPACE, command=command, budget=24, seed=1)
    record = store.history.create("one", experiment.to_json(), NOW, RequestedBy(author) if author else None)
    runner = ReplayRunner(lambda config, repeat, now_s: ReplayedRun(seconds(config), seconds(config)))
    return replayed(store.history, record, experiment, runner)[0].id


def faster_with(config: Config) -> float:
    return 40.0 / (3 + int(config["level"]))


def slower_with(config: Config) -> float:
    return 10.0 + int(config["level"])


def test_a_proven_improvement_makes_a_record(store: ServerStore) -> None:
    number = finished(store, faster_with)
    assert examine(store, NOW + 5, "ann") == 1
    assert examine(store, NOW + 6, "ann") == 0
    found = job_records_in(store).find(number)
    assert found is not None
    job, tuned = found.job, found.tuned
    assert (job.user, job.name, job.program, job.nodes) == ("ann", "angry_ant", "solver", 2)
    assert job.submitted_at.timestamp() == NOW
    assert (tuned.component, tuned.config, tuned.options) == ("cache", {"level": 8}, ("--constraint=fast",))
    assert tuned.environment == {"level": "8", "fixed": "yes"}
    assert tuned.default_value == pytest.approx(10.0)
    assert tuned.best_value == pytest.approx(40 / 11)
    assert tuned.speedup == pytest.approx(2.75)
    assert not tuned.keeps_default


def test_without_an_improvement_jobs_keep_the_default(store: ServerStore) -> None:
    number = finished(store, slower_with)
    examine(store, NOW, "ann")
    found = job_records_in(store).find(number)
    assert found is not None
    assert found.tuned.keeps_default
    assert (found.tuned.environment, found.tuned.options, found.tuned.speedup) == ({}, (), 1.0)


def test_only_batch_scripts_make_records(store: ServerStore) -> None:
    for script in (
        JobScript(COMPONENT.model_copy(update={"plugin": ""}), SCRIPT, "job.sh", "local"),
        JobScript(Component.model_validate({"command": "true", "parameters": COMPONENT.parameters}), "", "x", "slurm"),
    ):
        finished(store, faster_with, script=script)
    assert examine(store, NOW, "ann") == 2
    assert not job_records_in(store).all()


def test_the_author_is_the_user(store: ServerStore) -> None:
    numbers = [finished(store, faster_with, author=author) for author in ("bob", "local")]
    examine(store, NOW, "ann")
    records = [job_records_in(store).find(number) for number in numbers]
    assert [record.job.user for record in records if record is not None] == ["bob", "ann"]


def test_settings_that_cannot_be_read_are_looked_at_once(store: ServerStore) -> None:
    good = finished(store, faster_with)
    broken, owner = store.history.create("broken", {"from": "the future"}, NOW).id, this_process()
    assert store.history.claim(broken, owner, NOW, None)
    store.history.close(broken, owner, "finished", {})
    last = finished(store, faster_with)
    assert examine(store, NOW, "ann") == 3
    assert examine(store, NOW, "ann") == 0
    assert {record.experiment_id for record in job_records_in(store).all()} == {good, last}


def test_the_index_follows_the_store(store: ServerStore) -> None:
    matcher = Matcher(store, "ann", lambda: NOW)
    at = datetime.fromtimestamp(NOW, UTC) + timedelta(days=3)
    job = NewJob("ann", "calm_ant", "solver", "srun /home/ann/ant/solver --size=4", at, 2)
    assert matcher.match(job) == []
    number = finished(store, faster_with)
    assert matcher.match(job) == []
    matcher.refresh()
    (found,) = matcher.match(job)
    record = job_records_in(store).get(found.record)
    assert record.experiment_id == number
    assert found.by_field["path"] == found.by_field["options"] == found.by_field["user"] == 1.0
    assert matcher.match(replace(job, user="eve", name="zzz", program="q", command="/x")) == []
    job_records_in(store).withdraw(found.record, "slower")
    matcher.refresh()
    assert matcher.match(job) == []
    job_records_in(store).restore(found.record)
    matcher.refresh()
    assert [one.record for one in matcher.match(job)] == [found.record]
    store.queue.delete(number, None)
    matcher.refresh()
    assert matcher.match(job) == []
