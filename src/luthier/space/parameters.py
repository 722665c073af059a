"""The kinds of parameters."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from luthier.arrays import FloatArray
from luthier.errors import SpaceError
from luthier.space.arguments import (
    Scale,
    check_name,
    check_range,
    is_int,
    is_number,
    range_text,
    read_integer,
    read_real,
    read_style,
    read_text,
    read_values,
    value_text,
)
from luthier.space.axes import (
    Axis,
    Continuous,
    Grid,
    cell_centres,
    cells_at,
    geometric,
    linear_integers,
    linear_reals,
    log_integers,
)
from luthier.space.units import format_quantity, parse_quantity
from luthier.texts import shown, visible
from luthier.trial import Value

_MOST_SHOWN = 8
_LONGEST_SHOWN = 80
_NARROWEST = 1e-12


class _Number:
    """What integers and reals have in common; the axis knows the values."""

    __slots__ = ()
    _axis: Axis

    @property
    def ordered(self) -> bool:
        """Numbers have an order."""
        return True

    def numbers(self, codes: FloatArray) -> FloatArray:
        """The numbers that codes encode."""
        return self._axis.numbers(codes)

    def to_unit(self, codes: FloatArray) -> FloatArray:
        """Map codes into the unit interval."""
        return self._axis.to_unit(codes)

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """Map the unit interval to codes; uniform numbers give uniform values on the parameter's scale."""
        return self._axis.from_unit(unit)


@dataclass(frozen=True, slots=True, init=False)
class Integer(_Number):
    """A whole number; a `log` one with a step above 1 multiplies by it, with step 1 takes every integer."""

    name: str
    low: int
    high: int
    step: int | float
    scale: Scale
    default: int
    unit: str
    _axis: Grid = field(repr=False, compare=False)

    def __init__(
        self,
        name: str,
        low: int | str,
        high: int | str,
        step: int | float | str = 1,
        scale: Scale = "linear",
        default: int | str | None = None,
        unit: str = "",
    ) -> None:
        check_name(name)
        style = read_style(name, unit, low, high)
        start, end = read_integer(name, "low", low, style), read_integer(name, "high", high, style)
        stride = _step(name, step, style)
        check_range(name, start, end, scale)
        axis = _integer_axis(name, start, end, stride, scale)
        first = start if default is None else read_integer(name, "default", default, style)
        if axis.find(first) is None:
            expected = range_text(start, end, stride, scale, style)
            raise SpaceError(
                f"{name}: default {shown(default)} is not one of its values; expected an integer {expected}"
            )
        _fill(self, name=name, low=start, high=end, step=stride, scale=scale, default=first, unit=style, _axis=axis)

    @property
    def size(self) -> int:
        """How many values there are."""
        return self._axis.size

    def contains(self, value: object) -> bool:
        """Whether it is one of the values: an int, not a float or bool that equals it."""
        return is_int(value) and self._axis.find(value) is not None

    def value(self, index: int) -> int:
        """The value at an index."""
        _check_index(self.name, index, self.size)
        return int(self._axis.value(index))

    def index(self, value: Value) -> int:
        """The index of a value."""
        index = self._axis.find(value) if is_int(value) else None
        if index is None:
            raise _not_a_value(self, value)
        return index

    def code(self, value: Value) -> float:
        """The number that encodes a value in arrays."""
        return float(self.index(value))

    def format(self, value: Value) -> str:
        """The text of a value on a command line."""
        return format_quantity(self.value(self.index(value)), self.unit)

    def parse(self, text: str) -> int:
        """Read what `format` wrote, or the plain number."""
        number = read_text(self.name, text, self.unit)
        return self.value(self.index(number))

    def describe(self) -> str:
        """What values are possible, in a few words."""
        return "an integer " + range_text(self.low, self.high, self.step, self.scale, self.unit)


