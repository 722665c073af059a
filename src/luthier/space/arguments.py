"""The arguments of a parameter, checked and turned into plain numbers."""

import math
import re
from collections.abc import Iterable
from typing import Literal, TypeAlias, TypeGuard

from luthier.errors import SpaceError
from luthier.space.units import format_quantity, is_plain_suffix, parse_quantity, style_of
from luthier.texts import LONGEST_NAME, is_argument, shown
from luthier.trial import Value

Scale: TypeAlias = Literal["linear", "log"]
"""The scale of a number: how its values are spread over the range."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_UNIT = re.compile(r"[A-Za-z%µ°/]*")
_LARGEST_INTEGER = 2**63
_LARGEST_REAL = 1e100


def is_int(value: object) -> TypeGuard[int]:
    """Whether it is an int; a bool is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a finite number; a bool is not."""
    if isinstance(value, float):
        return math.isfinite(value)
    return is_int(value) and abs(value) <= _LARGEST_INTEGER


def check_name(name: str) -> None:
    """Refuse a name that could not be written in a constraint or on a command line."""
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise SpaceError(
            f"{shown(name)} is not a valid parameter name; write up to {LONGEST_NAME} letters, digits, _ . -, and "
            "start with a letter or _"
        )


def check_range(name: str, low: int | float, high: int | float, scale: str) -> None:
    """Refuse an empty range, an unknown scale, and a log scale from 0 or below."""
    if scale not in ("linear", "log"):
        raise SpaceError(f"{name}: scale {shown(scale)} is unknown; expected 'linear' or 'log'")
    if low > high:
        raise SpaceError(f"{name}: low {low} is above high {high}; swap them")
    if scale == "log" and low <= 0:
        raise SpaceError(f"{name}: a log scale cannot begin at {low}; take a low above 0 or scale='linear'")


def read_style(name: str, unit: str, *bounds: object) -> str:
    """Return the style of unit that values are written in: the one that was named, else the one of the bounds."""
    if not isinstance(unit, str) or len(unit) > LONGEST_NAME or not _UNIT.fullmatch(unit):
        raise SpaceError(f"{name}: unit {shown(unit)} is not a unit; expected letters such as k, GiB, % or ms")
    if unit:
        return style_of(unit)
    styles = (parse_quantity(bound)[1] for bound in bounds if isinstance(bound, str) and is_quantity(bound))
    return next(filter(None, styles), "")


def is_quantity(text: str) -> bool:
    """Whether `parse_quantity` can read the text."""
    try:
        parse_quantity(text)
    except SpaceError:
        return False
    return True


def read_text(name: str, text: str, style: str) -> int | float:
    """Read a quantity, which may end with the parameter's own suffix."""
    if not isinstance(text, str):
        raise SpaceError(f"{name}: {shown(text)} is not a text")
    shortened = text.strip().removesuffix(style) if is_plain_suffix(style) else text
    try:
        return parse_quantity(shortened)[0]
    except SpaceError as error:
        raise SpaceError(f"{name}: {error}") from None


def read_integer(name: str, what: str, given: object, style: str) -> int:
    """Read a bound or default of a whole number."""
    number = read_text(name, given, style) if isinstance(given, str) else given
    if not is_int(number):
        raise SpaceError(f"{name}: {what} {shown(given)} is not an integer; use Real for fractions")
    if abs(number) > _LARGEST_INTEGER:
        raise SpaceError(f"{name}: {what} {shown(given)} is above 2**63; take a smaller one")
    return int(number)


def read_real(name: str, what: str, given: object, style: str) -> float:
    """Read a bound, step or default of a number."""
    number = read_text(name, given, style) if isinstance(given, str) else given
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise SpaceError(f"{name}: {what} {shown(given)} is not a number")
    if isinstance(number, float) and not math.isfinite(number):
        raise SpaceError(f"{name}: {what} {shown(given)} is not finite; give a number")
    if number != 0 and not 1 / _LARGEST_REAL <= abs(number) <= _LARGEST_REAL:
        raise SpaceError(f"{name}: {what} {shown(given)} is out of range; numbers lie between 1e-100 and 1e100")
    return float(number) + 0.0


def read_values(name: str, values: Iterable[Value]) -> tuple[Value, ...]:
    """Read the values of a choice; two that are equal or look the same on a command line are refused."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise SpaceError(f"{name}: values {shown(values)} is not a list; write [{shown(values)}]")
    listed = tuple(values)
    if not listed:
        raise SpaceError(f"{name}: has no values; give at least one")
    seen: dict[Value, int] = {}
    for position, value in enumerate(listed):
        if not isinstance(value, bool | int | float | str):
            raise SpaceError(f"{name}: {shown(value)} is not a bool, int, float or text")
        if not isinstance(value, bool | str) and not is_number(value):
            raise SpaceError(f"{name}: {shown(value)} is not a finite number below 2**63")
        if isinstance(value, str) and not is_argument(value):
            raise SpaceError(f"{name}: {shown(value)} contains half of a character, which cannot be encoded; remove it")
        for key in (value, value_text(value)):
            if seen.setdefault(key, position) != position:
                raise SpaceError(
                    f"{name}: {shown(listed[seen[key]])} and {shown(value)} are the same value; remove one"
                )
    return listed


def value_text(value: Value) -> str:
    """Write a value as on a command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def range_text(low: int | float, high: int | float, step: int | float | None, scale: str, unit: str) -> str:
    """Describe a range in a few words."""
    text = f"from {format_quantity(low, unit)} to {format_quantity(high, unit)}"
    if step is None or (step == 1 and isinstance(low, int)):
        return text
    return f"{text} in {'factors' if scale == 'log' else 'steps'} of {step}"
