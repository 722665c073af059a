import math
import statistics
from typing import Literal

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st

from luthier.errors import InvalidInputError, NotFoundError
from luthier.statistics.comparison import Comparison, compare
from luthier.statistics.estimate import ESTIMATORS, estimate, estimator_for
from luthier.statistics.student import t_chance, t_quantile
from luthier.trial import Estimate

FINITE = st.floats(-1e300, 1e300)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 9, 10, 50, 199, 200, 201, 202, 1000, 10**6])
def test_student_quantiles(confidence: float, degrees: int) -> None:
    expected = float(scipy.special.stdtrit(degrees, (1 + confidence) / 2))
    assert t_quantile(confidence, degrees) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, math.nan, 95.0])
def test_confidence_is_a_probability(confidence: float) -> None:
    with pytest.raises(InvalidInputError, match="confidence"):
        t_quantile(confidence, 3)


@given(st.floats(-1e6, 1e6), st.integers(1, 60))
def test_student_chances(t: float, degrees: int) -> None:
    assert t_chance(t, degrees) == pytest.approx(float(scipy.special.stdtr(degrees, t)), abs=1e-8)


def test_mean() -> None:
    values = [1.0, 2.0, 4.0, 9.0]
    judged = estimate(values)
    low, high = scipy.stats.t.interval(0.95, 3, loc=4.0, scale=scipy.stats.sem(values))
    assert (judged.value, judged.count) == (4.0, 4)
    assert judged.deviation == pytest.approx(statistics.stdev(values))
    assert [judged.low, judged.high] == pytest.approx([low, high])


def test_median_lies_between_order_statistics() -> None:
    values = [5.0, 1.0, 4.0, 2.0, 3.0, 100.0]
    judged = estimate(values, "median")
    assert (judged.value, judged.low, judged.high) == (3.5, 1.0, 100.0)
    five = estimate(values[:5], "median")
    assert (five.value, five.low, five.high) == (3.0, None, None)
    assert five.deviation is not None


@pytest.mark.parametrize("count", [6, 8, 9, 25, 100, 999, 1000, 2001])
def test_median_intervals_are_the_narrowest_that_are_wide_enough(count: int) -> None:
    judged = estimate([float(number) for number in range(1, count + 1)], "median")
    assert judged.low is not None
    rank = round(judged.low)
    assert judged.high == count + 1 - rank
    coverage = [
        1 - 2 * float(scipy.stats.binom.cdf(r - 1, count, 0.5)) for r in (rank, rank + 2 if count >= 1000 else rank + 1)
    ]
    assert coverage[0] >= 0.95 > coverage[1]


def test_minimum_has_no_interval() -> None:
    assert estimate([3.0, 1.0, 2.0], "minimum") == Estimate(1.0, 3, deviation=1.0)


def test_trimmed_mean_leaves_out_a_fifth_on_either_side() -> None:
    values = [100.0, 1.0, 2.0, 3.0, -50.0]
    judged = estimate(values, "trimmed")
    assert (judged.value, judged.count) == (2.0, 5)
    # the standard error of Yuen 1974: winsorized deviation / ((1 - 2 * 0.2) sqrt(5)), 2 degrees of freedom
    winsorized = statistics.stdev([1.0, 1.0, 2.0, 3.0, 3.0])
    half_width = float(scipy.special.stdtrit(2, 0.975)) * winsorized / (0.6 * math.sqrt(5))
    assert [judged.low, judged.high] == pytest.approx([2.0 - half_width, 2.0 + half_width])
    assert estimate([1.0, 2.0, 6.0, 7.0], "trimmed") == estimate([1.0, 2.0, 6.0, 7.0], "mean")


def test_hodges_lehmann_is_the_median_of_the_pairs_means() -> None:
    judged = estimate([1.0, 2.0, 9.0], "hodges-lehmann")
    assert judged.value == pytest.approx((2.0 + 5.0) / 2)  # of 1, 1.5, 2, 5, 5.5, 9
    assert (judged.low, judged.high) == (None, None)
    six = estimate([1.0, 2.0, 3.0, 4.0, 5.0, 60.0], "hodges-lehmann")
    assert (six.low, six.high) == (1.0, 60.0)


