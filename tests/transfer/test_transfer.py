"""What one experiment hands on to the next: the best configurations, carried over to another space."""

import json
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import luthier as lt
from luthier.optimizers.earlier import Earlier
from luthier.result.result import Result, conclude
from luthier.space import Choice, Integer, Parameter, Real, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Goal, Objective
from luthier.spec.template import Template
from luthier.store.base import Record, Status
from luthier.transfer.lessons import MOST_TRIALS, best_configs, carried_over, earlier_from, lower_is_better, values_for
from luthier.transfer.related import related
from luthier.trial import Completed, Config, Estimate, Failed, Outcome, Pruned, Purpose, Run, TimedOut, Trial, Value

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


def trial(config: dict[str, Value], *outcomes: Outcome) -> Trial:
    values = [outcome.value for outcome in outcomes if isinstance(outcome, Completed)]
    return Trial(Config(config), outcomes, Estimate(sum(values) / len(values), len(values)) if values else None)


NEW = Space(
    Integer("x", 5, 50), Choice("mode", ["slow", "quick"]), Real("ratio", 0.0, 1.0), Choice("size", SIZES, ordered=True)
)


def test_values_are_mapped_one_by_one() -> None:
    assert values_for({"x": 3, "mode": "fast", "gone": 1, "size": "4k"}, NEW) == {"x": 5, "size": "2k"}
    assert values_for({"x": 70, "mode": "slow", "ratio": 0.25}, NEW) == {"x": 50, "mode": "slow", "ratio": 0.25}
    assert values_for({"x": True, "ratio": "wide"}, NEW) == {}


def test_every_kind_of_trial_is_handed_on() -> None:
    history = [
        trial({"x": 10, "mode": "slow"}, Completed(4.0)),
        trial({"x": 20, "mode": "slow"}, Completed(2.0), Completed(2.0)),
        trial({"x": 30, "mode": "fast"}, Completed(8.0)),
        trial({"x": 40, "mode": "slow"}, Failed("exit 1")),
        trial({"x": 45, "mode": "slow"}, Pruned("slow", at_least=7.0)),
        trial({"x": 46, "mode": "slow"}, TimedOut("10 s")),
        trial({"x": 47, "mode": "slow"}),
        trial({"z": 1}, Completed(1.0)),
    ]
    known = earlier_from([history, history[:3]], NEW, "vae:20%", ["one", "two"])
    assert (known.kind, known.share, known.notes, known.sources) == ("vae", 0.2, ("one", "two"), 2)
    first = known.of_source(0)
    assert [each.values["x"] for each in first] == [20, 10, 30, 40, 45, 46]
    assert "mode" not in first[2].values
    scores = [each.score for each in first]
    assert scores[3] is None
    assert scores[5] is None
    assert [each.is_bound for each in first] == [False, False, False, False, True, False]
    measured = [score for score in scores[:3] if score is not None]
    assert measured == sorted(measured)
    assert scores[4] is not None
    assert measured[1] < scores[4] <= measured[2]
    assert known.first(NEW)[0] == {**NEW.default, "x": 20, "mode": "slow"}
    assert earlier_from([], NEW).trials == ()
    assert earlier_from([[trial({"x": 9}, Failed("no"))]], NEW).trials == ()


def test_a_long_history_is_shortened() -> None:
    history = [trial({"x": 5 + at % 46, "ratio": at / 5000.0}, Completed(1.0 + at)) for at in range(5000)]
    history += [trial({"x": 5, "ratio": at / 5000.0}, Failed("no")) for at in range(5000)]
    known = earlier_from([history], NEW)
    assert len(known.trials) == MOST_TRIALS
    assert known.trials[0].values["ratio"] == 0.0
    assert sum(each.score is None for each in known.trials) == 50
    assert len(json.dumps(known.to_json())) < 20_000
    assert Earlier.from_json(json.loads(json.dumps(known.to_json()))) == known


def test_maximized_values_are_turned() -> None:
    space = Space(Integer("x", 1, 30))

    def measure(config: Config) -> float:
        return float(config["x"])

    result = lt.tune(measure, space, goal="maximize", budget=12, seed=1, verify_pairs=0)
    best = earlier_from([lower_is_better(result)], space).best(0, 1)[0]
    assert best.values["x"] == max(int(each.config["x"]) for each in result.trials)


def record(
    number: int, experiment: Experiment, name: str = "prog", status: Status = "finished", runs: int = 20
) -> Record:
    return Record(number, str(number), name, 0.0, experiment.to_json(), status, runs=runs)


def commanded(*argv: str, names: Sequence[str] = ("a", "b"), measure: str = "wall") -> Experiment:
    space = Space(*(Integer(name, 1, 9) for name in names))
    return Experiment(
        space=space, command=Template((*argv, *(f"{{{name}}}" for name in names))), objectives=(Objective(measure),)
    )


def test_related_experiments_have_the_program_the_measure_and_parameters() -> None:
    new = commanded("/opt/prog", names=("a", "b", "c"))
    records = [
        record(1, commanded("/usr/bin/prog")),
        record(2, commanded("/opt/other")),
        record(3, commanded("/opt/prog", measure="cpu")),
        record(4, commanded("/opt/prog", names=("a", "y", "z"))),
        record(5, new),
        record(6, new, status="running"),
        record(7, new, runs=3),
        record(8, commanded("prog", "-v"), status="stopped"),
        record(9, Experiment(space=new.space), name="prog"),
    ]
    found = related(new, "prog", records)
    assert [(each.id, why) for each, why in found] == [
        (5, "the same command, 3 of 3 parameters"),
        (8, "the same program, 2 of 3 parameters"),
        (1, "the same program, 2 of 3 parameters"),
    ]
    scripts = [record(1, commanded("python3", "train.py")), record(2, commanded("python3", "test.py"))]
    assert [each.id for each, _ in related(commanded("python3", "-u", "train.py"), "x", scripts)] == [1]
    function = Experiment(space=new.space)
    assert [each.id for each, _ in related(function, "prog", records)] == [9]
    assert related(function, "other", records) == []


@pytest.mark.parametrize(
    ("one", "other", "are_related"),
    [
        (("sh", "-c", "./prog --size 4"), ("sh", "-c", "./prog --depth 9 x"), True),
        (("sh", "-c", "./prog --size 4"), ("sh", "-c", "./other --size 4"), False),
        (("sh", "-c", "./prog"), ("bash", "-c", "./prog"), False),
        (("python", "-u", "train.py", "fast"), ("python", "train.py", "slow"), True),
        (("python", "-u", "train.py"), ("python", "-u", "test.py"), False),
        (("env", " ", "prog"), ("env", "prog"), True),
        (("python", "-V"), ("python", "-W"), True),
        (("/opt/1/prog", "in"), ("/opt/2/prog", "out"), True),
    ],
)
def test_what_an_interpreter_runs_is_the_program(one: Sequence[str], other: Sequence[str], are_related: bool) -> None:
    """Options and arguments make no other program; the second word of a shell's text is an argument."""
    assert bool(related(commanded(*one), "x", [record(1, commanded(*other))])) == are_related
