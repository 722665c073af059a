import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import InvalidInputError
from luthier.policies import (
    PRUNES,
    RESAMPLES,
    STOPS,
    Progress,
    after_runs,
    after_seconds,
    all_of,
    any_of,
    at_target,
    beyond_default,
    beyond_seconds,
    never,
    no_improvement,
    once,
    static,
)
from luthier.trial import Completed, Config, Estimate, Failed, Lost, Pruned, Trial


def trial(value: float | None, runs: int = 1) -> Trial:
    if value is None:
        return Trial(Config({"a": 1}), (Failed("exit 1"),) * runs, None)
    return Trial(Config({"a": 1}), (Completed(value),) * runs, Estimate(value, runs))


def after(*values: float | None, runs: int = 0, elapsed_s: float = 0.0, default: Trial | None = None) -> Progress:
    return Progress([trial(value) for value in values], default, runs, elapsed_s)


def test_after_runs_counts_to_the_very_run() -> None:
    assert after_runs(3)(after(runs=2)) is None
    assert after_runs(3)(after(runs=3)) is not None
    assert after_runs(0)(after(runs=0)) is not None


def test_after_seconds() -> None:
    assert after_seconds(10)(after(elapsed_s=9.9)) is None
    assert after_seconds(10)(after(elapsed_s=10.0)) is not None


def test_at_target_needs_a_measured_value() -> None:
    assert at_target(0.0)(after()) is None
    assert at_target(0.0)(after(None, 0.1)) is None
    assert at_target(0.0)(after(None, 0.1, 0.0)) is not None
    assert at_target(-5.0)(after(-4.9)) is None
    assert at_target(-5.0)(after(-6.0)) is not None


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
    reason = no_improvement(over=2, by=0.05)(after(*values))
    assert (reason is not None) == stops


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False)), st.integers(1, 5), st.floats(0, 2))
def test_no_improvement_answers_for_any_values(values: list[float | None], over: int, by: float) -> None:
    reason = no_improvement(over=over, by=by)(after(*values))
    if len(values) <= over or all(value is None for value in values[:-over]):
        assert reason is None


@given(st.lists(st.floats(-1e9, 1e9), min_size=3), st.integers(1, 2))
def test_no_improvement_stops_exactly_when_nothing_got_better(values: list[float], over: int) -> None:
    stuck = min(values[-over:]) >= min(values[:-over])
    assert (no_improvement(over=over)(after(*values)) is not None) == stuck


def test_any_and_all() -> None:
    many, long = after_runs(3), after_seconds(10)
    assert any_of(many, long)(after(runs=3)) == "3 runs made"
    assert any_of(many, long)(after(runs=2, elapsed_s=9)) is None
    assert all_of(many, long)(after(runs=3)) is None
    assert all_of(many, long)(after(runs=3, elapsed_s=10)) == "3 runs made; 10 s have passed"
    assert any_of()(after(runs=9)) is None
    assert all_of()(after(runs=9)) is None


def test_never_and_beyond_seconds() -> None:
    assert never()(1e9, after()) is None
    assert beyond_seconds(5)(5.0, after()) is None
    assert beyond_seconds(5)(5.1, after()) is not None


def test_beyond_default_waits_for_the_default() -> None:
    assert beyond_default()(1e9, after(1.0)) is None
    assert beyond_default()(1e9, after(1.0, default=trial(None))) is None
    assert beyond_default()(10.1, after(default=trial(10.0))) is not None
    assert beyond_default()(10.0, after(default=trial(10.0))) is None
    assert beyond_default(2.0)(19.9, after(default=trial(10.0))) is None


def test_resampling_wants_no_run_too_many() -> None:
    assert static(3)(trial(1.0, runs=1), after()) == 2
    assert static(3)(trial(1.0, runs=3), after()) == 0
    assert static(3)(trial(1.0, runs=4), after()) == 0
    assert once()(trial(1.0), after()) == 0
    mixed = Trial(Config({"a": 1}), (Completed(1.0), Lost("node"), Pruned("slow")), Estimate(1.0, 1))
    assert static(4)(mixed, after()) == 1


def test_senseless_rules_are_refused() -> None:
    for make in (
        lambda: after_runs(-1),
        lambda: after_seconds(math.nan),
        lambda: after_seconds(-1.0),
        lambda: at_target(math.nan),
        lambda: no_improvement(over=0),
        lambda: no_improvement(over=1, by=-0.1),
        lambda: no_improvement(over=1, by=math.nan),
        lambda: beyond_seconds(0.0),
        lambda: beyond_default(0.0),
        lambda: static(0),
    ):
        with pytest.raises(InvalidInputError, match="; "):
            make()


def test_registries_hold_what_the_package_offers() -> None:
    assert STOPS["after_runs"](2)(after(runs=2)) is not None
    assert PRUNES["beyond_default"](factor=2.0)(1.0, after()) is None
    assert RESAMPLES["static"](2)(trial(1.0), after()) == 1
    assert set(PRUNES) == {"never", "beyond_seconds", "beyond_default"}
    assert set(RESAMPLES) == {"once", "static"}