@pytest.mark.parametrize("count", [6, 7, 10, 25, 50, 51, 60])
def test_hodges_lehmann_intervals_are_those_of_the_signed_rank_test(count: int) -> None:
    """Moving all values by an end of the interval makes the test just not reject, by a bit more makes it reject."""
    values = [math.sqrt(2.0 * number) for number in range(1, count + 1)]
    judged = estimate(values, "hodges-lehmann")
    assert judged.low is not None
    inside, outside = (
        scipy.stats.wilcoxon([value - judged.low - step for value in values], method="exact").pvalue
        for step in (1e-9, -1e-9)
    )
    assert inside >= 0.05 * (1.0 if count <= 50 else 0.97)
    assert outside <= 0.05 * (1.0 if count <= 50 else 1.03)


@pytest.mark.parametrize("estimator", ["mean", "median", "hodges-lehmann", "trimmed"])
def test_intervals_hold_the_truth_as_often_as_they_say(estimator: str) -> None:
    rng = np.random.default_rng(11)
    held = 0
    for values in rng.normal(0.0, 1.0, (1000, 8)).tolist():
        judged = estimate(values, estimator)
        assert judged.low is not None
        assert judged.high is not None
        held += judged.low <= 0.0 <= judged.high
    assert 0.93 <= held / 1000 <= 0.995


def test_the_estimator_for_noise_that_only_adds_is_the_minimum() -> None:
    hit = [[1.0, 1.01, 1.8], [2.0, 2.02, 2.01, 3.1], [5.0, 5.1, 9.0], [1.0, 1.5, 1.01]]
    assert estimator_for(hit) == "minimum"
    assert estimator_for(hit[:3]) == "median", "three groups are too few"
    assert estimator_for([*hit[:3], [1.0, 2.0]]) == "median", "two values have no shape"
    assert estimator_for([[-value for value in group] for group in hit]) == "median"
    assert estimator_for([[1.0, 1.0, 1.0]] * 5) == "median"
    assert estimator_for([]) == "median"


@pytest.mark.parametrize(
    ("name", "expected"), [("normal", "median"), ("uniform", "median"), ("pareto", "minimum"), ("hit", "minimum")]
)
def test_the_shape_of_noise_is_told_from_a_dozen_groups_of_four(name: str, expected: str) -> None:
    rng = np.random.default_rng(4)
    shape = (300, 12, 4)
    noise = {
        "normal": rng.normal(10.0, 1.0, shape),
        "uniform": rng.uniform(9.0, 11.0, shape),
        "pareto": 1.0 + 0.2 * (1.0 + rng.pareto(1.7, shape)),
        "hit": 10.0 + 5.0 * (rng.random(shape) < 0.2) + 0.1 * rng.random(shape),
    }[name]
    right = sum(estimator_for(groups) == expected for groups in noise.tolist())
    assert right >= 0.8 * 300


@given(st.lists(st.lists(FINITE, min_size=1, max_size=6), max_size=6))
def test_there_is_an_estimator_for_any_values(groups: list[list[float]]) -> None:
    assert estimator_for(groups) in ESTIMATORS


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_single_runs_have_no_uncertainty(estimator: str) -> None:
    assert estimate([2.5], estimator) == Estimate(2.5, 1)


@given(FINITE, st.integers(2, 30), st.sampled_from(sorted(ESTIMATORS)))
def test_equal_values_are_certain(value: float, count: int, estimator: str) -> None:
    judged = estimate([value] * count, estimator)
    assert judged.value == value
    assert judged.deviation == 0.0
    assert {judged.low, judged.high} <= {value, None}


@given(st.lists(FINITE, min_size=1, max_size=12), st.sampled_from(sorted(ESTIMATORS)))
def test_estimates_lie_within_the_values_and_their_bounds(values: list[float], estimator: str) -> None:
    before = list(values)
    judged = estimate(values, estimator)
    assert values == before
    assert judged == estimate(values[::-1], estimator) or judged.deviation == pytest.approx(
        estimate(values[::-1]).deviation
    )
    assert min(values) <= judged.value <= max(values)
    if judged.low is not None and judged.high is not None:
        assert judged.low <= judged.value <= judged.high


