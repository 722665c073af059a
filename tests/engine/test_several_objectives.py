"""Experiments with two and three objectives, from the plan to the function that is tuned."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import luthier as lt
from luthier.engine.plan import Plan
from luthier.engine.session import plan_of
from luthier.errors import InvalidInputError
from luthier.result.result import Result, conclude
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.transfer.lessons import best_configs
from luthier.trial import Completed, Config, Failed, Outcome, Run

SPACE = Space(Integer("x", 0, 20, default=10), Integer("y", 0, 20, default=10))
TWO = Experiment(space=SPACE, budget=40, objectives=(Objective("a"), Objective("b", "maximize")), seed=2)


def answer(config: Config) -> Outcome:
    """The less the better, the more the better: y = 0 is right, x is a matter of taste."""
    x, y = int(str(config["x"])), int(str(config["y"]))
    return Completed(float(x + y + 1), (100.0 - (20 - x) ** 2 - y,))


def play(plan: Plan, most: int = 1000) -> Result:
    for _ in range(most):
        orders = plan.orders(1, 0.0)
        if not orders:
            break
        order = orders[0]
        run = Run(len(plan.runs), order.trial, order.purpose, order.config, 0.0, plan.events)
        plan.submitted(run)
        plan.finished(replace(run, outcome=answer(run.config), finish_order=plan.events, duration_s=1.0))
    return conclude(plan.experiment, plan.runs)


def values(result: Result) -> list[tuple[float, float]]:
    return [(trial.estimate.value, trial.others[0].value) for trial in result.front if trial.estimate is not None]


def test_the_front_in_the_users_units() -> None:
    result = play(plan_of(TWO))
    assert len(result.runs) == 40, "nothing is kept for a verification"
    assert {run.purpose for run in result.runs} == {"default", "search"}
    found = values(result)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(found))
    assert sum(trial.config["y"] == 0 for trial in result.front) >= 12
    assert not result.improved
    assert result.speedup is None


def test_the_recommended_one_is_no_worse_than_the_default_in_anything() -> None:
    result = play(plan_of(TWO))
    assert result.default is not None
    assert result.best.estimate is not None
    assert result.default.estimate is not None
    assert result.best.estimate.value < result.default.estimate.value
    assert result.best.others[0].value >= result.default.others[0].value
    assert result.recommended == result.best.config
    better = sum(a < 21.0 and b > -10.0 for a, b in values(result))
    assert f"{len(result.front)} configurations on the Pareto front, {better} of them better" in result.verdict


def conclusion(outcomes: Sequence[Outcome]) -> Result:
    runs = [
        Run(i, i, "search" if i else "default", Config({"x": i, "y": 0}), 0.0, 2 * i, 2 * i + 1, outcome=outcome)
        for i, outcome in enumerate(outcomes)
    ]
    return conclude(TWO, runs)


def test_a_default_that_nothing_beats_everywhere_stays() -> None:
    result = conclusion([Completed(5.0, (5.0,)), Completed(4.0, (4.0,)), Completed(6.0, (6.0,))])
    assert result.recommended == Config({"x": 0, "y": 0})
    assert result.verdict == (
        "3 configurations on the Pareto front, 0 of them better than the default in every objective (not verified)"
    )


def test_a_default_that_fails_is_nothing_to_compare_with() -> None:
    result = conclusion([Failed("exit 1"), Completed(4.0, (4.0,)), Completed(6.0, (6.0,)), Completed(6.0, (5.0,))])
    assert result.recommended == Config({"x": 1, "y": 0})
    assert result.verdict.startswith("2 configurations on the Pareto front; the default gave no number")
    assert conclusion([Failed("exit 1")]).front == ()
    assert conclusion([Failed("exit 1")]).recommended is None


def test_with_one_objective_the_front_is_the_best_one() -> None:
    experiment = Experiment(space=SPACE, objectives=(Objective("a"),))
    runs = [
        Run(i, i, "search", Config({"x": i, "y": 0}), 0.0, 2 * i, 2 * i + 1, outcome=Completed(value))
        for i, value in enumerate((3.0, 2.0, 4.0))
    ]
    assert [trial.config["x"] for trial in conclude(experiment, runs).front] == [1]


@pytest.mark.parametrize("cut", [1, 7, 25])
def test_a_replayed_history_goes_on_the_same(cut: int) -> None:
    twice = replace(TWO, resample="static:2")
    whole = play(plan_of(twice))
    assert {trial.others[0].count for trial in whole.trials[5:]} == {2}
    first, second = plan_of(twice), plan_of(twice)
    play(first, cut)
    second.replay(first.runs)
    assert play(second).runs == whole.runs


def test_members_of_an_earlier_front_are_tried_first() -> None:
    earlier = play(plan_of(TWO))
    first = tuple(best_configs(earlier))
    assert len(first) == 3
    assert set(first) <= {trial.config for trial in earlier.front}
    later = play(plan_of(replace(TWO, budget=10, first=first)))
    assert [run.config for run in later.runs[1:4]] == list(first)
    assert len(later.runs) == 10
    assert later.best.config == earlier.best.config


def test_a_function_with_three_goals_and_its_history(tmp_path: Path) -> None:
    def measure(config: Config) -> tuple[float, ...]:
        x, y = int(str(config["x"])), int(str(config["y"]))
        if (x, y) == (3, 3):
            return (1.0,)  # no three numbers: a failure
        return float(x), float(y), float(x + y)

    store = str(tmp_path / "three.db")
    result = lt.tune(measure, SPACE, goals=("minimize", "minimize", "maximize"), budget=30, seed=1, store=store)
    assert len(result.runs) == 30
    assert all(len(trial.others) == 2 for trial in result.front)
    from luthier.store import open_store

    history = open_store(store)
    again = conclude(Experiment.from_json(history.experiment(1).settings), history.runs(1))
    assert again.front == result.front
    assert again.verdict == result.verdict


def test_the_wrong_number_of_values_is_a_failure() -> None:
    one = lt.tune(lambda config: (1.0, 2.0), SPACE, budget=2)
    assert "returned 2 numbers, expected 1" in one.verdict
    two = lt.tune(lambda config: 1.0, SPACE, budget=2, goals=("minimize", "minimize"))
    assert "returned 1 numbers, expected 2" in two.verdict
    with pytest.raises(InvalidInputError, match="one goal, or a list of goals"):
        lt.tune(lambda config: 1.0, SPACE, goal="maximize", goals=("minimize", "minimize"))
    with pytest.raises(InvalidInputError, match="neither"):
        lt.tune(lambda config: 1.0, SPACE, goals=("minimize", "most"))  # type: ignore[arg-type]  # wrong on purpose
