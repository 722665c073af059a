"""When a search is over."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import InvalidInputError
from luthier.policies import Progress
from luthier.policies.stop import (
    AfterRuns,
    AfterSeconds,
    AtShareOfDefault,
    AtTarget,
    CloseTogether,
    FewDistinct,
    Level,
    NoImprovement,
    NotWorthIt,
    all_of,
    any_of,
)
from luthier.space import Choice, Integer, Space
from luthier.trial import Completed, Config, Estimate, Failed, Trial

SPACE = Space(Integer("x", 0, 10), Choice("mode", ["a", "b", "c"]))


def trial(value: float | None, config: Config | None = None) -> Trial:
    config = config or Config({"x": 0, "mode": "a"})
    if value is None:
        return Trial(config, (Failed("exit 1"),), None)
    return Trial(config, (Completed(value),), Estimate(value, 1))


def after(*values: float | None, runs: int = 0, elapsed_s: float = 0.0) -> Progress:
    known = [(value, number) for number, value in enumerate(values) if value is not None]
    best = min(known)[1] if known else None
    return Progress([trial(value) for value in values], best, [], [0] * runs, 0, 100, elapsed_s)


def walked(*configs: tuple[int, str]) -> Progress:
    """One run after the other, of configurations that may return."""
    different = list(dict.fromkeys(configs))
    trials = [trial(1.0, Config({"x": x, "mode": mode})) for x, mode in different]
    return Progress(trials, 0, [], [different.index(config) for config in configs], 0, 100, 0.0)


def test_after_runs_counts_to_the_very_run() -> None:
    assert AfterRuns(3)(after(runs=2)) is None
    assert AfterRuns(3)(after(runs=3)) is not None
    assert AfterRuns(0)(after(runs=0)) is not None


def test_after_seconds() -> None:
    assert AfterSeconds(10)(after(elapsed_s=9.9)) is None
    assert AfterSeconds(10)(after(elapsed_s=10.0)) is not None


def test_at_target_needs_a_measured_value() -> None:
    assert AtTarget(0.0)(after()) is None
    assert AtTarget(0.0)(after(None, 0.1)) is None
    assert AtTarget(0.0)(after(None, 0.1, 0.0)) is not None
    assert AtTarget(-5.0)(after(-4.9)) is None
    assert AtTarget(-5.0)(after(-6.0)) is not None


def test_at_a_share_of_the_default() -> None:
    assert AtShareOfDefault(0.5)(after(10.0, 5.1)) is None
    assert AtShareOfDefault(0.5)(after(10.0, 5.0)) == "50 % of the default reached"
    assert AtShareOfDefault(0.5)(after(None, 5.0)) is None
    assert AtShareOfDefault(2.0)(after(-10.0, -19.9)) is None, "twice as much, maximised"
    assert AtShareOfDefault(2.0)(after(-10.0, -20.0)) is not None
    assert AtShareOfDefault(0.5)(after(-10.0, -20.0)) is None, "half of it is worse than the default"
    assert AtShareOfDefault(0.5)(after(0.0, -20.0)) is None


@pytest.mark.parametrize(
    ("values", "stops"),
    [
        ((), False),
        ((10.0, 10.0), False),  # two trials are not more than two
        ((10.0, 10.0, 10.0), True),
        ((10.0, 9.0, 9.9), False),
        ((10.0, 9.6, 9.7), True),  # 4 % is less than 5 %
        ((10.0, 9.5, 9.7), False),  # exactly 5 %
        ((-10.0, -10.2, -9.0), True),
        ((-10.0, -10.6, -9.0), False),
        ((-10.0, -9.0, -9.0), True),
        ((0.0, 0.0, 1.0), True),
        ((0.0, -1e-9, 1.0), False),
        ((10.0, None, None), True),
        ((None, None, None), False),  # nothing to compare with
        ((None, 10.0, 9.0), False),
        ((10.0, 1.0, 1.0, 1.0), True),
    ],
)
def test_no_improvement(values: Sequence[float | None], stops: bool) -> None:
    reason = NoImprovement(over=2, by=0.05)(after(*values))
    assert (reason is not None) == stops


def test_improvement_of_the_mean_and_the_median() -> None:
    values = (10.0, 10.0, 40.0, 9.0, 9.0, 9.0)
    assert NoImprovement(3, 0.5, "mean")(after(*values)) is None  # from 20 to 9
    assert NoImprovement(3, 0.6, "mean")(after(*values)) is not None
    assert NoImprovement(3, 0.1, "median")(after(*values)) is None  # from 10 to 9
    said = NoImprovement(3, 0.15, "median")(after(*values))
    assert said == "less than 15 % improvement of the median over 3 configurations"
    assert NoImprovement(3, 0.05, "mean")(after(-10.0, -10.0, -9.0, -12.0, -12.0, -12.0)) is None


@given(
    st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False)),
    st.integers(1, 5),
    st.floats(0, 2),
    st.sampled_from(["best", "mean", "median"]),
)
def test_no_improvement_answers_for_any_values(values: list[float | None], over: int, by: float, of: Level) -> None:
    reason = NoImprovement(over, by, of)(after(*values))
    if len(values) <= over or all(value is None for value in values[:-over]):
        assert reason is None


@given(st.lists(st.floats(-1e9, 1e9), min_size=3), st.integers(1, 2))
def test_no_improvement_stops_exactly_when_nothing_got_better(values: list[float], over: int) -> None:
    stuck = min(values[-over:]) >= min(values[:-over])
    assert (NoImprovement(over=over)(after(*values)) is not None) == stuck


def test_few_different_configurations() -> None:
    back_and_forth = [(1, "a"), (2, "a")] * 3
    assert FewDistinct(3, 6)(walked(*back_and_forth)) is not None
    assert FewDistinct(2, 6)(walked(*back_and_forth)) is None
    assert FewDistinct(3, 7)(walked(*back_and_forth)) is None, "only six runs"
    assert FewDistinct(3, 4)(walked((7, "a"), (8, "b"), *back_and_forth)) is not None


def test_configurations_close_together() -> None:
    """The next of 11 values in one of two parameters is 1 / 11 / sqrt(2) = 0.0643 away."""
    steps = [(x, "a") for x in (3, 4, 5, 4)]
    assert CloseTogether(SPACE, 0.065, 3)(walked(*steps)) is not None
    assert CloseTogether(SPACE, 0.064, 3)(walked(*steps)) is None
    assert CloseTogether(SPACE, 0.065, 4)(walked(*steps)) is None, "only three steps"
    assert CloseTogether(SPACE, 0.065, 3)(walked((9, "c"), *steps)) is not None, "long ago"
    assert CloseTogether(SPACE, 0.7, 1)(walked((3, "a"), (3, "b"))) is None, "1 / sqrt(2) = 0.707"
    assert CloseTogether(SPACE, 0.71, 1)(walked((3, "a"), (3, "c"))) is not None


def test_a_search_goes_on_as_long_as_it_pays() -> None:
    """Ten configurations of 100 s or so; the last five saved 10 s, 2 s each."""
    values = [110.0, 100.0, 120.0, 110.0, 110.0, 105.0, 95.0, 100.0, 90.0, 110.0]
    cost_s = sum(values) / len(values)
    assert NotWorthIt(math.ceil(cost_s / 2.0))(after(*values)) is None
    assert NotWorthIt(math.floor(cost_s / 2.0))(after(*values)) is not None
    assert NotWorthIt(1)(after(*values[:9])) is None, "too few to tell"


def test_a_search_that_found_nothing_lately_goes_on_for_many_production_runs() -> None:
    """(second best - best) / n = 0.1 s is all there is to hope for; a configuration costs 10 s or so."""
    values = [9.0, 10.0, *[10.0] * 8]
    assert NotWorthIt(98)(after(*values)) is not None
    assert NotWorthIt(100)(after(*values)) is None


def test_any_and_all() -> None:
    many, long = AfterRuns(3), AfterSeconds(10)
    assert any_of(many, long)(after(runs=3)) == "3 runs made"
    assert any_of(many, long)(after(runs=2, elapsed_s=9)) is None
    assert all_of(many, long)(after(runs=3)) is None
    assert all_of(many, long)(after(runs=3, elapsed_s=10)) == "3 runs made; 10 s have passed"
    assert any_of()(after(runs=9)) is None
    assert all_of()(after(runs=9)) is None


def test_senseless_rules_are_refused() -> None:
    for make in (
        lambda: AfterRuns(-1),
        lambda: AfterSeconds(math.nan),
        lambda: AfterSeconds(-1.0),
        lambda: AtTarget(math.nan),
        lambda: AtShareOfDefault(0.0),
        lambda: NoImprovement(over=0),
        lambda: NoImprovement(over=1, by=-0.1),
        lambda: NoImprovement(over=1, by=math.nan),
        lambda: FewDistinct(1, 5),
        lambda: FewDistinct(6, 5),
        lambda: CloseTogether(SPACE, 0.0, 5),
        lambda: CloseTogether(SPACE, 0.1, 0),
        lambda: NotWorthIt(0),
    ):
        with pytest.raises(InvalidInputError, match="; "):
            make()
