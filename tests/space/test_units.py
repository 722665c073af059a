"""Quantities as people write them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import SpaceError
from luthier.space import format_quantity, parse_quantity

quick = settings(deadline=None, max_examples=100)

STYLES = ["", "k", "K", "KiB", "kB", "KB", "%"]


@pytest.mark.parametrize(
    ("text", "number", "style"),
    [
        ("4k", 4096, "k"),
        ("4K", 4096, "K"),
        ("4KiB", 4096, "KiB"),
        ("4kB", 4000, "kB"),
        ("4KB", 4000, "KB"),
        ("1M", 1024**2, "k"),
        ("1MiB", 1024**2, "KiB"),
        ("1MB", 10**6, "kB"),
        ("16GiB", 16 * 1024**3, "KiB"),
        ("2T", 2 * 1024**4, "k"),
        ("1P", 1024**5, "k"),
        ("80%", 80, "%"),
        ("1.5k", 1536, "k"),
        ("0.1", 0.1, ""),
        (" -3 ", -3, ""),
        ("1e3", 1000, ""),
        ("0", 0, ""),
    ],
)
def test_reads(text: str, number: float, style: str) -> None:
    assert parse_quantity(text) == (number, style)
    assert isinstance(parse_quantity(text)[0], int) == float(number).is_integer()


@pytest.mark.parametrize(
    ("number", "style", "text"),
    [
        (4096, "k", "4k"),
        (1000, "k", "1000"),
        (1536, "k", "1536"),
        (0, "k", "0"),
        (-2048, "KiB", "-2KiB"),
        (10**6, "kB", "1MB"),
        (3 * 1024**5, "k", "3P"),
        (512.0, "k", "512"),
        (80, "%", "80%"),
        (0.5, "%", "0.5%"),
        (0.1, "", "0.1"),
        (5, "ms", "5ms"),
    ],
)
def test_writes(number: float, style: str, text: str) -> None:
    assert format_quantity(number, style) == text


@pytest.mark.parametrize(
    "text", ["", "k", "4x", "4 k k", "1e999999999", "1" * 100, "nan", "inf", "0x10", "٣", "1,5", "--1"]
)
def test_refuses(text: str) -> None:
    with pytest.raises(SpaceError):
        parse_quantity(text)


@quick
@given(st.integers(-(2**63), 2**63), st.sampled_from(STYLES))
def test_integers_come_back(number: int, style: str) -> None:
    assert parse_quantity(format_quantity(number, style))[0] == number


@quick
@given(st.floats(1e-90, 1e90), st.sampled_from(STYLES))
def test_floats_come_back(number: float, style: str) -> None:
    assert float(parse_quantity(format_quantity(number, style))[0]) == number


@quick
@given(st.text())
def test_any_text_is_a_quantity_or_a_space_error(text: str) -> None:
    try:
        number, _ = parse_quantity(text)
    except SpaceError:
        return
    assert isinstance(number, int | float)
