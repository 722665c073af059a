"""The learned stop rule, and the forecast behind it."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import luthier as lt
from luthier import tunio
from luthier.errors import InvalidInputError
from luthier.policies import Progress
from luthier.policies.forecast import FEWEST_STEPS, HORIZONS, Forecast, features, outlook, shipped
from luthier.policies.learned import LearnedStop, relative_times
from luthier.trial import Completed, Config, Estimate, Failed, Trial

FALLING = [10.0, 8.0, 7.0, 6.5, 6.4, 6.4]
FLAT = [10.0, 8.0, 7.0, *([7.5] * 40)]


def search(values: Sequence[float | None], *, cost_s: float | None = None, unit_s: float = 1.0) -> Progress:
    """One run of each configuration, which takes as long as its value, or three times the unit if it failed."""
    trials = [
        Trial(Config({"x": at}), (Failed("exit 1"),), None)
        if value is None
        else Trial(Config({"x": at}), (Completed(value),), Estimate(value, 1))
        for at, value in enumerate(values)
    ]
    costs = [cost_s or (3.0 * unit_s if value is None else abs(value)) for value in values]
    return Progress(trials, None, [], list(range(len(values))), 0, 100, 0.0, costs)


def test_a_search_without_progress_ends_and_one_with_progress_goes_on() -> None:
    assert LearnedStop(1000)(search(FALLING)) is None
    assert LearnedStop(100)(search(FLAT)) is not None


def test_more_production_runs_never_end_a_search_sooner() -> None:
    for values in (FALLING, FLAT, FLAT[:12]):
        ended = [LearnedStop(runs)(search(values)) is not None for runs in (1, 10, 100, 1000, 10_000, 10**6, 10**9)]
        assert ended == sorted(ended, reverse=True)
        assert ended[0]
        assert not ended[-1]


def test_the_reason_has_figures_that_can_be_checked() -> None:
    reason = LearnedStop(100)(search(FLAT))
    assert reason is not None
    words = reason.split()
    saved_s, cost_s = (float(words[words.index(verb) + 1]) for verb in ("save", "cost"))
    assert "in 100 runs" in reason
    assert 0.0 < saved_s < cost_s
    steps = 1 if words[2] == "configuration" else int(words[2])
    assert cost_s == pytest.approx(steps * sum(FLAT) / len(FLAT), rel=0.01)


def test_values_in_seconds_of_production_count_beside_the_cost_of_shorter_runs() -> None:
    short = search(FLAT, cost_s=0.5)
    assert LearnedStop(50)(short) is not None
    assert LearnedStop(50, saves_seconds=True)(short) is None


def test_nothing_is_decided_before_there_is_something_to_decide_on() -> None:
    rule = LearnedStop(1)
    assert rule(search([])) is None
    assert rule(search(FLAT[: FEWEST_STEPS - 1])) is None
    assert rule(search([None] * 30)) is None
    assert rule(search([10.0, *([None] * 30)])) is None
    assert rule(replace(search(FLAT), costs_s=())) is None, "the cost is unknown"
    assert rule(search([10.0, 5.0, 0.0, -3.0, *FLAT])) is None, "values of both signs are no times"
    assert rule(search(FLAT[:FEWEST_STEPS])) is not None


def test_configurations_that_are_running_count_for_nothing() -> None:
    before = search(FLAT[:20])
    running = Trial(Config({"x": 99}), (), None)
    during = replace(
        before, trials=[*before.trials, running], steps=[*before.steps, 20], costs_s=[*before.costs_s, None]
    )
    reasons = [LearnedStop(100)(progress) for progress in (before, during)]
    assert reasons[0] == reasons[1]


@given(
    st.lists(st.one_of(st.none(), st.floats(1.0, 100.0)), min_size=6, max_size=60),
    st.sampled_from([1e-6, 1e-3, 60.0, 1e6]),
    st.integers(1, 10**6),
)
def test_the_unit_of_time_does_not_matter(values: list[float | None], unit: float, runs: int) -> None:
    plain = LearnedStop(runs)(search(values))
    scaled = LearnedStop(runs)(search([None if value is None else value * unit for value in values], unit_s=unit))
    assert (plain is None) == (scaled is None)


@given(st.lists(st.floats(1.0, 100.0), min_size=6, max_size=60), st.integers(1, 10**5))
def test_a_rate_that_is_maximized_is_judged_like_the_time_it_stands_for(times: list[float], runs: int) -> None:
    """The engine turns the sign of a maximized value: a run of 4 s does 1000 / 4 operations a second."""
    costs = list(times)
    of_times = replace(search(times), costs_s=costs)
    of_rates = replace(search([-1000.0 / time for time in times]), costs_s=costs)
    assert (LearnedStop(runs)(of_times) is None) == (LearnedStop(runs)(of_rates) is None)


def test_repeats_make_a_configuration_dearer() -> None:
    once = search(FLAT)
    twice = replace(
        once,
        trials=[replace(trial, outcomes=trial.outcomes * 2) for trial in once.trials],
        steps=[number for number in once.steps for _ in (0, 1)],
        costs_s=[cost for cost in once.costs_s for _ in (0, 1)],
        budget=200,
    )
    costs = []
    for progress in (once, twice):
        reason = LearnedStop(100)(progress)
        assert reason is not None
        costs.append(float(reason.split()[-2]))
    assert costs[1] == pytest.approx(2.0 * costs[0], rel=0.01)


def test_a_rule_leaves_what_it_is_given_alone() -> None:
    progress = search([*FLAT, None])
    copy = search([*FLAT, None])
    assert LearnedStop(10)(progress) == LearnedStop(10)(progress)
    assert progress == copy


def test_relative_times() -> None:
    assert relative_times([None, 4.0, None, 2.0, 3.0]) == pytest.approx([1.0, 1.0, 0.5, 0.5])
    assert relative_times([-4.0, -8.0]) == pytest.approx([1.0, 0.5])
    assert relative_times([4.0, -1.0]) is None
    assert relative_times([0.0, 1.0]) is None
    assert relative_times([None]) is None
    extreme = relative_times([1e300, 1e-300, 5e-324])
    assert extreme is not None
    assert (extreme > 0.0).all()
    assert LearnedStop(10)(search([1e300, 1e-300, 5e-324, 1e-10, 1.0, 1e300])) is not None


def test_the_forecast_is_finite_for_any_search() -> None:
    rng = np.random.default_rng(1)
    for steps in (1, 2, 5, 400):
        best = np.minimum.accumulate(np.exp(rng.normal(0.0, 30.0, steps)))
        gains = shipped().gains(features(best)[None, :])
        assert gains.shape == (1, len(HORIZONS))
        assert np.isfinite(gains).all()
        assert ((gains >= 0.0) & (gains <= 1.0)).all()


def test_a_forecast_is_stored_as_plain_numbers() -> None:
    rebuilt = Forecast.from_json(json.loads(json.dumps(shipped().to_json())))
    row = features(np.array([1.0, 0.5, 0.4]))[None, :]
    assert rebuilt.gains(row) == pytest.approx(shipped().gains(row))


def test_no_step_left_means_no_outlook() -> None:
    best = np.array([1.0, 0.9, 0.8, 0.8, 0.8])
    assert outlook(best, 1.0, 100.0, 0.0, shipped()) is None
    found = outlook(best, 1.0, 100.0, 1.0, shipped())
    assert found is not None
    assert found.steps == 1
    free = outlook(best, 0.0, 100.0, math.inf, shipped())
    assert free is not None
    assert free.pays


@pytest.mark.parametrize("runs", [0, -1])
def test_a_senseless_number_of_production_runs(runs: int) -> None:
    with pytest.raises(InvalidInputError, match="production runs"):
        LearnedStop(runs)


class TestAttached:
    """`tunio.stop`, for tuners other than luthier's."""

    def test_it_is_the_same_rule(self) -> None:
        stop = tunio.stop(production_runs=100, iterations=100)
        reasons = [stop(at, min(FLAT[: at + 1]), cost_s=value) for at, value in enumerate(FLAT)]
        rule = [LearnedStop(100)(search(FLAT[: at + 1])) for at in range(len(FLAT))]
        assert [reason is None for reason in reasons] == [reason is None for reason in rule]
        assert reasons[-1] is not None
        assert "iteration" in reasons[-1]

    def test_iterations_may_be_skipped_and_the_clock_is_used(self) -> None:
        now = [0.0]
        stop = tunio.stop(1, timer=lambda: now[0])
        reason = None
        for iteration in (0, 5, 10, 20):
            now[0] += 10.0
            reason = stop(iteration, 2.0)
        assert reason is not None
        words = reason.split()
        steps = 1 if words[2] == "iteration" else int(words[2])
        assert float(words[-2]) == pytest.approx(steps * 40.0 / 21.0, rel=0.01)

    def test_a_rate(self) -> None:
        stop = tunio.stop(10, goal="maximize", run_s=100.0)
        assert [stop(at, 50.0 + at, cost_s=1000.0) for at in range(6)][-1] is not None
        stop = tunio.stop(10**7, goal="maximize", run_s=100.0)
        assert [stop(at, 50.0 + at, cost_s=1000.0) for at in range(6)][-1] is None

    @pytest.mark.parametrize(("iteration", "best"), [(0, 1.0), (-1, 1.0), (1, math.nan), (1, math.inf), (1, 0.0)])
    def test_senseless_calls_are_told(self, iteration: int, best: float) -> None:
        stop = tunio.stop()
        stop(0, 2.0, cost_s=1.0)
        with pytest.raises(InvalidInputError):
            stop(iteration, best, cost_s=1.0)

    def test_senseless_settings_are_told(self) -> None:
        with pytest.raises(InvalidInputError):
            tunio.stop(0)
        with pytest.raises(InvalidInputError):
            tunio.stop(goal="more")  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError):
            tunio.stop(run_s=0.0)
        with pytest.raises(InvalidInputError):
            tunio.stop()(0, 1.0, cost_s=-1.0)


def test_the_former_names_still_work_with_a_warning() -> None:
    for name in tunio.__all__:
        with pytest.warns(DeprecationWarning, match=f"luthier.tunio.{name}"):
            assert getattr(lt, name) is getattr(tunio, name)
