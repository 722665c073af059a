import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.statistics.drift import (
    STEADY,
    Drift,
    RunAtMoment,
    _has_trend,
    _most_different_side,
    _most_different_stretch,
    drift_of,
)
from luthier.statistics.outliers import Outlier, TimedRun, outliers_of

SEEDS = range(40)


def readings(count: int, level: Callable[[float], float], seed: int, *, heavy: bool = False) -> list[RunAtMoment]:
    """One a minute; `level` is over the share of the time that has passed."""
    rng = random.Random(seed)
    noise = [1.0 + 0.1 * rng.paretovariate(1.7) if heavy else math.exp(rng.gauss(0.0, 0.05)) for _ in range(count)]
    return [RunAtMoment(60.0 * at, 10.0 * level(at / count) * noise[at]) for at in range(count)]


def kinds(count: int, level: Callable[[float], float], *, heavy: bool = False) -> list[str]:
    return [drift_of(readings(count, level, seed, heavy=heavy)).kind for seed in SEEDS]


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("count", [6, 12, 30])
def test_a_steady_machine_is_seldom_called_unsteady(count: int, heavy: bool) -> None:
    assert kinds(count, lambda _: 1.0, heavy=heavy).count("steady") >= 0.9 * len(SEEDS)


@pytest.mark.parametrize("heavy", [False, True])
def test_a_jump_is_found_where_it_was(heavy: bool) -> None:
    found = [drift_of(readings(24, lambda at: 1.6 if at >= 0.5 else 1.0, seed, heavy=heavy)) for seed in SEEDS]
    jumped = [drift for drift in found if drift.kind == "jumps" and len(drift.moments) == 1]
    assert len(jumped) >= 0.8 * len(SEEDS)
    near = [abs(drift.moments[0] - 60.0 * 11.5) <= 120.0 for drift in jumped]
    assert sum(near) >= 0.8 * len(near)
    assert all(1.3 < drift.factor(60.0 * 23) < 2.0 and drift.factor(0.0) == 1.0 for drift in jumped)


def test_a_slow_hour_in_the_middle_is_found() -> None:
    assert kinds(40, lambda at: 1.6 if 0.4 <= at < 0.7 else 1.0).count("jumps") >= 0.9 * len(SEEDS)


def test_a_slope_is_told_from_a_jump() -> None:
    found = [drift_of(readings(20, lambda at: math.exp(0.5 * at), seed)) for seed in SEEDS]
    slid = [drift for drift in found if drift.kind == "slope"]
    assert len(slid) >= 0.8 * len(SEEDS)
    assert all(1.4 < drift.factors[-1] < 2.0 for drift in slid)
    assert all(1.0 < drift.factor(60.0 * 10) < drift.factor(60.0 * 19) == drift.factor(1e9) for drift in slid)


def test_what_has_no_factors_is_steady() -> None:
    falling = [RunAtMoment(float(at), 3.0 - at) for at in range(8)]
    assert drift_of(falling) == STEADY
    assert drift_of([]) == STEADY
    assert drift_of([RunAtMoment(0.0, 1.0)] * 20) == STEADY


positive = st.floats(1e-300, 1e300)


moments = st.integers(0, 1_000_000).map(float)


@given(
    st.lists(st.builds(RunAtMoment, moments, positive), max_size=10, unique_by=lambda reading: reading.at_s),
    st.floats(-1e6, 1e7),
)
@settings(deadline=None, max_examples=40)
def test_any_readings_have_a_level(values: list[RunAtMoment], at_s: float) -> None:
    drift = drift_of(values)
    assert drift.factor(at_s) > 0.0
    assert drift == drift_of(values[::-1])
    assert drift.sentence()


def test_it_says_what_happened() -> None:
    assert STEADY.sentence() == "steady"
    assert Drift("jumps", (90.0, 1200.0), (1.8, 1.0)).sentence() == "jumped to 1.8x after 90 s, to 1x after 20 min"
    assert Drift("slope", (0.0, 600.0), (1.0, 1.25)).sentence() == "slid to 1.25x within 10 min"


def _runs(values: list[float], trial: int = 0, first: int = 0) -> list[TimedRun]:
    return [TimedRun(first + at, trial, 60.0 * (first + at), value) for at, value in enumerate(values)]


def test_a_run_far_off_is_an_outlier() -> None:
    usual = [1.0, 1.02, 0.99, 1.01, 0.98]
    assert outliers_of(_runs(usual), STEADY) == []
    (found,) = outliers_of(_runs([*usual, 1.5, 1.0]), STEADY)
    assert (found.run, round(found.factor, 1)) == (5, 1.5)
    assert found.reason.startswith("alone")