@dataclass(frozen=True, slots=True, init=False)
class Real(_Number):
    """A number; without a step a continuous one, with a step a grid (a `log` one multiplies by the step)."""

    name: str
    low: float
    high: float
    step: float | None
    scale: Scale
    default: float
    unit: str
    _axis: Axis = field(repr=False, compare=False)

    def __init__(
        self,
        name: str,
        low: float | str,
        high: float | str,
        step: float | str | None = None,
        scale: Scale = "linear",
        default: float | str | None = None,
        unit: str = "",
    ) -> None:
        check_name(name)
        style = read_style(name, unit, low, high)
        start, end = read_real(name, "low", low, style), read_real(name, "high", high, style)
        stride = None if step is None else read_real(name, "step", step, style)
        check_range(name, start, end, scale)
        axis = _real_axis(name, start, end, stride, scale)
        first = start if default is None else read_real(name, "default", default, style)
        if axis.find(first) is None:
            expected = range_text(start, end, stride, scale, style)
            raise SpaceError(f"{name}: default {shown(default)} is not one of its values; expected a number {expected}")
        _fill(self, name=name, low=start, high=end, step=stride, scale=scale, default=first, unit=style, _axis=axis)

    @property
    def size(self) -> int | None:
        """How many values there are; None for a continuous parameter."""
        return self._axis.size

    def contains(self, value: object) -> bool:
        """Whether it is one of the values; an int is accepted."""
        return is_number(value) and self._axis.find(value) is not None

    def value(self, index: int) -> float:
        """The value at an index; a continuous parameter has none."""
        if isinstance(self._axis, Continuous):
            raise SpaceError(f"{self.name}: is continuous, its values have no index; give it a step")
        _check_index(self.name, index, self._axis.size)
        return float(self._axis.value(index))

    def index(self, value: Value) -> int:
        """The index of a value; a continuous parameter has none."""
        if self.size is None:
            raise SpaceError(f"{self.name}: is continuous, its values have no index; give it a step")
        return int(self.code(value))

    def code(self, value: Value) -> float:
        """The number that encodes a value in arrays."""
        code = self._axis.find(value) if is_number(value) else None
        if code is None:
            raise _not_a_value(self, value)
        return float(code)

    def format(self, value: Value) -> str:
        """The text of a value on a command line."""
        self.code(value)
        return format_quantity(float(value), self.unit)

    def parse(self, text: str) -> float:
        """Read what `format` wrote, or the plain number."""
        number = float(read_text(self.name, text, self.unit))
        self.code(number)
        return number

    def describe(self) -> str:
        """What values are possible, in a few words."""
        return "a number " + range_text(self.low, self.high, self.step, self.scale, self.unit)


