"""What one experiment hands on to the next: the best configurations, carried over to another space."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import luthier as lt
from luthier.analysis.result import Result, conclude
from luthier.analysis.transfer import best_configs, carried_over
from luthier.space import Choice, Integer, Parameter, Real, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Goal, Objective
from luthier.trial import Completed, Config, Failed, Outcome, Purpose, Run, Value

# A busy machine is slow to draw spaces, which says nothing about what is tested.
relaxed = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

LETTERS = ["a", "b", "c", "d"]
SIZES = ["1k", "2k", "8k", "64k", "1M"]


def some(values: list[str]) -> st.SearchStrategy[list[str]]:
    """A few of the values, in their order."""
    return st.sets(st.sampled_from(values), min_size=1).map(lambda kept: [value for value in values if value in kept])


@st.composite
def numbers(draw: st.DrawFn, name: str) -> Parameter:
    low, more = draw(st.integers(1, 50)), draw(st.integers(0, 200))
    scale: Literal["linear", "log"] = draw(st.sampled_from(["linear", "log"]))
    step = draw(st.integers(2, 5))
    if draw(st.booleans()):
        return Integer(name, low, low + more, step, scale)
    stepped = draw(st.booleans())
    return Real(name, float(low), float(low + more), float(step) if stepped else None, scale)


@st.composite
def parameters(draw: st.DrawFn, name: str) -> Parameter:
    """A parameter of any kind, with any of its values as the default."""
    kind = draw(st.sampled_from(["number", "letters", "sizes"]))
    if kind == "number":
        return draw(numbers(name))
    listed = draw(some(LETTERS if kind == "letters" else SIZES))
    return Choice(name, listed, draw(st.sampled_from(listed)), ordered=kind == "sizes")


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    names = draw(st.sets(st.sampled_from("pqrst"), min_size=1, max_size=4))
    return Space(*(draw(parameters(name)) for name in sorted(names)))


@st.composite
def moves(draw: st.DrawFn) -> tuple[Space, Config, Space]:
    """A space, one of its configurations, and another space."""
    earlier, later = draw(spaces()), draw(spaces())
    unit = [draw(st.floats(0.0, 1.0)) for _ in earlier.names]
    return earlier, earlier.decode(earlier.from_unit(np.array([unit]))[0]), later


@relaxed
@given(moves())
def test_what_is_carried_over_belongs_to_the_new_space(case: tuple[Space, Config, Space]) -> None:
    _, config, later = case
    carried = carried_over(config, later)
    if carried is None:
        assert any(
            isinstance(parameter, Choice) or isinstance(config[parameter.name], str)
            for parameter in later.parameters
            if parameter.name in config
        ), "numbers always have a nearest one"
        return
    assert later.check(carried) == carried
    for parameter in later.parameters:
        if parameter.name not in config:
            assert carried[parameter.name] == parameter.default
        elif parameter.contains(config[parameter.name]):
            assert carried[parameter.name] == config[parameter.name]


@relaxed
@given(moves())
def test_a_space_keeps_its_own_configurations(case: tuple[Space, Config, Space]) -> None:
    earlier, config, _ = case
    assert carried_over(config, earlier) == config


@relaxed
@given(numbers("n"), st.integers(-10, 400) | st.floats(-10.0, 400.0))
def test_no_value_is_nearer(parameter: Parameter, wanted: float) -> None:
    assume(not parameter.contains(wanted) and parameter.size is not None)
    carried = carried_over({"n": wanted}, Space(parameter))
    assert carried is not None
    assert isinstance(parameter, Integer | Real)
    ratio = parameter.scale == "log" and wanted > 0
    place = math.log if ratio else float
    every = [parameter.value(index) for index in range(parameter.size or 0)]
    nearest = min(abs(place(value) - place(wanted)) for value in every)
    assert abs(place(float(carried["n"])) - place(wanted)) <= nearest


@pytest.mark.parametrize(
    ("parameter", "value", "carried"),
    [
        (Integer("p", 0, 100, 10), 14, 10),
        (Integer("p", 0, 100, 10), 999, 100),
        (Integer("p", 1, 64, 2, "log"), 24, 32),
        (Integer("p", 1, 64, 2, "log"), -3, 1),
        (Integer("p", "4k", "64k", 2, "log"), "16k", 16384),
        (Integer("p", 1, 9), 3.4, 3),
        (Real("p", 0.0, 1.0), 7, 1.0),
        (Real("p", 0.0, 1.0, 0.25), 0.6, 0.5),
        (Choice("p", SIZES, ordered=True), "3k", "2k"),
        (Choice("p", SIZES, ordered=True), 70000, "64k"),
        (Choice("p", [0, 1024, 4096], ordered=True), 5000, 4096),
        (Choice("p", [False, True]), True, True),
        (Choice("p", LETTERS), "e", None),
        (Choice("p", ["low", "high"], ordered=True), "middle", None),
        (Choice("p", ["low", "high"], ordered=True), 3, None),
        (Choice("p", [1, 2, 6]), 3, None),  # without an order, numbers are names: algorithm 3 is not nearly algorithm 2
        (Integer("p", 1, 9), "fast", None),
        (Integer("p", 0, 9), True, None),
    ],
)
def test_the_nearest_value_or_none(parameter: Parameter, value: Value, carried: Value | None) -> None:
    found = carried_over({"p": value, "gone": 3}, Space(parameter))
    assert found == (None if carried is None else {"p": carried})
    assert found is None or type(found["p"]) is type(carried)


def test_constraints_hold() -> None:
    space = Space(Integer("a", 1, 9), Integer("b", 1, 9, default=9), constraints=["a <= b"])
    assert carried_over({"a": 3, "b": 5}, space) == Config({"a": 3, "b": 5})
    assert carried_over({"a": 30, "b": 5}, space) is None
    assert carried_over({"a": 30}, space) == Config({"a": 9, "b": 9})


SPACE = Space(Integer("x", 0, 9))


OUTCOMES: Sequence[tuple[int, Outcome]] = [
    (0, Completed(50.0)),
    (5, Completed(40.0)),
    (2, Failed("no")),
    (7, Completed(5.0)),
    (8, Completed(10.0)),
    (7, Failed("this time")),
    (1, Completed(30.0)),
]


def concluded(
    outcomes: Sequence[tuple[int, Outcome]], goal: Goal = "minimize", *, verified: int | None = None
) -> Result:
    """The result of these runs and, for a winner, of three pairs that prove it."""
    runs: list[Run] = []
    numbers = {x: number for number, x in enumerate(dict.fromkeys(x for x, _ in outcomes))}

    def add(purpose: Purpose, x: int, outcome: Outcome) -> None:
        at = len(runs)
        runs.append(Run(at, numbers[x], purpose, Config({"x": x}), 0.0, 2 * at, 2 * at + 1, outcome=outcome))

    for x, outcome in outcomes:
        add("search", x, outcome)
    for luck in () if verified is None else (0.0, 0.01, 0.02):
        add("verify", outcomes[0][0], Completed(90.0 + luck))
        add("verify", verified or 0, Completed(20.0 + luck))
    return conclude(Experiment(space=SPACE, objectives=(Objective("a", goal),)), runs)


def test_the_best_are_handed_on_best_first() -> None:
    assert [config["x"] for config in best_configs(concluded(OUTCOMES))] == [8, 1, 5]
    assert [config["x"] for config in best_configs(concluded(OUTCOMES, "maximize"))] == [0, 5, 1]
    assert [config["x"] for config in best_configs(concluded(OUTCOMES), 9)] == [8, 1, 5, 0]
    assert best_configs(concluded([(0, Failed("no"))])) == []


def test_a_proven_winner_comes_before_a_lucky_run() -> None:
    result = concluded(OUTCOMES, verified=1)
    assert result.improved
    assert [config["x"] for config in best_configs(result)] == [1, 8, 5]


def test_a_front_hands_on_its_compromise_its_ends_and_its_middle() -> None:
    experiment = Experiment(space=SPACE, objectives=(Objective("a"), Objective("b")))
    values = [(5.0, 5.0), (1.0, 9.0), (2.0, 7.0), (3.0, 4.0), (6.0, 3.0), (9.0, 1.0), (9.0, 9.0)]
    runs = [
        Run(i, i, "search", Config({"x": i}), 0.0, 2 * i, 2 * i + 1, outcome=Completed(a, (b,)))
        for i, (a, b) in enumerate(values)
    ]
    result = conclude(experiment, runs)
    assert [config["x"] for config in best_configs(result, 4)] == [3, 1, 5]
    assert best_configs(conclude(experiment, runs[:0])) == []


def test_a_function_is_tuned_from_what_another_tuning_found() -> None:
    small, large = (lt.Space(lt.Integer("x", 0, top, default=top), lt.Choice("m", ["a", "b"])) for top in (100, 1000))
    asked: list[lt.Config] = []

    def measure(config: lt.Config) -> float:
        asked.append(config)
        return abs(float(config["x"]) - 37.0) + (config["m"] == "a") + 1.0

    best = best_configs(lt.tune(measure, small, budget=40, seed=1))
    asked.clear()
    result = lt.tune(measure, large, budget=12, seed=1, first=best)
    assert asked[:4] == [large.default, *best]
    assert [run.purpose for run in result.runs[:4]] == ["default", "search", "search", "search"]
    assert result.best.config == best[0]
    assert len(result.runs) <= 12
    with pytest.raises(lt.LuthierError, match="first: x: 1001 is not one of its values"):
        lt.tune(measure, large, first=[{"x": 1001}])