def test_the_reason_of_an_outlier() -> None:
    usual = [1.0, 1.02, 0.99, 1.01, 0.98, 1.0, 1.01]
    pair = outliers_of(_runs([*usual, 1.5, 1.6, *usual]), STEADY)
    assert [outlier.reason for outlier in pair] == ["its neighbours in time were off as well"] * 2
    jump = Drift("jumps", (60.0 * 6.5,), (1.5,))
    (late,) = outliers_of(_runs([*usual, 1.5]), jump)
    assert late.reason == "the machine was at 1.5x then"
    (early,) = outliers_of(_runs([*usual, 0.6]), STEADY)
    assert early.reason.startswith("alone")
    assert early.factor < 1.0


def test_two_runs_have_no_outlier_and_configurations_are_not_mixed() -> None:
    assert outliers_of(_runs([1.0, 9.0]), STEADY) == []
    assert outliers_of([*_runs([1.0, 1.01, 0.99]), *_runs([9.0, 9.05, 8.9], 1, 3)], STEADY) == []
    assert outliers_of([], STEADY) == []
    assert outliers_of(_runs([-1.0, 1.0, 2.0, 3.0]), STEADY) == []


@given(st.lists(st.builds(TimedRun, st.integers(0, 50), st.integers(0, 3), st.floats(0.0, 1e6), positive), max_size=20))
@settings(deadline=None)
def test_any_runs_can_be_looked_at(runs: list[TimedRun]) -> None:
    assert all(isinstance(found, Outlier) and found.factor > 0.0 for found in outliers_of(runs, STEADY))


def test_a_slope_stays_within_the_readings() -> None:
    """A few readings early, many close together at the end, as a verification makes them."""
    early = [(0.0, 3.6), (200.0, 3.3), (400.0, 3.0)]
    late = [(600.0 + 0.05 * step, 1.6 - 0.03 * step) for step in range(10)]
    drift = drift_of([RunAtMoment(at_s, value) for at_s, value in early + late])
    values = [value for _, value in early + late]
    for at_s in (0.0, 300.0, 600.0, 601.0, 2000.0):
        assert min(values) / max(values) <= drift.factor(at_s) <= max(values) / min(values)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_a_jump_between_few_readings_is_found_in_any_unit(unit: float) -> None:
    """Too few for a test of ranks: the step is 0.47 on a logarithmic scale, and neighbours differ by 0.01 to 0.02."""
    values = [10.0, 10.1, 9.9, 16.0, 16.2, 15.9]
    drift = drift_of([RunAtMoment(60.0 * at, unit * value) for at, value in enumerate(values)])
    assert (drift.kind, drift.moments, drift.gaps) == ("jumps", (150.0,), ((120.0, 180.0),))
    assert drift.factors == pytest.approx((1.6,))
    assert drift.possible(150.0) == pytest.approx((1.0, 1.6))


def test_how_much_a_part_differs_from_the_rest() -> None:
    """Difference of the mean ranks, times the root of the product of the sizes."""
    assert _most_different_side([5.0, 4.0, 3.0, 2.0, 1.0, 0.0]) == (9.0, 0, 3)  # (4 - 1) * sqrt(3 * 3)
    assert _most_different_stretch([0.0, 1.0, 5.0, 6.0, 7.0, 2.0, 3.0, 4.0]) == pytest.approx((4.0 * 15.0**0.5, 2, 5))
    assert _most_different_side([0.0, 1.0, 2.0, 3.0, 4.0]) == (0.0, 0, 0), "three on either side at least"


@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize(
    ("values", "is_trend"),
    [
        # Kendall's score, its variance, and (score - 1) / deviation by hand; 2 % are exceeded above 2.326
        ([4, 1, 2, 3, 5, 6, 7], False),  # 15, 44.3: 2.10
        ([1, 4, 2, 3, 5, 6, 7], True),  # 17, 44.3: 2.40
        ([10, 1, 2, 3, 4, 5, 6, 7, 8, 9], False),  # 27, 125: 2.3255
        ([1, 10, 2, 3, 4, 5, 6, 7, 8, 9], True),  # 29, 125: 2.50
        ([0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1], False),  # 30, 156, as there are two groups of equal ones: 2.32
        ([0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1], True),  # 32, 156: 2.48; without the groups 212.7: 2.13
        ([3] * 20, False),
    ],
)
def test_a_trend_is_what_kendalls_test_says(values: list[float], is_trend: bool, falling: bool) -> None:
    assert _has_trend([-value for value in values] if falling else values) == is_trend
