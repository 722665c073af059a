"""Parameters: construction, values, texts, encodings."""

import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.arrays import FloatArray
from luthier.errors import SpaceError
from luthier.space import Choice, Integer, Parameter, Real, Scale
from luthier.space.serial import parameter_from_json, parameter_to_json
from luthier.trial import Value

quick = settings(deadline=None, max_examples=100)

SCALES: list[Scale] = ["linear", "log"]


@st.composite
def integers(draw: st.DrawFn, name: str = "i", largest: int = 10**12) -> Integer:
    scale = draw(st.sampled_from(SCALES))
    low = draw(st.integers(1 if scale == "log" else -largest, largest))
    high = draw(st.integers(low, min(largest, low + draw(st.sampled_from([0, 1, 5, 1000, largest])))))
    step: int | float = draw(st.integers(1, 50))
    if scale == "log":
        step = draw(st.one_of(st.just(1), st.integers(2, 10), st.floats(1.25, 4.0)))
    unit = draw(st.sampled_from(["", "k", "KiB", "kB", "%", "ms"]))
    bare = Integer(name, low, high, step, scale, unit=unit)
    return Integer(name, low, high, step, scale, bare.value(draw(st.integers(0, bare.size - 1))), unit)


@st.composite
def reals(draw: st.DrawFn, name: str = "r", grid: bool | None = None) -> Real:
    scale = draw(st.sampled_from(SCALES))
    low = draw(st.integers(1 if scale == "log" else -1000, 1000)) / draw(st.sampled_from([1, 10, 1000]))
    high = low + draw(st.integers(0, 2000)) / draw(st.sampled_from([1, 10, 64]))
    step: float | None = None
    if grid or (grid is None and draw(st.booleans())):
        step = draw(st.sampled_from([1.5, 2.0, 10.0] if scale == "log" else [0.1, 0.05, 0.25, 1.0, 3.7]))
    unit = draw(st.sampled_from(["", "k", "%", "ms"]))
    return Real(name, low, high, step, scale, unit=unit)


@st.composite
def choices(draw: st.DrawFn, name: str = "c") -> Choice:
    values: list[bool | int | float | str] = draw(
        st.sampled_from(
            [["sync", "aio", ""], [True, False], [0, 1, 2, 8], ["4k", "1M"], [1, "auto", 2.5], [0.5], [True, "auto"]]
        )
    )
    return Choice(name, values, draw(st.sampled_from(values)), draw(st.booleans()))


def parameters(name: str = "p") -> st.SearchStrategy[Parameter]:
    return st.one_of(integers(name), reals(name), choices(name))


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["4k", "1M", "80%", "log"]),
    st.lists(st.integers(), max_size=2),
)


YES, NO = True, False


def values(parameter: Parameter) -> list[Value]:
    return [parameter.value(index) for index in range(parameter.size or 0)]


def some_codes(parameter: Parameter, unit: list[float]) -> FloatArray:
    return parameter.from_unit(np.array([0.0, 1.0, *unit]))


units = st.lists(st.floats(0, 1), min_size=1, max_size=20)


def test_steps_do_not_drift_and_reach_the_end() -> None:
    assert values(Real("x", 0, 1, 0.1)) == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert values(Real("x", 0.7, 0.9, 0.05)) == [0.7, 0.75, 0.8, 0.85, 0.9]
    assert values(Real("x", 0.001, 1, 10, "log")) == [0.001, 0.01, 0.1, 1.0]
    assert values(Real("x", 0.0, 0.1 * 3, 0.1)) == [0.0, 0.1, 0.2, 0.3]
    assert values(Real("x", 0.0, sum([0.1] * 8), 0.1))[-1] == sum([0.1] * 8)
    assert values(Real("x", 0.1, 0.1 * 1.1**2, 1.1, "log"))[-1] == pytest.approx(0.121)
    grid = Real("x", 0, 100, 0.1)
    assert grid.numbers(np.arange(1001.0)).tolist() == values(grid)


def test_integer_grids() -> None:
    assert values(Integer("x", 1, 10, 4)) == [1, 5, 9]
    assert values(Integer("x", 4096, 1 << 20, 2, "log")) == [1 << power for power in range(12, 21)]
    assert values(Integer("x", 1, 20, 1.5, "log")) == [1, 2, 3, 5, 8, 11, 17]
    assert values(Integer("x", 1, 5, scale="log")) == [1, 2, 3, 4, 5]
    assert values(Integer("x", 0, 0)) == [0]
    assert values(Integer("x", -1, 0)) == [-1, 0]
    assert values(Integer("bs", "4k", "16k", "4k")) == [4096, 8192, 12288, 16384]


