"""The notation of resampling, pruning and stopping."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import InvalidInputError
from luthier.policies import Stop, stop
from luthier.policies.prune import BeyondChance, BeyondDefault, BeyondPast, BeyondSeconds, Never
from luthier.policies.resample import Auto, Evadyr, Once, Sedr, Static
from luthier.space import Integer, Space
from luthier.spec.rules import TunedProblem, compares_times, prune_from, resample_from, stop_from

SPACE = Space(Integer("x", 0, 10))


def one(text: str, *, maximize: bool = False) -> Stop:
    rule = stop_from([text], TunedProblem(SPACE, maximize))
    assert isinstance(rule, stop.AnyOf)
    return rule.rules[0]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("auto", Auto()), ("once", Once()), ("evadyr", Evadyr()), ("static:3", Static(3)),
        ("sedr", Sedr()), ("sedr:30%", Sedr(0.3)), ("sedr:0.5", Sedr(0.5, relative=False)),
        ("evadyr:least=3", Evadyr(least=3)), ("auto:doubt=5%,most=1", Auto(most=1.0, doubt=0.05)),
        ("evadyr:most=20%, decay = .98,narrowest=5 %,strictest=4e-1", Evadyr(2, 0.2, 0.98, 0.05, 0.4)),
    ],
)  # fmt: skip
def test_resampling(text: str, rule: object) -> None:
    assert resample_from(text) == rule


def test_pruning() -> None:
    assert prune_from(None) == Never()
    assert prune_from("default") == BeyondDefault()
    assert prune_from("chance") == BeyondChance()
    assert prune_from("chance:least=1%,margin=0") == BeyondChance(least=0.01, margin=0.0)
    assert prune_from("default:factor=1.5") == BeyondDefault(1.5)
    assert prune_from(90) == BeyondSeconds(90.0)
    for text, name in (("median", "median"), ("mean", "mean"), ("q75", "75 % quantile"), ("q5", "5 % quantile")):
        rule = prune_from(text)
        assert isinstance(rule, BeyondPast)
        assert rule.name == name


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("target 3.2", stop.AtTarget(3.2)),
        ("target -1e3", stop.AtTarget(-1000.0)),
        ("target 50% of default", stop.AtShareOfDefault(0.5)),
        ("no improvement over 15", stop.NoImprovement(15)),
        ("improvement < 5% over 15", stop.NoImprovement(15, 0.05)),
        ("improvement<5%over 15", stop.NoImprovement(15, 0.05)),
        ("Best improvement < 2.5 % over 15", stop.NoImprovement(15, 0.025)),
        ("mean improvement < 5% over 15", stop.NoImprovement(15, 0.05, "mean")),
        ("median improvement < 5% over 15", stop.NoImprovement(15, 0.05, "median")),
        ("distinct < 3 over 10", stop.FewDistinct(3, 10)),
        ("distance < 0.1 over 10", stop.CloseTogether(SPACE, 0.1, 10)),
        ("gain < cost for 1000 runs", stop.NotWorthIt(1000)),
        ("after 30 runs", stop.AfterRuns(30)),
        ("after 2h", stop.AfterSeconds(7200.0)),
        ("after 30 runs and no improvement over 5", stop.all_of(stop.AfterRuns(30), stop.NoImprovement(5))),
    ],
)
def test_stopping(text: str, rule: object) -> None:
    assert one(text) == rule


def test_any_of_several_criteria() -> None:
    both = stop_from(["after 30 runs", "target 1"], TunedProblem(SPACE))
    assert both == stop.any_of(stop.AfterRuns(30), stop.AtTarget(1.0))
    assert stop_from([], TunedProblem(SPACE)) == stop.any_of()


def test_targets_of_what_is_maximised() -> None:
    assert one("target 3.2", maximize=True) == stop.AtTarget(-3.2)
    assert one("target 150% of default", maximize=True) == stop.AtShareOfDefault(1.5)
    with pytest.raises(InvalidInputError, match="give more than 100"):
        one("target 50% of default", maximize=True)
    with pytest.raises(InvalidInputError, match="give less than 100"):
        one("target 150% of default")


def test_which_criteria_go_by_time() -> None:
    assert compares_times("gain < cost for 9 runs")
    assert compares_times("after 3 runs and Gain<cost for 9 runs")
    assert not compares_times("target 3")


@pytest.mark.parametrize(
    "text", ["", "never", "static", "static:", "static:x", "static:0", "sedr:", "sedr:-1%", "once:3"]
)
def test_resampling_that_is_not_understood(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^(resample: .*static:RUNS|static:|sedr:)"):
        resample_from(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("evadyr:lest=3", "'lest=3' is not understood; write least=NUMBER, most=NUMBER, decay"),
        ("evadyr:3", "'3' is not understood"),
        ("auto:3", "'3' is not understood; write most=NUMBER, doubt=NUMBER"),
        ("evadyr:least=3,", "'' is not understood"),
        ("evadyr:least=2.5", "least must be a whole number"),
        ("evadyr:least=1e999", "least must be a whole number"),
        ("evadyr:most=200%", "evadyr: most=2 is not a share; give more than 0, and at most 1"),
        ("auto:doubt=2", "auto: doubt=2 is not a chance; give more than 0 and less than 1"),
        ("once:count=2", "is not understood; write auto, once"),
        ("sedr:width=3", "is not understood; write auto, once"),
    ],
)
def test_constants_that_do_not_fit_are_named(text: str, told: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(told)) as error:
        resample_from(text)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    "what",
    [
        "chance:", "chance:most=3", "chance:least=1", "default:factor=0", "mean:factor=2",
        "", "often", "q0", "q100", "q", "75", -3.0, 0.0,
    ],
)  # fmt: skip
def test_pruning_that_is_not_understood(what: str | float) -> None:
    with pytest.raises(InvalidInputError, match="; "):
        prune_from(what)


@pytest.mark.parametrize(
    "text",
    [
        "", "soon", "target", "target x", "target 3 and", "and", "improvement < 5% over 0", "improvement < 5 over 10",
        "worst improvement < 5% over 9", "distinct < 9 over 3", "distance < 0 over 3", "gain < cost for 0 runs",
        "after soon", "target 50% of default and maybe", "improvement > 5% over 3", "improvement < -5% over 3",
    ],
)  # fmt: skip
def test_stopping_that_is_not_understood(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^stop: ") as told:
        one(text)
    assert len(str(told.value).splitlines()) == 1


@given(st.text(max_size=40))
def test_any_text_is_a_rule_or_an_error(text: str) -> None:
    for read in (lambda: resample_from(text), lambda: prune_from(text), lambda: one(text)):
        with suppress(InvalidInputError):
            read()