def test_bad_arguments() -> None:
    with pytest.raises(NotFoundError, match="mean, median, minimum"):
        estimate([1.0], "avg")
    for values in ([], [math.nan], [1.0, math.inf]):
        with pytest.raises(InvalidInputError, match="values"):
            estimate(values)


def test_speedup_is_the_ratio_of_the_estimates_with_the_interval_of_the_pairs() -> None:
    compared = compare([8.0, 2.0, 9.0], [2.0, 2.0, 1.0])
    assert compared.speedup == pytest.approx(8.0 / 2.0)
    logs = np.log([4.0, 1.0, 9.0])
    low, high = scipy.stats.t.interval(0.95, 2, loc=logs.mean(), scale=scipy.stats.sem(logs))
    assert [compared.low, compared.high] == pytest.approx([math.exp(low), math.exp(high)])
    assert (compared.pairs, compared.kind, compared.improved) == (3, "ratio", False)


@pytest.mark.parametrize("estimator", ["mean", "median", "minimum", "trimmed", "hodges-lehmann"])
@pytest.mark.parametrize("goal", ["minimize", "maximize"])
def test_one_outlier_moves_the_speedup_as_little_as_the_estimates(
    estimator: str, goal: Literal["minimize", "maximize"]
) -> None:
    default, winner = [10.0, 10.2, 97.0, 9.9, 10.1], [3.0, 3.1, 2.9, 3.05, 2.95]
    sign = 1.0 if goal == "minimize" else -1.0
    before, after = (estimate([sign * v for v in values], estimator).value for values in (default, winner))
    compared = compare(default, winner, estimator=estimator, goal=goal)
    assert compared.speedup == pytest.approx((before / after) ** sign)
    assert compared.low is not None
    assert compared.high is not None
    assert compared.low <= compared.speedup <= compared.high


def test_a_comparison_can_be_reversed() -> None:
    compared = compare([1.0, 1.1, 1.05], [2.0, 2.3, 2.2])
    back = compare([2.0, 2.3, 2.2], [1.0, 1.1, 1.05])
    turned = compared.reversed()
    assert (compared.worsened, back.improved) == (True, True)
    assert [turned.speedup, turned.low, turned.high] == pytest.approx([back.speedup, back.low, back.high])


def test_pairs_cancel_drift() -> None:
    drift = [1.0, 2.0, 4.0, 8.0]
    compared = compare([1.2 * mood for mood in drift], drift)
    assert compared.improved
    assert compared.low == pytest.approx(1.2)


def test_maximised_goals_turn_the_ratio_round() -> None:
    slow, fast = [1.0, 1.1, 0.9], [2.0, 2.3, 1.9]
    assert compare(slow, fast, goal="maximize") == compare(fast, slow)
    assert compare(slow, fast, goal="maximize").improved
    assert compare([0.0, 1.0], [5.0, 6.0], goal="maximize").speedup == 5.0


def test_deterministic_values_are_certain() -> None:
    compared = compare([3.0] * 4, [1.5] * 4, repeatable=True)
    assert compared.low == compared.high == compared.speedup == pytest.approx(2.0)
    assert compared.improved
    same = compare([0.1] * 3, [0.1] * 3, repeatable=True)
    assert (same.low, same.speedup, same.high, same.improved) == (1.0, 1.0, 1.0, False)


def test_one_pair_proves_nothing() -> None:
    assert compare([4.0], [2.0]) == Comparison(pytest.approx(2.0), None, None, 1)  # type: ignore[arg-type]  # approx
    assert not compare([4.0], [2.0]).improved
    assert compare([-4.0], [-5.0]) == Comparison(1.0, None, None, 1, "difference")


def test_differences_where_there_is_no_ratio() -> None:
    compared = compare([-1.0, -3.0, -2.0], [-2.0, -4.0, -3.1])
    gains = np.array([1.0, 1.0, 1.1])
    low, high = scipy.stats.t.interval(0.95, 2, loc=gains.mean(), scale=scipy.stats.sem(gains))
    assert compared.speedup == pytest.approx(-2.0 - -3.1), "of the medians, in the unit of the values"
    assert [compared.low, compared.high] == pytest.approx([low, high])
    assert (compared.kind, compared.improved) == ("difference", True)
    assert compare([0.0, 0.0], [-1.0, -1.0], repeatable=True) == Comparison(1.0, 1.0, 1.0, 2, "difference")
    assert not compare([0.0, 1.0], [0.0, 1.0]).improved


