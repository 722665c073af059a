"""Spaces: validity, counting, sampling, neighbours, JSON."""

import itertools
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import SpaceError
from luthier.space import Choice, Integer, Parameter, Real, Space
from luthier.space.serial import parameter_from_json, parameter_to_json
from luthier.trial import Config, Value

quick = settings(deadline=None, max_examples=50)

seeds = st.integers(0, 2**32 - 1)


@st.composite
def small_grids(draw: st.DrawFn, count: int) -> list[Parameter]:
    """Parameters with few values, called a, b, c, ..."""
    made: list[Parameter] = []
    for name in "abcdefgh"[:count]:
        kind = draw(st.sampled_from(["integer", "choice", "real"]))
        if kind == "integer":
            low = draw(st.integers(-3, 3))
            made.append(Integer(name, low, low + draw(st.integers(0, 4))))
        elif kind == "real":
            made.append(Real(name, 0.0, draw(st.sampled_from([0.0, 0.1, 0.3])), 0.1))
        else:
            made.append(Choice(name, list(range(draw(st.integers(1, 4)))), ordered=draw(st.booleans())))
    return made


RULES = ["a <= b", "a + b != c", "a * b <= 3", "c == 0 or a > 0", "b != 0.1", "a % 2 == 0", "1 / c > 0"]


def satisfies(rule: str, config: Config) -> bool:
    try:
        return bool(eval(rule, {}, {name: float(value) for name, value in config.items()}))
    except ZeroDivisionError:
        return False


def brute_force(parameters: list[Parameter], rules: list[str]) -> list[Config]:
    columns = ([p.value(index) for index in range(p.size or 0)] for p in parameters)
    rows = (Config(dict(zip((p.name for p in parameters), row, strict=True))) for row in itertools.product(*columns))
    return [config for config in rows if all(satisfies(rule, config) for rule in rules)]


def with_default(parameter: Parameter, default: Value) -> Parameter:
    mapping = {**parameter_to_json(parameter), "default": default}
    return parameter_from_json(mapping)


@st.composite
def constrained(draw: st.DrawFn) -> tuple[Space, list[Config]]:
    """A small space and all of its valid configurations."""
    grids = draw(small_grids(4))
    rules = draw(st.lists(st.sampled_from(RULES), max_size=3, unique=True))
    valid = brute_force(grids, rules)
    if not valid:
        with pytest.raises(SpaceError, match="no configuration satisfies"):
            Space(*grids, constraints=rules)
        grids, rules = [Integer(name, 0, 1) for name in "abcd"], []
        valid = brute_force(grids, rules)
    default = draw(st.sampled_from(valid))
    return Space(*(with_default(p, default[p.name]) for p in grids), constraints=rules), valid


@quick
@given(constrained())
def test_counts_and_lists_exactly(case: tuple[Space, list[Config]]) -> None:
    space, valid = case
    assert space.size == len(valid)
    listed = space.configs(space.grid())
    assert len(listed) == len(valid)
    assert set(listed) == set(valid)
    assert [space.at(index) for index in range(len(valid))] == listed


@quick
@given(constrained(), seeds, st.integers(0, 300), st.floats(0, 1))
def test_samples_are_distinct_valid_and_not_excluded(
    case: tuple[Space, list[Config]], seed: int, count: int, share: float
) -> None:
    space, valid = case
    excluded = frozenset(valid[: int(share * len(valid))])
    sample = space.sample(count, np.random.default_rng(seed), excluded)
    assert len(sample) == min(count, len(valid) - len(excluded))
    assert len(set(sample)) == len(sample)
    assert set(sample) <= set(valid) - excluded
    assert sample == space.sample(count, np.random.default_rng(seed), excluded)


@quick
@given(constrained(), seeds)
def test_sampled_codes_are_feasible(case: tuple[Space, list[Config]], seed: int) -> None:
    space, valid = case
    codes = space.sample_codes(50, np.random.default_rng(seed))
    assert codes.shape == (50, 4)
    assert space.feasible(codes).all()
    assert set(space.configs(codes)) <= set(valid)


@quick
@given(constrained())
def test_codes_and_units_round_trip(case: tuple[Space, list[Config]]) -> None:
    space, valid = case
    codes = space.codes(valid)
    assert space.configs(codes) == valid
    assert space.decode(codes[0]) == valid[0]
    assert space.from_unit(space.to_unit(codes)).tolist() == codes.tolist()
    assert all(space.check(config) == config and space.contains(config) for config in valid)


