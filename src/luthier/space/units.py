"""Quantities as people write them: 4k, 1M, 16GiB, 80%."""

import re
from decimal import Decimal
from fractions import Fraction

from luthier.errors import SpaceError
from luthier.texts import NUMBER, shown

_NUMBER = re.compile(rf"({NUMBER})\s*([A-Za-z%]*)")
_LONGEST_TEXT = 64
_LARGEST_EXPONENT = 150
_LARGEST_WHOLE = 2**63


def _ladder(names: str, base: int) -> tuple[tuple[str, int], ...]:
    return tuple((name, base**power) for power, name in enumerate(names.split(), start=1))


# What dd understands: a bare letter and KiB count in 1024, kB in 1000.
_STYLES: dict[str, tuple[tuple[str, int], ...]] = {
    "k": _ladder("k M G T P", 1024),
    "K": _ladder("K M G T P", 1024),
    "KiB": _ladder("KiB MiB GiB TiB PiB", 1024),
    "kB": _ladder("kB MB GB TB PB", 1000),
    "KB": _ladder("KB MB GB TB PB", 1000),
    "%": (("%", 1),),
}
# A unit of two ladders (M, MB) belongs to the first of them.
_UNITS: dict[str, tuple[int, str]] = {
    unit: (factor, style) for style, ladder in reversed(_STYLES.items()) for unit, factor in ladder
}


def parse_quantity(text: str) -> tuple[int | float, str]:
    """Read a number with an optional unit; return it, an int where it is whole, and its style of units ("" if none)."""
    match = _NUMBER.fullmatch(text.strip()) if len(text) <= _LONGEST_TEXT else None
    if match is None:
        raise SpaceError(f"{shown(text)} is not a quantity; write a number and perhaps a unit: 4k, 80%")
    digits, unit = match.groups()
    if unit and unit not in _UNITS:
        raise SpaceError(f"{text!r} has the unknown unit {unit!r}; known: {', '.join(_UNITS)}")
    decimal = Decimal(digits)
    if decimal and abs(decimal.adjusted()) > _LARGEST_EXPONENT:
        raise SpaceError(f"{text!r} is out of range; the largest exponent is {_LARGEST_EXPONENT}")
    factor, style = _UNITS.get(unit, (1, ""))
    exact = Fraction(decimal) * factor
    return (exact.numerator if exact.denominator == 1 else float(exact)), style


def format_quantity(number: int | float, style: str) -> str:
    """Write a number with the largest unit of a style that divides it exactly; a style of its own is a plain suffix."""
    if style and isinstance(number, float) and number.is_integer() and abs(number) < _LARGEST_WHOLE:
        number = int(number)
    if style in ("", "%") or style not in _STYLES:
        return f"{number!r}{style}"
    if isinstance(number, int) and number != 0:
        for unit, factor in reversed(_STYLES[style]):
            if number % factor == 0:
                return f"{number // factor}{unit}"
    return repr(number)


def style_of(unit: str) -> str:
    """Return the style a unit belongs to; an unknown unit is its own style, a plain suffix."""
    return _UNITS[unit][1] if unit in _UNITS and unit not in _STYLES else unit


def is_plain_suffix(style: str) -> bool:
    """Whether the style is a suffix that counts nothing, such as "ms"."""
    return style != "" and style not in _STYLES
