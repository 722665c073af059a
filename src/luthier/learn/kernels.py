"""Covariance functions over the unit cube, with unordered columns beside ordered ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Family: TypeAlias = Literal["matern52", "matern32", "rbf", "laplace"]

_MANY, _TALL = 500, 12  # points and rows, from which on it pays to look for equal points
_WORTHWHILE = 3


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """What a covariance function is made of, for targets of mean 0 and deviation 1.

    `rates` has one entry per column: 1 / length scale squared where the kernel is smooth in it, else the decay of the
    correlation: between two different categories, or over the whole range of an ordered column.
    """

    signal: float
    noise: float
    rates: FloatArray

    def to_log(self) -> FloatArray:
        """The vector that is optimised: everything is positive, so in logarithms."""
        return np.log(np.concatenate(([self.signal, self.noise], self.rates)))

    @staticmethod
    def from_log(vector: FloatArray) -> "Hyperparameters":
        """The inverse of `to_log`."""
        values = np.exp(vector)
        return Hyperparameters(float(values[0]), float(values[1]), values[2:])


def _matern52(squares: FloatArray) -> tuple[FloatArray, FloatArray]:
    r = np.sqrt(5.0 * squares)
    decay = np.exp(-r)
    return (1.0 + r * (1.0 + r / 3.0)) * decay, (-5.0 / 6.0) * (1.0 + r) * decay


def _matern32(squares: FloatArray) -> tuple[FloatArray, FloatArray]:
    r = np.sqrt(3.0 * squares)
    decay = np.exp(-r)
    return (1.0 + r) * decay, -1.5 * decay


def _rbf(squares: FloatArray) -> tuple[FloatArray, FloatArray]:
    decay = np.exp(-0.5 * squares)
    return decay, -0.5 * decay


# Rasmussen & Williams 2006, eq. 4.9 and 4.17: the correlation and its slope, both by the squared scaled distance.
FAMILIES: Mapping[str, Callable[[FloatArray], tuple[FloatArray, FloatArray]]] = {
    "matern52": _matern52,
    "matern32": _matern32,
    "rbf": _rbf,
    "laplace": _rbf,  # of no column at all: every one is rough
}


@dataclass(frozen=True, slots=True)
class Kernel:
    """A stationary correlation of the smooth columns times exp(-rate * distance) for each of the others.

    The distance of two categories is 1. The family `laplace` is smooth in no column: exp(-rate * |x - z|) is what
    averages of random trees converge to (Balog et al. 2016), and steps do not ring in it.
    """

    ordered: BoolArray
    family: Family = "matern52"

    @property
    def is_smooth(self) -> BoolArray:
        """Which columns have a length scale; the others have a decay."""
        return self.ordered & (self.family != "laplace")

    def correlation(self, hyper: Hyperparameters, x: FloatArray, z: FloatArray) -> FloatArray:
        """The correlations between the rows of `x` and the rows of `z`; the signal variance is left out."""
        is_smooth = self.is_smooth
        values = np.ones((len(x), len(z)))
        if is_smooth.any():
            roots = np.sqrt(hyper.rates[is_smooth])
            a = x[:, is_smooth] * roots
            values = _by_distinct(lambda b: self.smooth(_squared_distances(a, b)), z[:, is_smooth] * roots, len(x))
        for column in np.flatnonzero(~is_smooth):
            values *= _by_distinct(partial(self._decay, hyper, x, int(column)), z[:, [column]], len(x))
        return values

    def _decay(self, hyper: Hyperparameters, x: FloatArray, column: int, z: FloatArray) -> FloatArray:
        """What a column that is not smooth contributes, for values `z` of that column."""
        gaps = np.abs(x[:, [column]] - z.T) if self.ordered[column] else x[:, [column]] != z.T
        return np.asarray(np.exp(-hyper.rates[column] * gaps), dtype=np.float64)

    def smooth(self, squares: FloatArray) -> FloatArray:
        """The correlation of the smooth columns, given the squared scaled distances."""
        return FAMILIES[self.family](squares)[0]

    def slope(self, squares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`smooth` and its derivative by the squared scaled distance."""
        return FAMILIES[self.family](squares)


def _squared_distances(a: FloatArray, b: FloatArray) -> FloatArray:
    # |a - b|² = |a|² + |b|² - 2ab: one matrix product instead of a pass per column.
    squares = (-2.0 * a) @ b.T
    squares += np.einsum("ij,ij->i", a, a)[:, None]
    squares += np.einsum("ij,ij->i", b, b)[None, :]
    return np.maximum(squares, 0.0, out=squares)


def _by_distinct(function: Callable[[FloatArray], FloatArray], z: FloatArray, rows: int) -> FloatArray:
    """`function` of the rows of `z`, a column of `rows` values for each, worked out once for equal ones.

    Grids have many of these. To find them costs as much as a dozen rows do.
    """
    if rows < _TALL or len(z) < _MANY:
        return function(z)
    key = np.zeros(len(z), dtype=np.intp)
    for column in z.T:
        _, place = np.unique(column, return_inverse=True)
        _, first, key = np.unique(key * len(z) + place, return_index=True, return_inverse=True)
        if _WORTHWHILE * len(first) > len(z):
            return function(z)
    return function(z[first])[:, key]