@quick
@given(constrained())
def test_neighbours_are_valid_symmetric_and_one_step_away(case: tuple[Space, list[Config]]) -> None:
    space, valid = case
    near = {config: space.neighbours(config) for config in valid}
    for config, others in near.items():
        assert len(set(others)) == len(others)
        expected = {other for other in valid if one_step(space, config, other)}
        assert set(others) == expected
        assert all(config in near[other] for other in others)


def one_step(space: Space, one: Config, other: Config) -> bool:
    changed = [p for p in space.parameters if one[p.name] != other[p.name]]
    if len(changed) != 1:
        return False
    parameter = changed[0]
    return (
        not parameter.ordered or abs(parameter.index(one[parameter.name]) - parameter.index(other[parameter.name])) == 1
    )


@quick
@given(constrained())
def test_json_and_pickle_round_trip(case: tuple[Space, list[Config]]) -> None:
    space, _ = case
    for again in (Space.from_json(json.loads(json.dumps(space.to_json()))), pickle.loads(pickle.dumps(space))):
        assert again == space
        assert hash(again) == hash(space)
        assert again.default == space.default
        assert again.size == space.size


json_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(["a", "integer", "choice", "4k", "a < 1"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["kind", "name", "low"]), inner)
    ),
    max_leaves=6,
)


@quick
@given(
    st.sampled_from(
        ["parameters", "constraints", "kind", "name", "low", "high", "step", "scale", "default", "unit", "values"]
    ),
    json_values,
)
def test_malformed_json_is_a_space_error(key: str, damage: object) -> None:
    space = Space(Integer("a", 1, 4), Choice("b", [1, 2]), Real("c", 0, 1), constraints=["a <= 4"])
    mapping = json.loads(json.dumps(space.to_json()))
    targets = [mapping] if key in mapping else [p for p in mapping["parameters"] if key in p]
    for target in targets:
        target[key] = damage
    try:
        again = Space.from_json(mapping)
    except SpaceError:
        return
    assert again.contains(again.default)


def test_json_with_missing_or_unknown_keys() -> None:
    good = Space(Integer("a", 1, 4)).to_json()
    for bad in ({}, {**good, "more": 1}, {"parameters": good["parameters"]}, {**good, "parameters": [{"kind": "odd"}]}):
        with pytest.raises(SpaceError):
            Space.from_json(bad)
    for wrong in (None, 3, "x", [good]):
        with pytest.raises(SpaceError, match="not a space"):
            Space.from_json(wrong)  # type: ignore[arg-type]  # a wrong type is what is tested


@pytest.mark.parametrize(
    ("parameters", "constraints", "message"),
    [
        ([], [], "at least one parameter"),
        ([Integer("a", 1, 2), Real("a", 1, 2)], [], "a: two parameters have this name"),
        ([Integer("a", 1, 2)], ["a > 5"], 'no configuration satisfies "a > 5"'),
        ([Integer("a", 1, 2)], ["a > 1"], 'the default a=1 violates "a > 1"; give defaults that do not, such as a=2'),
        ([Integer("a", 1, 2)], "a > 1", "not a list"),
        ([Integer("a", 1, 2)], [3], "not a text"),
        ([Integer("a", 1, 10**9), Integer("b", 1, 10**9)], ["a + b > 10**10"], "no configuration satisfies"),
        ([Integer("a", 1, 10**6), Integer("b", 1, 10**6)], ["a > b"], "such as a="),
        ([Real("a", 0, 1), Real("b", 0, 1)], ["a + b > 1.5"], "such as a="),
        ([Real("a", 0, 1)], ["a > 2"], "no configuration satisfies"),
        ([Integer("a", 1, 10**6), Integer("b", 1, 10**6)], ["a < b", "b < a"], "but one may exist"),
    ],
)
def test_impossible_spaces_are_refused(parameters: list[Parameter], constraints: list[str], message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Space(*parameters, constraints=constraints)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"threads": 1, "engine": "sync"}, "ratio: has no value"),
        ({"threads": 1, "engine": "sync", "ratio": 0.5, "thread": 1}, "did you mean 'threads'"),
        (
            {"threads": 1.0, "engine": "sync", "ratio": 0.5},
            "threads: 1.0 is not one of its values; expected an integer from 1",
        ),
        (
            {"threads": 1, "engine": "async", "ratio": 0.5},
            "engine: 'async' is not one of its values; expected one of sync",
        ),
        (
            {"threads": 1, "engine": "sync", "ratio": 2},
            "ratio: 2 is not one of its values; expected a number from 0.0 to 1.0",
        ),
        ({"threads": 8, "engine": "sync", "ratio": 0.0}, 'threads=8, ratio=0.0 violates "threads < 8 or ratio > 0"'),
        ({"threads": [1], "engine": None, "ratio": {}}, "threads"),
        ({3: 1}, "no parameter 3"),
        ("threads", "not a configuration"),
    ],
)
def test_what_is_wrong_with_a_config_is_said(config: dict[str, Value], message: str) -> None:
    space = Space(
        Integer("threads", 1, 8),
        Choice("engine", ["sync", "aio"]),
        Real("ratio", 0, 1),
        constraints=["threads < 8 or ratio > 0"],
    )
    assert not space.contains(config)
    with pytest.raises(SpaceError, match=message):
        space.check(config)