@given(st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=8), st.sampled_from(["minimize", "maximize"]))
@example([(1e-300, 1e300), (-2e-300, 1e300)], "minimize")
def test_any_finite_values_can_be_compared(pairs: list[tuple[float, float]], goal: str) -> None:
    default, winner = [list(values) for values in zip(*pairs, strict=True)]
    compared = compare(default, winner, goal="minimize" if goal == "minimize" else "maximize")
    assert not math.isnan(compared.speedup)
    if compared.low is not None and compared.high is not None:
        assert compared.low <= compared.speedup <= compared.high
    assert compared.kind == ("ratio" if min(default + winner) > 0 else "difference")


@pytest.mark.parametrize(
    ("default", "winner"), [([], []), ([1.0], []), ([1.0], [1.0, 2.0]), ([math.nan], [1.0]), ([1e308], [-1e308])]
)
def test_what_cannot_be_compared(default: list[float], winner: list[float]) -> None:
    with pytest.raises(InvalidInputError, match="values"):
        compare(default, winner)


def lognormal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.lognormal(0.0, 0.05, shape)


def heavy_tailed(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return 1.0 + 0.2 * (1.0 + rng.pareto(1.7, shape))


def shared_cluster(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.lognormal(0.0, 0.25, shape) * np.where(rng.random(shape) < 1 / 16, 4.0, 1.0)


@pytest.mark.parametrize("pairs", [3, 5, 10])
@pytest.mark.parametrize("noise", [lognormal, heavy_tailed, shared_cluster])
def test_noise_alone_seldom_looks_like_an_improvement(noise: object, pairs: int) -> None:
    assert callable(noise)
    runs = noise(np.random.default_rng(7), (2000, 2, pairs))
    false_alarms = sum(compare(default.tolist(), winner.tolist()).improved for default, winner in runs)
    assert false_alarms < 0.05 * len(runs)
    found = sum(
        compare((1.5 * default).tolist(), winner.tolist()).improved
        for default, winner in lognormal(np.random.default_rng(7), (200, 2, pairs))
    )
    assert found > 190


def test_equal_ratios_tell_no_interval_before_the_sixth_pair() -> None:
    assert compare([3.0] * 5, [1.5] * 5).low is None
    assert compare([3.0] * 6, [1.5] * 6).improved


def test_a_disturbance_that_is_there_or_not_proves_nothing() -> None:
    """Four of five pairs favour the winner by the same factor: Student's interval alone would claim an improvement."""
    assert not compare([1.5, 1.5, 1.5, 1.5, 1.0], [1.0] * 5).improved
    assert compare([1.5, 1.5, 1.5, 1.5, 1.4], [1.0] * 5).improved


@pytest.mark.parametrize("run_s", [8.0, 18.0, 20.0, 30.0])
@pytest.mark.parametrize("busy_s", [10.0, 25.0])
@pytest.mark.parametrize("pairs", [3, 5, 7])
def test_interference_with_a_rhythm_is_not_mistaken_for_an_improvement(run_s: float, busy_s: float, pairs: int) -> None:
    """Every minute something slows down whatever runs; who of a pair goes first is drawn by lot."""
    rng = np.random.default_rng(7)
    experiments = 1000
    starts = 60.0 * rng.random((experiments, 1)) + run_s * np.arange(2 * pairs)
    values = 1.0 + 0.5 * (starts % 60.0 < busy_s)
    lot = rng.random((experiments, pairs)) < 0.5
    default = np.where(lot, values[:, ::2], values[:, 1::2])
    winner = np.where(lot, values[:, 1::2], values[:, ::2])
    claims = sum(compare(a.tolist(), b.tolist()).improved for a, b in zip(default, winner, strict=True))
    assert claims < 0.05 * experiments
