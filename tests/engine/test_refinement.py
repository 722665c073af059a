"""More runs for an experiment that was stopped or has ended."""

from pathlib import Path

import pytest
from tests.replayed import replayed

import luthier as lt
from luthier.engine.interrupts import Interrupts
from luthier.engine.refinement import refined
from luthier.engine.session import carry_on, resumable
from luthier.errors import InUseError, InvalidInputError
from luthier.result.result import Result
from luthier.runners.replay import ReplayedRun, ReplayRunner
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment, Refinement
from luthier.spec.objectives import Objective
from luthier.store import open_store
from luthier.store.base import Record, Store
from luthier.store.ownership import claim
from luthier.trial import Config, Failed, Run

SPACE = Space(Integer("x", 1, 60, default=60), Integer("y", 0, 9))
RETURNED = (Objective("returned"),)


def steady(config: Config, repeat: int, now_s: float) -> ReplayedRun:
    value = 10.0 + abs(int(config["x"]) - 17) + 0.1 * int(config["y"]) + 0.01 * (repeat % 3)
    return ReplayedRun(value, value)


def started(experiment: Experiment, runner: ReplayRunner) -> tuple[Store, Record, Result]:
    store = open_store("memory:")
    record = store.create("test", experiment.to_json(), 0.0)
    record, result = replayed(store, record, experiment, runner)
    return store, record, result


def again(store: Store, record: Record, budget: str, runner: ReplayRunner) -> tuple[Record, Result]:
    return replayed(store, record, resumable(store, record, budget), runner)


def purposes(runs: tuple[Run, ...]) -> str:
    return "".join(run.purpose[0] for run in runs)


def test_a_finished_experiment_searches_on_and_is_verified_again() -> None:
    experiment, runner = Experiment(space=SPACE, budget=20, objectives=RETURNED, seed=1), ReplayRunner(steady)
    store, record, before = started(experiment, runner)
    record, result = again(store, record, "+30", runner)
    assert record.status == "finished"
    made = len(before.runs)
    assert result.runs[:made] == before.runs
    assert len(result.runs) <= made + 30
    new = purposes(result.runs[made:])
    assert new.startswith("s" * 20)
    assert new.endswith("vvvvvv")
    tried = [run.config for run in result.runs if run.purpose == "search"]
    assert len(set(tried)) > len({run.config for run in before.runs})
    assert all(run.submit_order >= result.experiment.refinements[0].events for run in result.verification)
    assert result.best.estimate is not None
    assert before.best.estimate is not None
    assert result.best.estimate.value <= before.best.estimate.value
    assert store.experiment(record.id).settings["budget"] == made + 30


def test_what_was_proven_stays_proven_without_a_new_verification() -> None:
    experiment, runner = Experiment(space=SPACE, budget=30, objectives=RETURNED), ReplayRunner(steady)
    store, record, before = started(experiment, runner)
    assert before.improved
    record, result = again(store, record, "+3", runner)
    assert purposes(result.runs[len(before.runs) :]) == "sss"
    assert result.improved
    assert result.verification == before.verification
    assert result.comparison == before.comparison


def test_a_second_refinement_is_about_the_same() -> None:
    experiment, runner = Experiment(space=SPACE, budget=12, objectives=RETURNED), ReplayRunner(steady)
    store, record, _ = started(experiment, runner)
    for _ in range(3):
        made = len(store.runs(record.id))
        record, result = again(store, record, "+12", runner)
        assert purposes(result.runs[made:]).endswith("v")
        assert purposes(result.runs[made:]).startswith("s")
    assert len(result.experiment.refinements) == 3


class CrashError(Exception):
    pass