def test_check_returns_the_order_of_the_space_and_plain_values() -> None:
    space = Space(Integer("a", 1, 2), Real("b", 0, 2), Choice("c", [1.0, 2.5]))
    checked = space.check({"c": 1, "b": 1, "a": 2})
    assert list(checked) == ["a", "b", "c"]
    assert [type(value) for value in checked.values()] == [int, float, float]


def test_a_million_millions() -> None:
    space = Space(Integer("a", 1, 10**6), Integer("b", 1, 10**6, default=2), constraints=["a < b"])
    assert space.size is None
    codes = space.sample_codes(20_000, np.random.default_rng(1))
    assert space.feasible(codes).all()
    # Uniform over the triangle: means at one and two thirds.
    assert codes.mean(axis=0) / 10**6 == pytest.approx([1 / 3, 2 / 3], abs=0.01)
    assert len(set(space.sample(500, np.random.default_rng(2)))) == 500
    with pytest.raises(SpaceError, match="cannot be counted"):
        space.grid()


def test_ten_to_the_twenty() -> None:
    space = Space(*(Integer(f"p{i}", 1, 100) for i in range(10)))
    assert space.size == 10**20
    for index in (0, 1, 12345678901234567890, 10**20 - 1):  # the decimal digits in pairs
        assert int("".join(f"{int(value) - 1:02d}" for value in space.at(index).values())) == index
    first = space.sample(100, np.random.default_rng(0))
    more = space.sample(100, np.random.default_rng(0), frozenset(first))
    assert len({*first, *more}) == 200
    for index in (-1, 10**20):
        with pytest.raises(SpaceError, match="does not exist"):
            space.at(index)
    with pytest.raises(SpaceError, match="too many to list"):
        space.grid()


def test_a_trillion_points_in_one_parameter() -> None:
    space = Space(Integer("a", 0, 10**12 - 1))
    assert space.size == 10**12
    assert space.at(10**12 - 1) == {"a": 10**12 - 1}
    assert space.neighbours({"a": 10**12 - 1}) == [{"a": 10**12 - 2}]


def test_all_but_one_excluded() -> None:
    space = Space(Integer("a", 1, 60), Integer("b", 1, 60))
    everything = space.configs(space.grid())
    last = everything[1234]
    assert space.sample(5, np.random.default_rng(3), frozenset(everything) - {last}) == [last]
    assert space.sample(5, np.random.default_rng(3), everything) == []
    strangers = frozenset(Config({"a": value, "b": 0}) for value in range(5000))
    assert len(space.sample(3600, np.random.default_rng(3), strangers)) == 3600


@pytest.mark.parametrize(
    ("rule", "distinct"),
    [("a == b", 300), ("a * b == 4096", 13), ("a % 4096 == 1 and b % 7 == 3", 300), ("abs(a - b) <= 1", 300)],
)
def test_rare_combinations_are_found(rule: str, distinct: int) -> None:
    defaults = {"a == b": (1, 1), "a * b == 4096": (64, 64), "abs(a - b) <= 1": (1, 1)}.get(rule, (1, 3))
    space = Space(*(Integer(n, 1, 10**6, default=d) for n, d in zip("ab", defaults, strict=True)), constraints=[rule])
    sample = space.sample(300, np.random.default_rng(5))
    assert len(sample) == distinct
    assert all(space.contains(config) for config in sample)