def test_value_zero_is_a_value() -> None:
    assert Integer("x", -1, 1, default=0).default == 0
    assert Real("x", -1, 1, default=0).default == 0.0
    assert Choice("x", [1, 0], default=0).default == 0
    assert Choice("x", [True, False], default=False).default is False
    assert Integer("x", 0, 4).contains(0)


def test_defaults_come_first() -> None:
    assert Integer("x", 3, 4).default == 3
    assert Real("x", 3, 4).default == 3.0
    assert Choice("x", ["b", "a"]).default == "b"
    assert Integer("bs", "4k", "1M", 2, "log", "64k").default == 65536


def test_texts_on_the_command_line() -> None:
    assert Integer("bs", "4k", "1M", "4k").format(65536) == "64k"
    assert Integer("bs", 4096, 1 << 20, unit="KiB").format(1 << 20) == "1MiB"
    assert Integer("bs", 1, 2000, unit="k").format(1000) == "1000"
    assert Integer("x", 1, 9).format(5) == "5"
    assert Integer("fill", "10%", "90%").format(80) == "80%"
    assert Integer("wait", 1, 9, unit="ms").format(5) == "5ms"
    assert Integer("wait", 1, 9, unit="ms").parse("5ms") == 5
    assert Real("x", 0, 1).format(0.1) == "0.1"
    assert Choice("x", [True, False]).format(NO) == "false"
    assert Choice("x", ["true"]).format("true") == "true"
    assert Integer("bs", 1, 1 << 20).parse("4k") == 4096
    assert Choice("x", [1, 2.5]).parse("2.5") == 2.5


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Integer("depth", 64, 1), "depth: low 64 is above high 1; swap them"),
        (lambda: Integer("x", 0, 8, 2, "log"), "low above 0"),
        (lambda: Real("x", 0, 8, scale="log"), "low above 0"),
        (lambda: Integer("x", 1, 8, 0.5, "log"), "above 1"),
        (lambda: Real("x", 1, 8, 1, "log"), "above 1"),
        (lambda: Integer("x", 1, 8, 0), "above 0"),
        (lambda: Real("x", 1, 8, -1.0), "above 0"),
        (lambda: Real("x", float("nan"), 8), "not finite"),
        (lambda: Real("x", 1, float("inf")), "not finite"),
        (lambda: Integer("x", 1, 8, float("nan"), "log"), "not finite"),
        (lambda: Integer("x", YES, 8), "not an integer"),
        (lambda: Integer("x", 1.0, 8), "not an integer"),  # type: ignore[arg-type]  # a wrong type is what is tested
        (lambda: Integer("x", 1, 8, 1.5), "not an integer"),
        (lambda: Integer("x", 1, 8, 2, default=2), "not one of its values"),
        (lambda: Integer("x", 1, 8, default=9), "not one of its values"),
        (lambda: Real("x", 0, 1, 0.1, default=0.15), "not one of its values"),
        (lambda: Real("x", 0, 1, default=1.5), "not one of its values"),
        (lambda: Choice("x", ["a"], default="b"), "not one of its values"),
        (lambda: Choice("x", [1], default=True), "not one of its values"),
        (lambda: Choice("x", []), "no values"),
        (lambda: Choice("x", "abc"), "not a list"),
        (lambda: Choice("x", [1, True]), "the same"),
        (lambda: Choice("x", [1, 1.0]), "the same"),
        (lambda: Choice("x", [1, "1"]), "the same"),
        (lambda: Choice("x", ["a", "a"]), "the same"),
        (lambda: Choice("x", [float("nan")]), "finite"),
        (lambda: Integer("", 1, 2), "name"),
        (lambda: Integer("1x", 1, 2), "name"),
        (lambda: Integer("a b", 1, 2), "name"),
        (lambda: Integer("x\n", 1, 2), "name"),
        (lambda: Integer("x", 1, 2, scale="cubic"), "scale"),  # type: ignore[arg-type]  # as above
        (lambda: Integer("x", "4q", 8), "unknown unit"),
        (lambda: Integer("x", 1, 10**14, scale="log"), "give a step"),
        (lambda: Integer("x", 0, 2**60), "larger step"),
        (lambda: Real("x", 2.0, 2.0000000000000004, scale="log"), "too narrow"),
        (lambda: Integer("x", 1, 10**12, 1.0000001, "log"), "larger one"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(build: Callable[[], Parameter], message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        build()


@quick
@given(st.sampled_from([Integer, Real, Choice]), st.lists(anything, min_size=1, max_size=6))
def test_any_arguments_give_a_parameter_or_a_space_error(kind: type[Parameter], arguments: list[object]) -> None:
    needed = 2 if kind is Choice else 3
    arguments = (arguments * 3)[: max(needed, min(len(arguments), needed + 1))]
    try:
        made = kind("x", *arguments[1:])  # type: ignore[arg-type]  # wrong types are what is tested
    except SpaceError:
        return
    assert made.contains(made.default)


@quick
@given(parameters(), anything)
def test_any_value_is_contained_or_refused(parameter: Parameter, value: Value) -> None:
    if parameter.contains(value):
        assert parameter.parse(parameter.format(value)) == value
    else:
        with pytest.raises(SpaceError):
            parameter.code(value)
        with pytest.raises(SpaceError):
            parameter.format(value)


@quick
@given(parameters(), st.text(max_size=6))
def test_any_text_is_a_value_or_refused(parameter: Parameter, text: str) -> None:
    try:
        value = parameter.parse(text)
    except SpaceError:
        return
    assert parameter.contains(value)


def test_types_are_told_apart() -> None:
    assert not Integer("x", 1, 9).contains(5.0)
    assert not Integer("x", 0, 9).contains(YES)
    assert Real("x", 1, 9).contains(5)
    assert not Real("x", 0, 9).contains(YES)
    assert not Real("x", 0, 9).contains(float("nan"))
    assert not Choice("x", [1, 2]).contains(YES)
    assert not Choice("x", [1, 2]).contains(1.0)
    assert Choice("x", [1.0, 2.5]).contains(1)
    assert not Choice("x", ["1"]).contains(1)
    assert Choice("x", [1]) != Choice("x", [True])
    assert not Choice("x", [1]).contains([1])


@quick
@given(parameters(), units)
def test_codes_survive_the_unit_interval(parameter: Parameter, unit: list[float]) -> None:
    codes = some_codes(parameter, unit)
    encoded = parameter.to_unit(codes)
    assert ((encoded >= 0) & (encoded <= 1)).all()
    assert parameter.from_unit(encoded).tolist() == codes.tolist()


@quick
@given(parameters(), units)
def test_codes_are_values(parameter: Parameter, unit: list[float]) -> None:
    for code in some_codes(parameter, unit).tolist():
        value = code if parameter.size is None else parameter.value(int(code))
        assert parameter.contains(value)
        assert parameter.code(value) == code
        assert parameter.parse(parameter.format(value)) == value


@quick
@given(st.one_of(integers(), reals()), units)
def test_numbers_are_the_values(parameter: Integer | Real, unit: list[float]) -> None:
    codes = some_codes(parameter, unit)
    expected = [code if parameter.size is None else float(parameter.value(int(code))) for code in codes.tolist()]
    assert parameter.numbers(codes).tolist() == expected


@quick
@given(parameters())
def test_first_and_last_values_are_reached(parameter: Parameter) -> None:
    first, last = parameter.from_unit(np.array([0.0, 1.0])).tolist()
    if parameter.size is None and isinstance(parameter, Real):
        assert (first, last) == (parameter.low, parameter.high)
    else:
        assert (first, last) == (0, (parameter.size or 0) - 1)


@quick
@given(st.one_of(integers(largest=200), reals(grid=True), choices()))
def test_values_are_distinct_sorted_and_within(parameter: Parameter) -> None:
    listed = values(parameter)
    assert len(set(listed)) == len(listed)
    assert [parameter.index(value) for value in listed] == list(range(len(listed)))
    if isinstance(parameter, Integer | Real):
        numbers = [float(value) for value in listed]
        assert numbers == sorted(numbers)
        assert numbers[0] == parameter.low
        assert numbers[-1] <= parameter.high


@quick
@given(parameters())
def test_json_round_trip(parameter: Parameter) -> None:
    again = parameter_from_json(json.loads(json.dumps(parameter_to_json(parameter))))
    assert again == parameter
    assert hash(again) == hash(parameter)
    assert repr(again) == repr(parameter)


def test_uniform_numbers_give_uniform_values() -> None:
    unit = (np.arange(1000) + 0.5) / 1000
    for parameter in (Integer("x", 1, 5), Choice("x", [1, 2, 3, 4, 5]), Integer("x", 1, 16, 2, "log")):
        assert np.bincount(parameter.from_unit(unit).astype(int)).tolist() == [200] * 5
    decades = Integer("x", 1, 999, scale="log").from_unit(unit) + 1
    assert 200 < (decades < 10).sum() < 450 < 800 > (decades < 100).sum() > 600


def test_indices_out_of_range() -> None:
    for index in (-1, 3):
        with pytest.raises(SpaceError, match="0 to 2"):
            Integer("x", 1, 3).value(index)
    with pytest.raises(SpaceError, match="continuous"):
        Real("x", 0, 1).value(0)
    with pytest.raises(SpaceError, match="continuous"):
        Real("x", 0, 1).index(0.5)


def test_a_huge_range_is_not_tabulated() -> None:
    huge = Integer("x", 0, 10**12)
    assert huge.size == 10**12 + 1
    assert huge.value(10**12) == 10**12
    assert huge.from_unit(huge.to_unit(np.array([10.0**12]))).tolist() == [10.0**12]
