"""The meaning of constraints: evaluated for many configurations at once, and bounded over whole boxes of them.

Numbers are arrays in which NaN stands for undefined (a division by zero, an overflow). Conditions are arrays of 0
(false), 1/2 (undefined) and 1 (true), so that `and`, `or`, `not` are minimum, maximum, complement (Kleene's logic).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.space.parameters import Parameter

Columns: TypeAlias = Mapping[int, FloatArray]
"""Codes by the position of their parameter."""


_ROUNDING = 1e-12


class Bounds(NamedTuple):
    """What an expression can be within each of many boxes: between low and high, or undefined."""

    low: FloatArray
    high: FloatArray
    undefined: BoolArray


class Expression(Protocol):
    """A part of a constraint."""

    def evaluate(self, codes: Columns) -> FloatArray:
        """The values for many configurations."""
        ...

    def bounds(self, low: Columns, high: Columns) -> Bounds:
        """Bounds of the values within many boxes."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, or a condition that is always true or false."""

    value: float

    def evaluate(self, codes: Columns) -> FloatArray:  # noqa: ARG002 - the same for every configuration
        """The values for many configurations."""
        return np.array([self.value])

    def bounds(self, low: Columns, high: Columns) -> Bounds:  # noqa: ARG002 - the same in every box
        """Bounds of the values within many boxes."""
        return Bounds(np.array([self.value]), np.array([self.value]), np.array([False]))


@dataclass(frozen=True, slots=True)
class Reference:
    """A parameter: the magnitudes of a number, or what a table says of each value of a choice."""

    position: int
    parameter: Parameter
    table: tuple[float, ...] | None

    def evaluate(self, codes: Columns) -> FloatArray:
        """The values for many configurations."""
        if self.table is None:
            return self.parameter.numbers(codes[self.position])
        return np.array(self.table)[codes[self.position].astype(np.intp)]

    def bounds(self, low: Columns, high: Columns) -> Bounds:
        """Bounds of the values within many boxes."""
        lows, highs = low[self.position], high[self.position]
        defined = np.zeros(lows.shape, dtype=np.bool_)
        if self.table is None:
            return Bounds(self.parameter.numbers(lows), self.parameter.numbers(highs), defined)
        table = np.array([*self.table, 0.0])  # reduceat needs an element behind the last range
        slices = np.stack([lows, highs + 1.0], axis=1).astype(np.intp).ravel()
        return Bounds(np.minimum.reduceat(table, slices)[::2], np.maximum.reduceat(table, slices)[::2], defined)


@dataclass(frozen=True, slots=True)
class Operation:
    """Two numbers, or two conditions, joined by an operator."""

    operator: str
    left: Expression
    right: Expression

    def evaluate(self, codes: Columns) -> FloatArray:
        """The values for many configurations."""
        result = _OPERATORS[self.operator](self.left.evaluate(codes), self.right.evaluate(codes))
        return np.where(np.isfinite(result), result, np.nan)

    def bounds(self, low: Columns, high: Columns) -> Bounds:
        """Bounds of the values within many boxes."""
        left, right = self.left.bounds(low, high), self.right.bounds(low, high)
        result = _BOUNDS[self.operator](left, right)
        unlimited = ~(np.isfinite(result.low) & np.isfinite(result.high))
        lows = np.where(np.isnan(result.low), -np.inf, result.low)
        highs = np.where(np.isnan(result.high), np.inf, result.high)
        return Bounds(lows, highs, left.undefined | right.undefined | result.undefined | unlimited)


@dataclass(frozen=True, slots=True)
class Absolute:
    """A number without its sign."""

    inner: Expression

    def evaluate(self, codes: Columns) -> FloatArray:
        """The values for many configurations."""
        return np.abs(self.inner.evaluate(codes))

    def bounds(self, low: Columns, high: Columns) -> Bounds:
        """Bounds of the values within many boxes."""
        inner = self.inner.bounds(low, high)
        nearest = np.maximum(np.maximum(inner.low, -inner.high), 0.0)
        return Bounds(nearest, np.maximum(-inner.low, inner.high), inner.undefined)