@pytest.mark.parametrize("at", range(1, 60, 7))
def test_whatever_kills_the_process_it_goes_on_as_if_nothing_had_happened(at: int) -> None:
    experiment, runner = Experiment(space=SPACE, budget=16, objectives=RETURNED, seed=3), ReplayRunner(steady)
    store, record, _ = started(experiment, runner)
    _, undisturbed = again(store, record, "+20", runner)
    runner = ReplayRunner(steady)
    store, record, _ = started(experiment, runner)
    calls = 0

    def watch(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise CrashError

    more = resumable(store, record, "+20")
    with pytest.raises(CrashError):
        replayed(store, record, more, runner, watch=watch)
    broken = store.experiment(record.id)
    assert broken.status == "failed"
    finished, result = replayed(store, broken, resumable(store, broken), runner)
    assert finished.status == "finished"
    assert [(run.config, run.outcome, run.purpose) for run in result.runs] == [
        (run.config, run.outcome, run.purpose) for run in undisturbed.runs
    ]


def test_a_rule_that_ended_the_search_does_not_end_the_runs_that_were_asked_for() -> None:
    experiment = Experiment(space=SPACE, budget=80, objectives=RETURNED, stop=("target 30",), verify_pairs=3)
    runner = ReplayRunner(steady)
    store, record, before = started(experiment, runner)
    assert len(before.runs) < 60
    _, result = again(store, record, "+16", runner)
    assert purposes(result.runs[len(before.runs) :]) == "s" * 10 + "v" * 6


def test_a_stopped_experiment_gets_a_larger_budget_and_one_verification() -> None:
    experiment, runner = Experiment(space=SPACE, budget=20, objectives=RETURNED), ReplayRunner(steady)
    store = open_store("memory:")
    record = store.create("test", experiment.to_json(), 0.0)
    interrupts = Interrupts()

    def stop_after_five(*_: object) -> None:
        if len(store.runs(record.id)) == 5:
            interrupts.count = 1

    stopped, _ = carry_on(
        store, record, experiment, runner, watch=stop_after_five, interrupts=interrupts, virtual_clock=runner.clock
    )
    assert stopped.status == "stopped"
    record, result = again(store, stopped, "+10", runner)
    assert result.experiment.budget == 30
    assert not result.experiment.refinements
    assert purposes(result.runs).count("sv") == 1


def test_a_front_goes_on_in_the_program_that_made_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"

    def measure(config: Config) -> tuple[float, float]:
        return abs(int(config["x"]) - 17) + 1.0, float(config["y"])

    before = lt.tune(measure, SPACE, goals=("minimize", "maximize"), budget=12, store=url)
    with pytest.raises(InvalidInputError, match="is finished"):
        lt.resume(measure, 1, store=url)
    after = lt.resume(measure, 1, store=url, budget="+10")
    assert len(after.runs) == len(before.runs) + 10
    assert purposes(after.runs) == "d" + "s" * 21


def test_a_default_that_failed_is_measured_first() -> None:
    fails_first = [True]

    def answers(config: Config, repeat: int, now_s: float) -> ReplayedRun:
        if fails_first[0] and config == SPACE.default:
            return ReplayedRun(1.0, Failed("not yet"))
        return steady(config, repeat, now_s)

    runner = ReplayRunner(answers)
    store, record, before = started(Experiment(space=SPACE, budget=15, objectives=RETURNED), runner)
    assert before.comparison is None
    fails_first[0] = False
    _, result = again(store, record, "+20", runner)
    assert result.runs[len(before.runs)].purpose == "default"


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ("+0", "adds no runs"),
        ("5", "has made"),
        ("12", "has made"),
        ("-3", "is not understood"),
        ("+1.5", "is not understood"),
        ("", "is not understood"),
        ("many", "is not understood"),
        ("+9999999999", "is not understood"),
    ],
)
def test_invalid_budgets_are_told_and_change_nothing(budget: str, told: str) -> None:
    store, record, _ = started(Experiment(space=SPACE, budget=12, objectives=RETURNED), ReplayRunner(steady))
    with pytest.raises(InvalidInputError, match=told):
        refined(store, record, budget)
    assert store.experiment(record.id) == record


def test_nobody_else_may_be_working_on_it() -> None:
    store, record, _ = started(Experiment(space=SPACE, budget=12, objectives=RETURNED), ReplayRunner(steady))
    more = resumable(store, record, "+5")
    claim(store, record)
    with pytest.raises(InUseError):
        carry_on(store, record, more, ReplayRunner(steady))
    assert store.experiment(record.id).settings == record.settings


def test_a_refinement_is_stored_and_read_back() -> None:
    experiment = Experiment(space=SPACE, refinements=(Refinement(40, 20), Refinement(90, 45)), budget=60)
    assert Experiment.from_json(experiment.to_json()) == experiment
    assert [experiment.round_of(event) for event in (0, 39, 40, 89, 90)] == [0, 0, 1, 1, 2]
    assert experiment.reserved_pairs == 3