@dataclass(frozen=True, slots=True, init=False)
class Choice:
    """One of listed values; `ordered` says that the order they are listed in means something."""

    name: str
    values: tuple[Value, ...]
    default: Value
    ordered: bool
    _kinds: tuple[type, ...] = field(repr=False)  # 1, 1.0 and True are equal, lists of them are not
    _indices: dict[Value, int] = field(repr=False, compare=False)

    def __init__(self, name: str, values: Iterable[Value], default: Value | None = None, ordered: bool = False) -> None:
        check_name(name)
        listed = read_values(name, values)
        if not isinstance(ordered, bool):
            raise SpaceError(f"{name}: ordered is {shown(ordered)}; expected True or False")
        indices = {value: index for index, value in enumerate(listed)}
        _fill(
            self,
            name=name,
            values=listed,
            default=listed[0],
            ordered=ordered,
            _kinds=tuple(map(type, listed)),
            _indices=indices,
        )
        if default is not None:
            _fill(self, default=listed[self.index(default)])

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.values)

    def contains(self, value: object) -> bool:
        """Whether it is one of the values, and of its type (an int is accepted as a float)."""
        return self._find(value) is not None

    def value(self, index: int) -> Value:
        """The value at an index."""
        _check_index(self.name, index, self.size)
        return self.values[index]

    def index(self, value: Value) -> int:
        """The index of a value."""
        index = self._find(value)
        if index is None:
            raise _not_a_value(self, value)
        return index

    def code(self, value: Value) -> float:
        """The number that encodes a value in arrays."""
        return float(self.index(value))

    def format(self, value: Value) -> str:
        """The text of a value on a command line."""
        return value_text(self.values[self.index(value)])

    def parse(self, text: str) -> Value:
        """Read what `format` wrote."""
        for value in self.values:
            if value_text(value) == text:
                return value
        raise _not_a_value(self, text)

    def magnitudes(self) -> tuple[float, ...] | None:
        """The values as numbers (4k is 4096, true is 1), or None where one of them is not a number."""
        if any(isinstance(value, bool) for value in self.values):
            return tuple(map(float, self.values)) if all(isinstance(value, bool) for value in self.values) else None
        try:
            return tuple(float(parse_quantity(v)[0] if isinstance(v, str) else v) for v in self.values)
        except SpaceError:
            return None

    def numbers(self, codes: FloatArray) -> FloatArray:
        """The numbers that codes encode."""
        magnitudes = self.magnitudes()
        if magnitudes is None:
            raise SpaceError(f"{self.name}: its values are not all numbers")
        return np.array(magnitudes)[codes.astype(np.intp)]

    def to_unit(self, codes: FloatArray) -> FloatArray:
        """Map codes into the unit interval, in the order the values are listed in."""
        return cell_centres(codes, self.size)

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """Map the unit interval to codes; uniform numbers give uniform values."""
        return cells_at(unit, self.size)

    def describe(self) -> str:
        """What values are possible, in a few words."""
        first = ", ".join(visible(value_text(value)[:_LONGEST_SHOWN]) for value in self.values[:_MOST_SHOWN])
        return f"one of {first}" + (f" ({self.size} values)" if self.size > _MOST_SHOWN else "")

    def _find(self, value: object) -> int | None:
        index = self._indices.get(value) if isinstance(value, bool | int | float | str) else None
        if index is None:
            return None
        listed = self.values[index]
        if isinstance(value, bool) != isinstance(listed, bool):
            return None
        return index if isinstance(listed, float) or not isinstance(value, float) else None


Parameter: TypeAlias = Integer | Real | Choice
"""Any kind of parameter."""


def _not_a_value(parameter: Parameter, given: object) -> SpaceError:
    return SpaceError(f"{parameter.name}: {shown(given)} is not one of its values; expected {parameter.describe()}")


def _fill(parameter: Parameter, **fields: object) -> None:
    """Set the fields of a frozen parameter that is being made."""
    for name, value in fields.items():
        object.__setattr__(parameter, name, value)


def _check_index(name: str, index: int, size: int) -> None:
    if not 0 <= index < size:
        raise SpaceError(f"{name}: value number {index} does not exist; numbers go from 0 to {size - 1}")


def _step(name: str, step: object, style: str) -> int | float:
    given = read_text(name, step, style) if isinstance(step, str) else step
    return int(given) if is_int(given) else read_real(name, "step", given, style)


def _integer_axis(name: str, low: int, high: int, step: int | float, scale: Scale) -> Grid:
    if scale == "log" and step == 1:
        return log_integers(name, low, high)
    if scale == "log":
        _check_factor(name, step)
        return geometric(name, low, high, step)
    if not isinstance(step, int):
        raise SpaceError(f"{name}: step {shown(step)} is not an integer; use Real for fractions")
    _check_stride(name, step)
    return linear_integers(name, low, high, step)


def _real_axis(name: str, low: float, high: float, step: float | None, scale: Scale) -> Axis:
    if step is not None and scale == "log":
        _check_factor(name, step)
        return geometric(name, low, high, step)
    if step is not None:
        _check_stride(name, step)
        return linear_reals(name, low, high, step)
    if low == high:
        return linear_reals(name, low, high, 1.0)
    if high - low < _NARROWEST * max(abs(low), abs(high)):
        raise SpaceError(
            f"{name}: {low} to {high} is too narrow for double precision; widen it or give both the same value"
        )
    return Continuous(low, high, log=scale == "log")


def _check_stride(name: str, step: int | float) -> None:
    if step <= 0:
        raise SpaceError(f"{name}: step {shown(step)} must be above 0")


def _check_factor(name: str, step: int | float) -> None:
    if step <= 1:
        raise SpaceError(f"{name}: step {shown(step)} is a factor on a log scale and must be above 1")