@dataclass(frozen=True, slots=True)
class TermComparison:
    """Two numbers compared by <, <= or ==; the other comparisons are these with sides swapped or denied."""

    operator: Literal["<", "<=", "=="]
    left: Expression
    right: Expression

    def evaluate(self, codes: Columns) -> FloatArray:
        """The values for many configurations."""
        left, right = self.left.evaluate(codes), self.right.evaluate(codes)
        return np.where(np.isnan(left) | np.isnan(right), 0.5, _COMPARISONS[self.operator](left, right))

    def bounds(self, low: Columns, high: Columns) -> Bounds:
        """Bounds of the values within many boxes."""
        left, right = self.left.bounds(low, high), self.right.bounds(low, high)
        compare = _COMPARISONS[self.operator]
        if self.operator == "==":
            possible = (left.low <= right.high) & (right.low <= left.high)
            certain = (left.low == left.high) & (right.low == right.high) & (left.low == right.low)
        else:
            possible, certain = compare(left.low, right.high), compare(left.high, right.low)
        undefined = left.undefined | right.undefined
        highest = np.where(possible, 1.0, np.where(undefined, 0.5, 0.0))
        lowest = np.where(certain, np.where(undefined, 0.5, 1.0), 0.0)
        return Bounds(lowest, highest, np.zeros(lowest.shape, dtype=np.bool_))


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a condition."""

    inner: Expression

    def evaluate(self, codes: Columns) -> FloatArray:
        """The values for many configurations."""
        return 1.0 - self.inner.evaluate(codes)

    def bounds(self, low: Columns, high: Columns) -> Bounds:
        """Bounds of the values within many boxes."""
        inner = self.inner.bounds(low, high)
        return Bounds(1.0 - inner.high, 1.0 - inner.low, inner.undefined)


@dataclass(frozen=True, slots=True)
class Truth:
    """A condition taken as a number that can be compared with another condition."""

    inner: Expression

    def evaluate(self, codes: Columns) -> FloatArray:
        """The values for many configurations."""
        truth = self.inner.evaluate(codes)
        return np.where(truth == 0.5, np.nan, truth)

    def bounds(self, low: Columns, high: Columns) -> Bounds:
        """Bounds of the values within many boxes."""
        inner = self.inner.bounds(low, high)
        decided = (inner.low == inner.high) & (inner.low != 0.5)
        return Bounds(np.floor(inner.low), np.ceil(inner.high), ~decided)


def with_codes(expression: Expression, codes: Mapping[int, float]) -> Expression:
    """The expression with constants instead of the parameters that have one of `codes`, by position."""
    if isinstance(expression, Reference):
        if expression.position not in codes:
            return expression
        code = np.array([codes[expression.position]])
        return Constant(float(expression.evaluate({expression.position: code})[0]))
    if isinstance(expression, Operation | TermComparison):
        left, right = with_codes(expression.left, codes), with_codes(expression.right, codes)
        return replace(expression, left=left, right=right)
    if isinstance(expression, Absolute | Not | Truth):
        return replace(expression, inner=with_codes(expression.inner, codes))
    return expression


def _fold_division(left: Bounds, right: Bounds) -> Bounds:
    zero = (right.low <= 0.0) & (right.high >= 0.0)
    corners = _corners(np.divide, left, right)
    return Bounds(np.where(zero, -np.inf, corners.low), np.where(zero, np.inf, corners.high), zero)


def _fold_floor(left: Bounds, right: Bounds) -> Bounds:
    quotient = _fold_division(left, right)
    # floor_divide may end one below the floor of a rounded quotient.
    return Bounds(np.floor(quotient.low) - 1.0, np.floor(quotient.high), quotient.undefined)


def _fold_remainder(left: Bounds, right: Bounds) -> Bounds:
    zero = (right.low <= 0.0) & (right.high >= 0.0)
    lap = np.floor_divide(left.low, right.low)
    same_lap = (right.low == right.high) & (lap == np.floor_divide(left.high, right.low)) & ~zero
    lows = np.where(same_lap, np.mod(left.low, right.low), np.minimum(right.low, 0.0))
    highs = np.where(same_lap, np.mod(left.high, right.low), np.maximum(right.high, 0.0))
    return Bounds(lows, highs, zero)


def _fold_power(left: Bounds, right: Bounds) -> Bounds:
    corners = _corners(np.power, left, right)
    whole = (right.low == right.high) & (np.floor(right.low) == right.low)
    crosses_zero = (left.low <= 0.0) & (left.high >= 0.0)
    even = whole & (np.mod(right.low, 2.0) == 0.0)
    # Powers of a positive base, and whole powers on one side of zero, are extreme at the corners of the box.
    monotone = (left.low > 0.0) | (whole & ~crosses_zero) | ((left.low >= 0.0) & (right.low > 0.0))
    monotone |= whole & (right.low >= 0.0)
    lows = np.where(even & crosses_zero, np.minimum(corners.low, 0.0), corners.low)
    slack = _ROUNDING * np.maximum(np.abs(lows), np.abs(corners.high))
    lows = np.where(monotone, lows - slack, -np.inf)
    return Bounds(lows, np.where(monotone, corners.high + slack, np.inf), ~monotone)


def _corners(function: Callable[[FloatArray, FloatArray], FloatArray], left: Bounds, right: Bounds) -> Bounds:
    pairs = [(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    corners = np.stack(np.broadcast_arrays(*(function(a, b) for a, b in pairs)))
    undefined = np.isnan(corners).any(axis=0)
    lows = np.where(undefined, -np.inf, corners.min(axis=0))
    return Bounds(lows, np.where(undefined, np.inf, corners.max(axis=0)), undefined)


def _pairwise(function: Callable[[FloatArray, FloatArray], FloatArray]) -> Callable[[Bounds, Bounds], Bounds]:
    """Bounds of a function that grows with both of its arguments."""

    def fold(left: Bounds, right: Bounds) -> Bounds:
        return Bounds(function(left.low, right.low), function(left.high, right.high), left.undefined | right.undefined)

    return fold


_OPERATORS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.mod,
    "**": np.power,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.minimum,
    "or": np.maximum,
}
_BOUNDS: dict[str, Callable[[Bounds, Bounds], Bounds]] = {
    "+": _pairwise(np.add),
    "-": lambda left, right: Bounds(left.low - right.high, left.high - right.low, left.undefined | right.undefined),
    "*": lambda left, right: _corners(np.multiply, left, right),
    "/": _fold_division,
    "//": _fold_floor,
    "%": _fold_remainder,
    "**": _fold_power,
    "min": _pairwise(np.minimum),
    "max": _pairwise(np.maximum),
    "and": _pairwise(np.minimum),
    "or": _pairwise(np.maximum),
}
_COMPARISONS: dict[str, Callable[[FloatArray, FloatArray], BoolArray]] = {
    "<": np.less,
    "<=": np.less_equal,
    "==": np.equal,
}
