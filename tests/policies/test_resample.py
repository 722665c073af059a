"""How often a configuration runs."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import InvalidInputError
from luthier.policies import RESAMPLES, Progress, Resample
from luthier.policies.resample import Auto, Evadyr, Once, Sedr, Static, interval_width
from luthier.statistics.estimate import estimate
from luthier.trial import Completed, Config, Lost, Trial


def trial(*values: float) -> Trial:
    config = Config({"values": str(values)})
    return Trial(config, tuple(map(Completed, values)), estimate(values, "median") if values else None)


def after(*trials: Trial, runs: int | None = None, budget: int = 100) -> Progress:
    guesses = [(one.estimate.value, number) for number, one in enumerate(trials) if one.estimate is not None]
    repeats = [[past.value for past in one.outcomes if isinstance(past, Completed)] for one in trials]
    made = sum(len(one.outcomes) for one in trials) if runs is None else runs
    return Progress(
        trials=trials,
        best=min(guesses)[1] if guesses else None,
        repeats=[values for values in repeats if len(values) > 1],
        steps=[0] * made,
        initial=0,
        budget=budget,
        elapsed_s=0.0,
    )


def test_once_and_static_want_no_run_too_many() -> None:
    assert Once()(0, after(trial(1.0))) == 0
    assert Static(3)(0, after(trial(1.0))) == 2
    assert Static(3)(0, after(trial(1.0, 2.0, 3.0))) == 0
    assert Static(3)(0, after(trial(1.0, 2.0, 3.0, 4.0))) == 0
    lost = Trial(Config({"a": 1}), (Completed(1.0), Lost("node")), estimate([1.0]))
    assert Static(3)(0, after(lost)) == 2


def test_the_interval_has_the_unbiased_deviation() -> None:
    assert interval_width([1.0]) == math.inf
    assert interval_width([9.0, 11.0]) == pytest.approx(2 * 1.96 * math.sqrt(2.0) / math.sqrt(2.0))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_sedr_runs_until_the_interval_is_narrow(sign: float) -> None:
    """The width of (9, 11) is 3.92, which is 39.2 % of the mean."""
    pair = after(trial(9.0 * sign, 11.0 * sign))
    assert Sedr()(0, after(trial(10.0 * sign))) == 1
    assert Sedr(0.39)(0, pair) == 1
    assert Sedr(0.40)(0, pair) == 0
    assert Sedr(3.9, relative=False)(0, pair) == 1
    assert Sedr(4.0, relative=False)(0, pair) == 0
    assert Sedr()(0, after(trial(0.0, 0.0))) == 0


def test_evadyr_runs_everything_twice_and_nothing_more_than_a_tenth_of_the_budget() -> None:
    wild = trial(*[1.0, 9.0] * 5)
    others = [trial(100.0, 100.0)] * 3
    assert Evadyr()(0, after(trial(1e9), *others)) == 1
    assert Evadyr()(0, after(wild, *others, budget=101)) == 1
    assert Evadyr()(0, after(wild, *others, budget=100)) == 0
    assert Evadyr(most=0.2)(0, after(wild, *others, budget=100)) == 1
    assert Evadyr(least=4)(0, after(trial(1.0, 1.0), *others)) == 2


def test_evadyr_asks_for_more_precision_as_steps_go_by() -> None:
    """The width of (9, 11) is 39.2 % of the mean; 0.99^n is 39.6 % after 92 steps and 39.2 % after 93 steps."""
    others = [trial(100.0)]
    for runs, wanted in ((10, 0), (92, 0), (95, 1)):
        assert Evadyr()(0, after(trial(9.0, 11.0), *others, runs=runs, budget=1000)) == wanted
    # (9.8, 10.2) is 7.8 % wide, and no less than 10 % is ever asked for
    assert Evadyr()(0, after(trial(9.8, 10.2), *others, runs=900, budget=1000)) == 0
    assert Evadyr(narrowest=0.05)(0, after(trial(9.8, 10.2), *others, runs=900, budget=1000)) == 1


@pytest.mark.parametrize(("sign", "good", "bad"), [(1.0, 0.49, 0.51), (-1.0, 2.1, 1.9)])
def test_evadyr_drops_what_is_no_better_than_half_the_median(sign: float, good: float, bad: float) -> None:
    """For negative values, those of a goal to maximise, twice the median."""

    def wanted(factor: float) -> int:
        wild = trial(sign * 100.0 * factor * 0.5, sign * 100.0 * factor * 1.5)
        return Evadyr()(0, after(wild, *[trial(sign * 100.0)] * 5, runs=200, budget=1000))

    assert wanted(good) == 1
    assert wanted(bad) == 0


def test_auto_first_finds_out_how_noisy_runs_are() -> None:
    assert Auto()(1, after(trial(3.0), trial(2.0), trial(4.0))) == 1
    assert Auto()(2, after(trial(3.0), trial(2.0), trial(4.0))) == 0
    assert Auto()(1, after(trial(3.0), trial(2.0, 2.0), trial(4.0))) == 1


def test_auto_pays_two_runs_where_there_is_no_noise() -> None:
    assert Auto()(0, after(trial(2.0, 2.0, 2.0), trial(3.0), runs=99)) == 0
    assert Auto()(1, after(trial(2.0, 2.0, 2.0), trial(1.9), runs=99)) == 0


def test_auto_leaves_a_short_search_alone() -> None:
    assert Auto()(0, after(trial(2.0), trial(3.0), budget=19)) == 0
    assert Auto()(0, after(trial(2.0), trial(3.0), budget=20)) == 1


def test_auto_runs_a_new_leader_again_while_it_may_be_luck() -> None:
    noisy = trial(9.0, 10.0, 11.0)
    assert Auto()(1, after(noisy, trial(9.5), runs=50)) == 1
    assert Auto()(1, after(noisy, trial(0.1), runs=49)) == 0, "no luck goes that far"
    assert Auto()(1, after(noisy, trial(0.1), runs=50)) == 1, "but better safe than sorry"
    assert Auto()(1, after(noisy, trial(0.1, 0.1), runs=90)) == 0
    assert Auto()(0, after(noisy, trial(10.5), runs=49)) == 0, "it has run often enough for now"
    assert Auto()(0, after(noisy, trial(10.5), runs=99)) == 1
    assert Auto()(1, after(noisy, trial(10.5), runs=99)) == 0, "it does not lead"
    assert Auto()(0, after(trial(*[9.0, 10.0, 11.0] * 2), trial(10.5), runs=100)) == 0, "half the root of 100 is 5"


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_auto_lets_a_third_run_decide_where_two_contradict_each_other(sign: float) -> None:
    """Values of a goal to maximise have the other sign here; there 11 is the good run and 2 the slow one."""

    def wanted(first: float, second: float, steady: tuple[float, ...] = (10.0, 10.1, 9.9)) -> int:
        pair = trial(sign * first, sign * second)
        return Auto()(1, after(trial(*(sign * value for value in steady)), pair, runs=30))

    good, slow = (9.0, 60.0) if sign > 0 else (11.0, 2.0)
    assert wanted(good, slow) == wanted(slow, good) == 1
    assert wanted(good, slow, (10.0, 3.0, 40.0)) == 0, "runs differ as much elsewhere"
    assert wanted(good, slow, (10.0,)) == 0, "how much runs differ is not known"
    assert wanted(slow, slow * 6.0**sign) == 0, "neither would lead"
    assert Auto()(1, after(trial(10.0, 10.1, 9.9), trial(9.0, 60.0), budget=19)) == 0


def test_auto_asks_for_no_fourth_run_of_what_has_been_decided() -> None:
    assert Auto()(1, after(trial(10.0, 10.1, 9.9), trial(9.0, 60.0, 61.0), runs=30)) == 0


@pytest.mark.parametrize("values", [(-11.0, -10.0, -9.0), (-1.0, 0.0, 1.0)])
def test_auto_works_below_zero(values: tuple[float, ...]) -> None:
    assert Auto()(1, after(trial(*values), trial(min(values)), runs=49)) == 1
    assert Auto()(1, after(trial(*values), trial(-1e9), runs=49)) == 0


@given(
    st.sampled_from(sorted(RESAMPLES.names())),
    st.lists(st.lists(st.floats(-1e300, 1e300), max_size=6), min_size=1, max_size=5),
    st.integers(0, 100),
)
def test_every_rule_answers_for_any_values_and_changes_nothing(name: str, values: list[list[float]], runs: int) -> None:
    trials = [trial(*each) for each in values]
    rule: Resample = RESAMPLES.get(name)()
    progress = after(*trials, runs=runs)
    for number, each in enumerate(values):
        if each:
            assert 0 <= rule(number, progress) <= 2
            assert rule(number, progress) == rule(number, progress)


def test_senseless_rules_are_refused() -> None:
    for make in (
        lambda: Static(0),
        lambda: Sedr(0.0),
        lambda: Sedr(math.nan),
        lambda: Evadyr(least=0),
        lambda: Evadyr(most=0.0),
        lambda: Evadyr(decay=1.1),
        lambda: Auto(most=0),
        lambda: Auto(doubt=0.0),
    ):
        with pytest.raises(InvalidInputError, match="; "):
            make()
