import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import InvalidInputError, LuthierError, SpaceError
from luthier.space import Choice, Integer, Real
from luthier.spec.durations import parse_duration
from luthier.spec.notation import parse_parameter


@pytest.mark.parametrize(
    ("text", "values", "default"),
    [
        ("t=1..4", [1, 2, 3, 4], 1),
        ("t=1..4@3", [1, 2, 3, 4], 3),
        ("t=0..6:2", [0, 2, 4, 6], 0),
        ("t=-2..2:2", [-2, 0, 2], -2),
        ("t=1..64:x2", [1, 2, 4, 8, 16, 32, 64], 1),
        ("t=1..60:x2", [1, 2, 4, 8, 16, 32], 1),
        ("t=5..5", [5], 5),
        ("t=0.1..0.5:0.1", [0.1, 0.2, 0.3, 0.4, 0.5], 0.1),
        ("t=1..2:0.5", [1.0, 1.5, 2.0], 1.0),
        ("t=4k..32k:x2", [4096, 8192, 16384, 32768], 4096),
        ("t=10%..30%:10", [10, 20, 30], 10),
        ("t=a,b,c", ["a", "b", "c"], "a"),
        ("t=a,b,c@b", ["a", "b", "c"], "b"),
        ("t=one", ["one"], "one"),
        ("t=8,2,4", [2, 4, 8], 8),
        ("t=0,1", [0, 1], 0),
        ("t=0.5,2.5", [0.5, 2.5], 0.5),
        ("t=64k,4k,1M", ["4k", "64k", "1M"], "64k"),
        ("t=007,7e0", ["007", "7e0"], "007"),
        ("t=on,off,1", ["on", "off", "1"], "on"),
        ("t=on,1@1", ["on", "1"], "1"),
        (r"t=a\,b,c\@d", ["a,b", "c@d"], "a,b"),
        ("t=x=1,y=2", ["x=1", "y=2"], "x=1"),
    ],
)
def test_a_spec_gives_its_values(text: str, values: list[object], default: object) -> None:
    parameter = parse_parameter(text)
    assert parameter.size is not None
    assert [parameter.value(index) for index in range(parameter.size)] == values
    assert parameter.default == default
    assert type(parameter.default) is type(default)


@pytest.mark.parametrize(
    ("text", "kind", "ordered"),
    [("a=1..9", Integer, True), ("a=0.5..1", Real, True), ("a=4k,8k", Choice, True), ("a=x,y", Choice, False)],
)
def test_a_spec_gives_its_kind(text: str, kind: type, ordered: bool) -> None:
    parameter = parse_parameter(text)
    assert isinstance(parameter, kind)
    assert parameter.ordered is ordered


@pytest.mark.parametrize("text", ["b=4k,16k,1M", "b=4k..1M:x2", "b=16GiB,1GiB", "b=50%..80%:10%"])
def test_a_value_reaches_the_command_as_it_was_typed(text: str) -> None:
    parameter = parse_parameter(text)
    low = text.partition("=")[2].replace("..", ",").split(",")[0]
    assert parameter.format(parameter.default) == low


@pytest.mark.parametrize(
    "text",
    [
        "", "=", "a", "a=", "=1,2", "a=1..", "a=..3", "a=5..1", "a=1..4@9", "a=x,y@z", "a=1,1", "a=1,,2", "a=0..8:x2",
        "a=1..8:x1", "a=1..8:0", "a=1..8:-1", "a=a..b", "a=1..9:y2", "a b=1,2", "a=nan..1", "a=1..inf", "a=1..4@",
        "9=1,2",
    ],
)  # fmt: skip
def test_a_bad_spec_is_one_clear_line(text: str) -> None:
    with pytest.raises(SpaceError) as caught:
        parse_parameter(text)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text())
def test_any_text_is_a_parameter_or_an_error(text: str) -> None:
    try:
        parameter = parse_parameter(text)
    except LuthierError:
        return
    assert parameter.contains(parameter.default)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("1d", 86400), ("200ms", 0.2), ("3 min", 180)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "0", "-3s", "s", "3 weeks", "1e3", "nan"])
def test_bad_durations(text: str) -> None:
    with pytest.raises(InvalidInputError, match="not a duration"):
        parse_duration(text)
