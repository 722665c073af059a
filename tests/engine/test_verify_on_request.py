"""A request to stop the search and verify what it found, with a scripted runner and a virtual clock."""

from dataclasses import dataclass

import pytest
from tests.engine.test_loop import SPACE, Queue, steady
from tests.replayed import replayed

from luthier.engine.loop import STOPPED, Situation
from luthier.engine.plan import Plan
from luthier.runners.replay import ReplayedRun, ReplayRunner
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.store import open_store
from luthier.store.base import Record, Store
from luthier.trial import Config, Lost

EXPERIMENT = Experiment(space=SPACE, budget=60, objectives=(Objective("returned"),), optimizer="random", seed=4)


@dataclass
class CrashError(Exception):
    pass


def created(experiment: Experiment = EXPERIMENT) -> tuple[Store, Record]:
    store = open_store("memory:")
    return store, store.create("test", experiment.to_json(), 0.0)


@pytest.mark.parametrize("slots", [1, 3])
def test_the_search_ends_and_the_best_configuration_is_verified(slots: int) -> None:
    experiment = Experiment(
        space=SPACE, budget=60, objectives=(Objective("returned"),), optimizer="random", seed=4, slots=slots
    )
    store, record = created(experiment)

    def answers(config: Config, repeat: int, now_s: float) -> ReplayedRun:
        if now_s > 150.0:
            store.request_stop(record.id, "verify")
        return steady(config, repeat, now_s)

    ended, result = replayed(store, record, experiment, ReplayRunner(answers, slots=slots))
    purposes = [run.purpose for run in result.runs]
    searched = purposes.index("verify")
    assert 5 < searched < 30
    assert set(purposes[searched:]) == {"verify"}
    assert ended.status == "finished"
    assert ended.result is not None
    assert ended.result["ending"] == STOPPED
    assert ended.stop_requested is None
    assert result.improved
    assert len(result.runs) < 60


def test_a_request_before_anything_was_measured_waits_for_the_default() -> None:
    store, record = created()
    store.request_stop(record.id, "verify")
    ended, result = replayed(store, record, EXPERIMENT, ReplayRunner(steady))
    assert ended.status == "finished"
    assert [run.purpose for run in result.runs] == ["default"]
    assert not result.improved


def test_jobs_that_wait_are_taken_out_of_the_queue() -> None:
    store, record = created()

    def answers(config: Config, repeat: int, now_s: float) -> ReplayedRun:
        if now_s > 500.0:
            store.request_stop(record.id, "verify")
        return steady(config, repeat, now_s)

    ended, result = replayed(store, record, EXPERIMENT, Queue(answers))
    searched = [run for run in result.runs if run.purpose != "verify"]
    assert searched[-1].outcome == Lost("stopped before it began")
    assert not any(isinstance(run.outcome, Lost) for run in result.runs if run.purpose == "verify")
    assert ended.status == "finished"
    assert result.improved


def test_a_default_that_was_lost_is_measured_again() -> None:
    store, record = created()
    store.request_stop(record.id, "verify")

    def answers(config: Config, repeat: int, now_s: float) -> ReplayedRun:
        return ReplayedRun(1.0, Lost("node failed")) if repeat == 0 else steady(config, repeat, now_s)

    ended, result = replayed(store, record, EXPERIMENT, ReplayRunner(answers))
    assert [(run.purpose, run.trial) for run in result.runs] == [("default", 0)] * 2
    assert ended.status == "finished"


@pytest.mark.parametrize("later", range(1, 14, 3))
def test_a_crash_in_the_middle_keeps_the_decision(later: int) -> None:
    store, record = created()
    asked_at: int | None = None
    calls = 0

    def watch(plan: Plan, now: Situation) -> None:
        nonlocal asked_at, calls
        calls += 1
        if asked_at is None and len(plan.runs) == 12:
            asked_at = calls
            store.request_stop(record.id, "verify")
        if asked_at is not None and calls == asked_at + later:
            raise CrashError

    runner = ReplayRunner(steady)
    with pytest.raises(CrashError):
        replayed(store, record, EXPERIMENT, runner, watch=watch)
    ended, result = replayed(store, store.experiment(record.id), EXPERIMENT, runner)
    assert sum(run.purpose != "verify" for run in result.runs) <= 15  # the request is read once per second
    assert ended.status == "finished"
    assert ended.result is not None
    assert ended.result["ending"] == STOPPED
    assert result.improved


def test_a_search_that_had_ended_keeps_its_own_reason() -> None:
    store, record = created()

    def watch(plan: Plan, now: Situation) -> None:
        if plan.phase == "verify":
            store.request_stop(record.id, "verify")

    ended, _ = replayed(store, record, EXPERIMENT, ReplayRunner(steady), watch=watch)
    assert ended.result is not None
    assert ended.result["ending"] == "every configuration has been tried"


def test_a_later_request_to_stop_stops_it() -> None:
    store, record = created()

    def watch(plan: Plan, now: Situation) -> None:
        if len(plan.runs) == 12:
            store.request_stop(record.id, "verify")
        if plan.phase == "verify":
            store.request_stop(record.id)

    stopped, before = replayed(store, record, EXPERIMENT, ReplayRunner(steady), watch=watch)
    assert stopped.status == "stopped"
    assert len(before.runs) < 60
