"""The shapes a numeric parameter can have: what its codes mean, and where they lie in the unit interval.

The code of a value is its index on a finite axis and the value itself on a continuous one. Indices are cells of the
unit interval, so that uniform numbers give uniform values and every code survives the conversion there and back.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from luthier.arrays import FloatArray
from luthier.errors import SpaceError

# In larger ones neighbouring cells of the unit interval are no longer distinct in double precision.
LARGEST_SIZE = 2**50
LARGEST_LOG_INTEGER = 10**13
LARGEST_GEOMETRIC_SIZE = 100_000
_REACHED = Fraction(1, 10**9)


def cell_centres(codes: FloatArray, size: int) -> FloatArray:
    """Map indices to the centres of `size` equal cells of the unit interval."""
    return (codes + 0.5) / size


def cells_at(unit: FloatArray, size: int) -> FloatArray:
    """Map numbers of the unit interval to the indices of the cells they fall into."""
    return np.clip(np.floor(unit * size), 0.0, size - 1.0)


@dataclass(frozen=True, slots=True)
class LinearGrid:
    """The numbers (low + index * step) / scale, kept as whole numbers so that nothing drifts."""

    low: int
    step: int
    scale: int
    size: int
    top: int | float
    whole: bool

    def value(self, index: int) -> int | float:
        """The number at an index."""
        numerator = self.low + index * self.step
        return numerator if self.whole else min(numerator / self.scale, float(self.top))

    def find(self, value: int | float) -> int | None:
        """The index of a number, or None."""
        if self.whole:
            index, rest = divmod(int(value) - self.low, self.step)
            return index if rest == 0 and 0 <= index < self.size else None
        guess = round((Fraction(value) * self.scale - self.low) / self.step)
        index = min(max(guess, 0), self.size - 1)
        return index if self.value(index) == value else None

    def numbers(self, codes: FloatArray) -> FloatArray:
        """The numbers at many indices."""
        return np.minimum((float(self.low) + codes * float(self.step)) / float(self.scale), float(self.top))

    def to_unit(self, codes: FloatArray) -> FloatArray:
        """Map codes into the unit interval."""
        return cell_centres(codes, self.size)

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """Map the unit interval to codes."""
        return cells_at(unit, self.size)


@dataclass(frozen=True, slots=True)
class GeometricGrid:
    """Listed numbers, each a factor above the last."""

    values: tuple[int | float, ...]

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return len(self.values)

    def value(self, index: int) -> int | float:
        """The number at an index."""
        return self.values[index]

    def find(self, value: int | float) -> int | None:
        """The index of a number, or None."""
        index = int(np.searchsorted(np.array(self.values, dtype=np.float64), float(value)))
        nearby = range(max(index - 1, 0), min(index + 2, self.size))
        return next((near for near in nearby if self.values[near] == value), None)

    def numbers(self, codes: FloatArray) -> FloatArray:
        """The numbers at many indices."""
        return np.array(self.values, dtype=np.float64)[codes.astype(np.intp)]

    def to_unit(self, codes: FloatArray) -> FloatArray:
        """Map codes into the unit interval."""
        return cell_centres(codes, self.size)

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """Map the unit interval to codes."""
        return cells_at(unit, self.size)


@dataclass(frozen=True, slots=True)
class LogIntegers:
    """Every integer from low to high; integer v fills the cell from log(v - 1/2) to log(v + 1/2)."""

    low: int
    high: int

    @property
    def size(self) -> int:
        """How many integers there are."""
        return self.high - self.low + 1

    def value(self, index: int) -> int | float:
        """The number at an index."""
        return self.low + index

    def find(self, value: int | float) -> int | None:
        """The index of a number, or None."""
        return int(value) - self.low if self.low <= value <= self.high else None

    def numbers(self, codes: FloatArray) -> FloatArray:
        """The numbers at many indices."""
        return codes + self.low

    def _span(self) -> tuple[float, float]:
        start = math.log(self.low - 0.5)
        return start, math.log(self.high + 0.5) - start

    def to_unit(self, codes: FloatArray) -> FloatArray:
        """Map codes into the unit interval."""
        start, width = self._span()
        values = codes + self.low
        centres: FloatArray = (0.5 * (np.log(values - 0.5) + np.log(values + 0.5)) - start) / width
        return centres

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """Map the unit interval to codes."""
        start, width = self._span()
        values = np.floor(np.exp(start + unit * width) + 0.5)
        return np.clip(values, self.low, self.high) - self.low


@dataclass(frozen=True, slots=True)
class Continuous:
    """Every number from low to high.

    Numbers that come from the unit interval are rounded to about twelve digits: that is shorter on a command line, and
    makes them survive the conversion there and back.
    """

    low: float
    high: float
    log: bool

    @property
    def size(self) -> None:
        """None: the numbers cannot be counted."""
        return

    def find(self, value: int | float) -> float | None:
        """The number itself, or None where it is out of range."""
        return float(value) if self.low <= value <= self.high else None

    def numbers(self, codes: FloatArray) -> FloatArray:
        """The numbers themselves."""
        return codes

    def to_unit(self, codes: FloatArray) -> FloatArray:
        """Map codes into the unit interval."""
        if self.log:
            ratios: FloatArray = np.log(codes / self.low) / math.log(self.high / self.low)
            return np.clip(ratios, 0.0, 1.0)
        return np.clip((codes - self.low) / (self.high - self.low), 0.0, 1.0)

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """Map the unit interval to codes."""
        if self.log:
            values = self.low * np.exp(unit * math.log(self.high / self.low))
        else:
            values = self.low + unit * (self.high - self.low)
        rounded = self._round(values)
        # The ends are what was declared, however many digits they have.
        lowest, highest = self._round(np.array([self.low, self.high]))
        return np.where(rounded >= highest, self.high, np.where(rounded <= lowest, self.low, rounded))

    def _round(self, values: FloatArray) -> FloatArray:
        if self.log:
            decimals: FloatArray = 11 - np.floor(np.log10(values))
        else:
            largest = max(abs(self.low), abs(self.high))
            fine = min(12 - math.floor(math.log10(self.high - self.low)), 14 - math.floor(math.log10(largest)))
            decimals = np.full(values.shape, float(fine))
        up, down = 10.0 ** np.maximum(decimals, 0.0), 10.0 ** np.maximum(-decimals, 0.0)
        rounded: FloatArray = np.rint(values * up / down) * down / up + 0.0
        return rounded


Grid: TypeAlias = LinearGrid | GeometricGrid | LogIntegers
Axis: TypeAlias = Grid | Continuous


def linear_integers(name: str, low: int, high: int, step: int) -> LinearGrid:
    """The integers from low to high in steps."""
    size = (high - low) // step + 1
    _check_size(name, size)
    return LinearGrid(low, step, 1, size, low + (size - 1) * step, whole=True)


def linear_reals(name: str, low: float, high: float, step: float) -> LinearGrid:
    """The numbers from low to high in steps; a last step that misses `high` only by rounding ends there."""
    start, stride = Fraction(repr(low)), Fraction(repr(step))
    size = math.floor((Fraction(repr(high)) - start) / stride + _REACHED) + 1
    _check_size(name, size)
    scale = math.lcm(start.denominator, stride.denominator)
    return LinearGrid(int(start * scale), int(stride * scale), scale, size, high, whole=False)


def geometric(name: str, low: int | float, high: int | float, factor: int | float) -> GeometricGrid:
    """The numbers low * factor**k up to high; whole ones (low is an int) are rounded and not repeated."""
    whole = isinstance(low, int)
    if (math.log(high) - math.log(low)) / math.log(factor) > LARGEST_GEOMETRIC_SIZE:
        raise SpaceError(f"{name}: factor {factor} takes over {LARGEST_GEOMETRIC_SIZE} steps; take a larger one")
    values: list[int | float] = []
    with localcontext(Context(prec=50)):
        current, ratio, end = Decimal(repr(low)), Decimal(repr(factor)), Decimal(repr(high))
        limit = end if whole else end * (1 + Decimal("1e-12"))
        while current <= limit:
            rounded = int(current.to_integral_value(ROUND_HALF_UP)) if whole else min(float(current), float(high))
            if not values or rounded > values[-1]:
                values.append(rounded)
            current *= ratio
    return GeometricGrid(tuple(values))


def log_integers(name: str, low: int, high: int) -> LogIntegers:
    """Every integer from low to high, on a logarithmic scale."""
    if high > LARGEST_LOG_INTEGER:
        raise SpaceError(f"{name}: high {high} is too large for every integer on a log scale; give a step such as 2")
    return LogIntegers(low, high)


def _check_size(name: str, size: int) -> None:
    if size > LARGEST_SIZE:
        raise SpaceError(f"{name}: has {size} values, more than 2**50; take a larger step")
