"""Constraints: what they mean, and what is said of those that mean nothing."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.arrays import FloatArray
from luthier.errors import SpaceError
from luthier.space import Choice, Integer, Parameter, Real, Space
from luthier.space.boxes import LinkedParameters
from luthier.space.constraints import parse_constraint

quick = settings(deadline=None, max_examples=50)

NUMBERS: list[Parameter] = [Integer("a", -2, 3), Integer("b", 0, 2), Real("x", 0, 1, 0.5)]
MIXED: list[Parameter] = [
    Choice("engine", ["sync", "aio"]),
    Choice("block", ["4k", "64k", "1M"]),
    Choice("cache", [True, False]),
    Choice("mode", [2, "auto", True]),
    Integer("my-param", 1, 4),
    Integer("my", 1, 4),
    Integer("min", 1, 4),
    Integer("fill", "10%", "90%", 40),
]


def all_codes(parameters: list[Parameter]) -> FloatArray:
    return np.array(list(itertools.product(*(range(p.size or 0) for p in parameters))), dtype=np.float64)


def satisfied(text: str, parameters: list[Parameter]) -> list[bool]:
    codes = all_codes(parameters)
    answers: list[bool] = parse_constraint(text, parameters).satisfied(dict(enumerate(codes.T)), len(codes)).tolist()
    return answers


# The reference: Python itself, with conditions as 0, 1/2 (undefined), 1 and every operation in its own brackets.
def kleene(expression: str, variables: dict[str, float]) -> float:
    def compare(left: str, sign: str, right: str) -> float:
        try:
            return float(eval(f"({left}) {sign} ({right})", {"min": min, "max": max, "abs": abs}, variables))
        except (ZeroDivisionError, OverflowError):
            return 0.5

    answer = eval(expression, {"compare": compare, "min": min, "max": max}, {})
    return float(answer)


leaves = st.sampled_from(["a", "b", "x", "0", "1", "2", "0.5", "3"])
signs = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from([" + ", "-", " * ", "/", " // ", " % "]), inner).map("".join),
        inner.map("({})".format),
        inner.map("(-{})".format),
        inner.map("abs({})".format),
        st.tuples(inner, inner).map(lambda pair: f"min({pair[0]}, {pair[1]})"),
        st.tuples(inner, inner).map(lambda pair: f"max({pair[0]},{pair[1]}, 1)"),
        st.tuples(st.sampled_from(["a", "b", "2"]), st.sampled_from(["0", "2", "3"])).map("**".join),
    )


arithmetic = st.recursive(leaves, larger, max_leaves=5)


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3) -> tuple[str, str]:
    """A condition in the language of constraints, and the same for `kleene`."""
    kind = draw(st.sampled_from(["compare", "chain", "and", "or", "not"] if depth else ["compare", "chain"]))
    if kind == "not":
        text, reference = draw(conditions(depth - 1))
        return f"not ({text})", f"(1 - {reference})"
    if kind in ("and", "or"):
        (left, left_reference), (right, right_reference) = draw(conditions(depth - 1)), draw(conditions(depth - 1))
        function = "min" if kind == "and" else "max"
        return f"({left}) {kind} ({right})", f"{function}({left_reference}, {right_reference})"
    one, first, two = draw(arithmetic), draw(signs), draw(arithmetic)
    reference = f"compare({one!r}, {first!r}, {two!r})"
    if kind == "compare":
        return f"{one} {first} {two}", reference
    second, three = draw(signs), draw(arithmetic)
    return f"{one} {first} {two} {second} {three}", f"min({reference}, compare({two!r}, {second!r}, {three!r}))"


def reference_answers(reference: str) -> list[bool]:
    rows = itertools.product(*([p.value(index) for index in range(p.size or 0)] for p in NUMBERS))
    return [kleene(reference, dict(zip("abx", map(float, row), strict=True))) == 1.0 for row in rows]


@quick
@given(conditions())
def test_agrees_with_python(condition: tuple[str, str]) -> None:
    text, reference = condition
    try:
        answers = satisfied(text, NUMBERS)
    except SpaceError as error:
        problem = str(error)
    else:
        assert answers == reference_answers(reference)
        return
    assert "names no parameter" in problem or "nested deeper" in problem


@quick
@given(conditions(), st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=3))
def test_bounds_hold_what_they_bound(condition: tuple[str, str], sides: list[tuple[float, float]]) -> None:
    try:
        constraint = parse_constraint(condition[0], NUMBERS)
    except SpaceError:
        return
    low, high = (
        np.array([[p.from_unit(np.array([pick(side)]))[0] for p, side in zip(NUMBERS, sides, strict=True)]])
        for pick in (min, max)
    )
    possible, certain = constraint.verdict(dict(enumerate(low.T)), dict(enumerate(high.T)), 1)
    codes = all_codes(NUMBERS)
    inside = codes[((codes >= low) & (codes <= high)).all(axis=1)]
    answers = constraint.satisfied(dict(enumerate(inside.T)), len(inside))
    assert possible[0] or not answers.any()
    assert answers.all() or not certain[0]


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("-a ** 2 < b", "-a ** 2 < b"),
        ("2 ** b ** 2 > 3", "2 ** b ** 2 > 3"),
        ("2 ** -b <= x", "2 ** -b <= x"),
        ("a - b - 1 >= 0", "a - b - 1 >= 0"),
        ("a-1>b", "a - 1 > b"),
        ("not a < b and x == 0.5", "not a < b and x == 0.5"),
        ("a < b or x > 0 and b == 2", "a < b or x > 0 and b == 2"),
        ("a in [1, b, 3]", "a in [1, b, 3]"),
        ("a not in [1, b + 1]", "a not in [1, b + 1]"),
        ("not a in [1] or b == 1", "not a in [1] or b == 1"),
        ("(a < b) == (x > 0)", "(a < b) == (x > 0)"),
        ("(a < b) != true", "(a < b) != True"),
        ("0 <= a < b <= 2", "0 <= a < b <= 2"),
        ("a % 2 == 1", "a % 2 == 1"),
        ("a%2 == 1", "a % 2 == 1"),
        ("a // 2 == -1", "a // 2 == -1"),
        ("+a >= 1.", "a >= 1."),
        ("a < 1k", "a < 1024"),
        ("x <= 50% / 100", "x <= 0.5"),
        ("x == .5", "x == .5"),
        ("a < 1e-1", "a < 0.1"),
        ("true and a > 0", "a > 0"),
    ],
)  # fmt: skip
def test_precedence_is_that_of_python(text: str, python: str) -> None:
    rows = itertools.product(*([p.value(index) for index in range(p.size or 0)] for p in NUMBERS))
    assert satisfied(text, NUMBERS) == [bool(eval(python, {}, dict(zip("abx", row, strict=True)))) for row in rows]


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("1 / a != 7", {"a": [-2, -1, 1, 2, 3]}),
        ("not 1 / a > 5", {"a": [-2, -1, 1, 2, 3]}),
        ("a == 0 or 1 / a > 0", {"a": [0, 1, 2, 3]}),
        ("1 / a > 0 or a == 0", {"a": [0, 1, 2, 3]}),
        ("10 ** (a * 100) ** 3 >= 0", {"a": [-2, -1, 0]}),
        ("a % 0 == a % 0", {"a": []}),
        ("(0 - 1) ** (a / 2) < 2", {"a": [-2, 0, 2]}),
    ],
)
def test_undefined_is_unsatisfied(text: str, valid: dict[str, list[int]]) -> None:
    parameter = Integer("a", -2, 3)
    assert [value for value, ok in zip(range(-2, 4), satisfied(text, [parameter]), strict=True) if ok] == valid["a"]


@pytest.mark.parametrize(
    ("text", "name", "valid"),
    [
        ('engine == "sync"', "engine", ["sync"]),
        ("'aio' == engine", "engine", ["aio"]),
        ("engine not in ['aio']", "engine", ["sync"]),
        ("block >= 64k", "block", ["64k", "1M"]),
        ("block == '64k'", "block", ["64k"]),
        ("block == '64KiB'", "block", ["64k"]),
        ("block in ['4k', '1M']", "block", ["4k", "1M"]),
        ("cache", "cache", [True]),
        ("not cache", "cache", [False]),
        ("cache == false", "cache", [False]),
        ("mode == 'auto'", "mode", ["auto"]),
        ("mode == true", "mode", [True]),
        ("mode != 2", "mode", ["auto", True]),
        ("my-param < 2", "my-param", [1]),
        ("my-1 == 3", "my", [4]),
        ("my - 1 == 3", "my", [4]),
        ("min < 2", "min", [1]),
        ("min(min, 2) == min", "min", [1, 2]),
        ("fill <= 50%", "fill", [10, 50]),
        ("fill == 50% or fill<20%", "fill", [10, 50]),
        ("fill %40 == 10", "fill", [10, 50, 90]),
    ],
)
def test_choices_units_and_names(text: str, name: str, valid: list[object]) -> None:
    parameters = [parameter for parameter in MIXED if parameter.name in (name, "my", "min")]
    position = [parameter.name for parameter in parameters].index(name)
    codes = all_codes(parameters)
    mask = parse_constraint(text, parameters).satisfied(dict(enumerate(codes.T)), len(codes))
    found = sorted({int(code) for code in codes[mask][:, position]})
    assert [parameters[position].value(index) for index in found] == valid


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a < lenght", "did you mean 'length'"),
        ("a < zzz", "known: a, cache, engine, length"),
        ("a < 'x'", "compares a number with a text"),
        ("engine < 3", "compares a text with a number"),
        ("engine < 'sync'", "not less or more"),
        ("engine == 'synk'", "never 'synk'; expected one of sync, aio"),
        ("a + length", "position 1: 'a' begins a number, not a condition"),
        ("engine", "not a condition"),
        ("a and length > 1", "not a condition"),
        ("cache + 1 > 2", "not a number"),
        ("cache < 1", "compares a condition with a number"),
        ("a <", "position 4: found 'the end'; expected a value"),
        ("a < )", "position 5"),
        ("(a < 3", "expected '\\)'"),
        ("a < 3)", "expected an operator or the end"),
        ("a = 3", "write == to compare"),
        ("a < 3q", "unknown unit"),
        ("a & 3", "position 3"),
        ("a < 3 4", "position 7"),
        ("a in 3", "expected '\\['"),
        ("a in []", "expected a value"),
        ("abs(a, 1) > 1", "abs takes one number"),
        ("min() > 1", "expected a value"),
        ("a < 'x", "position 5"),
        ("1 < 2", "names no parameter"),
        ("", "is not a text"),
        ("(" * 100 + "a" + ")" * 100 + " > 1", "nested deeper"),
        ("not " * 200 + "a > 1", "nested deeper"),
        ("a" + " + a" * 400 + " > 1", "longer than"),
        ("__import__('os')", "no parameter '__import__'"),
    ],
)  # fmt: skip
def test_mistakes_are_explained(text: str, message: str) -> None:
    parameters: list[Parameter] = [
        Integer("a", 1, 9),
        Integer("length", 1, 9),
        Choice("engine", ["sync", "aio"]),
        Choice("cache", [True, False]),
    ]
    with pytest.raises(SpaceError, match=message):
        parse_constraint(text, parameters)


symbols = "a b x 1 2k 50% ( ) [ ] , < <= == != + - * / // % ** and or not in min max abs true 'x' engine = ! ."
words = st.sampled_from(symbols.split())


@quick
@given(st.one_of(st.text(max_size=12), st.lists(words, max_size=12).map(" ".join)))
def test_any_text_is_a_constraint_or_a_space_error(text: str) -> None:
    parameters = [*NUMBERS, Choice("engine", ["sync", "aio"])]
    try:
        constraint = parse_constraint(text, parameters)
    except SpaceError:
        return
    codes = all_codes(parameters)
    assert constraint.satisfied(dict(enumerate(codes.T)), len(codes)).shape == (len(codes),)


def test_refinement_keeps_every_valid_point() -> None:
    parameters: tuple[Parameter, ...] = (
        Integer("a", 1, 30),
        Choice("b", ["x", "y", "z"]),
        Integer("c", 1, 64, 2, "log"),
    )
    constraint = parse_constraint("a * c == 24 and b != 'y' or a ** 2 == c", parameters)
    problem = LinkedParameters((0, 1, 2), parameters, (constraint,))
    codes = all_codes(list(parameters))
    valid = {tuple(row) for row in codes[problem.satisfied(codes)].tolist()}
    boxes = problem.refine(problem.everything(), 10**6)
    assert boxes.certain.all()
    held = [range(int(low), int(high) + 1) for low, high in zip(boxes.low.ravel(), boxes.high.ravel(), strict=True)]
    found = [point for row in range(len(boxes)) for point in itertools.product(*held[3 * row : 3 * row + 3])]
    assert sorted(found) == sorted(valid)


def test_names_with_dots_and_hyphens() -> None:
    space = Space(
        Integer("io.depth", 1, 8),
        Integer("io", 1, 8),
        Integer("io-max", 1, 8, default=8),
        constraints=["io.depth <= io-max-1"],
    )
    assert space.size == 8 * sum(depth <= most - 1 for depth in range(1, 9) for most in range(1, 9))


@pytest.mark.parametrize(
    "text",
    [
        "a ** 2 == 0", "a ** 2 < 1", "a ** 3 < -1", "a % 3 == 1", "a % (b - 1) >= 0", "a // 2 == b", "x / b > a",
        "2 ** a < x", "a ** b == 1", "a * b == -2", "abs(a) < 1", "a - b > 2", "min(a, b) == 0", "max(a, x) < 1",
        "(a < b) == (x > 0)", "a ** -1 > 0", "not a ** x > 1", "a ** -2 == 1",
    ],
)  # fmt: skip
def test_bounds_hold_in_every_box(text: str) -> None:
    constraint = parse_constraint(text, NUMBERS)
    codes = all_codes(NUMBERS)
    answers = constraint.satisfied(dict(enumerate(codes.T)), len(codes))
    sides = [[(low, high) for low in range(p.size or 0) for high in range(low, p.size or 0)] for p in NUMBERS]
    for box in itertools.product(*sides):
        low, high = np.array([side[0] for side in box], dtype=float), np.array([side[1] for side in box], dtype=float)
        possible, certain = constraint.verdict(dict(enumerate(low[:, None])), dict(enumerate(high[:, None])), 1)
        inside = answers[((codes >= low) & (codes <= high)).all(axis=1)]
        assert possible[0] or not inside.any()
        assert inside.all() or not certain[0]