def test_continuous_constraints() -> None:
    space = Space(
        Real("a", 0, 1), Real("b", 0.1, 10, scale="log"), Integer("n", 1, 4), constraints=["a + b <= 1", "n * a < 2"]
    )
    assert space.size is None
    codes = space.sample_codes(1000, np.random.default_rng(4))
    assert space.feasible(codes).all()
    assert all(space.contains(config) for config in space.configs(codes[:50]))
    assert len(space.sample(200, np.random.default_rng(4))) == 200


def test_sampling_is_uniform_where_countable() -> None:
    space = Space(Integer("a", 0, 9), Integer("b", 0, 9), Integer("c", 0, 1), constraints=["a <= b"])
    codes = space.sample_codes(55_000, np.random.default_rng(6))
    _, counts = np.unique(codes, axis=0, return_counts=True)
    assert len(counts) == 110
    assert 380 < counts.min() <= counts.max() < 620


def test_samples_do_not_depend_on_what_was_asked_before() -> None:
    def build() -> Space:
        return Space(
            Integer("a", 1, 10**5), Integer("b", 1, 10**5), Real("r", 0, 1), constraints=["a <= b", "r * a <= b"]
        )

    used, fresh = build(), build()
    used.sample(100, np.random.default_rng(1))
    used.sample_codes(1000, np.random.default_rng(2))
    assert used.sample(20, np.random.default_rng(3)) == fresh.sample(20, np.random.default_rng(3))


def test_neighbours_of_continuous_parameters_reach_the_ends() -> None:
    space = Space(Real("x", 0, 1), Real("y", 1, 100, scale="log"))
    start: dict[str, Value] = {"x": 0.95, "y": 10.0}
    assert {config["x"] for config in space.neighbours(start)} == {0.85, 0.95, 1.0}
    assert {config["y"] for config in space.neighbours(start)} == {10.0, 15.8489319246, 6.3095734448}


def test_one_value_everywhere() -> None:
    space = Space(Integer("a", 0, 0), Real("b", 0, 0), Choice("c", ["x"]))
    assert space.size == 1
    assert space.neighbours(space.default) == []
    assert space.sample(3, np.random.default_rng(0)) == [{"a": 0, "b": 0.0, "c": "x"}]
    assert space.grid().tolist() == [[0.0, 0.0, 0.0]]


def test_two_values_everywhere_have_their_last_value_reached() -> None:
    space = Space(Integer("a", 0, 1), Choice("b", ["x", "y"]), Real("c", 0, 0.1, 0.1))
    assert space.neighbours(space.default) == [
        {"a": 1, "b": "x", "c": 0.0},
        {"a": 0, "b": "y", "c": 0.0},
        {"a": 0, "b": "x", "c": 0.1},
    ]


def test_spaces_cannot_be_changed() -> None:
    space = Space(Integer("a", 0, 1))
    with pytest.raises(AttributeError):
        space.constraints = ("a > 0",)  # type: ignore[misc]  # that is what is tested
    with pytest.raises(AttributeError):
        space.parameters[0].default = 1  # type: ignore[misc]  # as above


def test_names_order_and_default() -> None:
    space = Space(Integer("a", 0, 4, default=2), Choice("b", ["x", "y"]), Choice("c", [1, 2], ordered=True))
    assert space.names == ("a", "b", "c")
    assert space.ordered.tolist() == [True, False, True]
    assert space.default == {"a": 2, "b": "x", "c": 1}
    assert space.constraints == ()
    assert space != Space(Integer("a", 0, 4), Choice("b", ["x", "y"]), Choice("c", [1, 2], ordered=True))


def test_same_seed_same_samples_in_another_process() -> None:
    program = (
        "import numpy as np; from luthier.space import *;"
        "s = Space(Choice('c', ['x', 'y', 'z']), Integer('a', 1, 10**5), Integer('b', 1, 10**5), "
        "constraints=['a <= b']);"
        "print(s.sample(5, np.random.default_rng(9)))"
    )
    command = [sys.executable, "-c", program]
    outputs = {
        subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
