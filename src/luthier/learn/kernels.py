"""Covariance functions over the unit cube, with unordered columns beside ordered ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.learn.points import ColumnsOfPoints, PointSet

Family: TypeAlias = Literal["matern52", "matern32", "rbf", "laplace"]


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
    "laplace": _rbf,  # never used: in this family no column is smooth
}


@dataclass(frozen=True, slots=True)
class Kernel:
    """A stationary correlation of the smooth columns times exp(-rate * distance) for each of the others.

    The distance of two categories is 1. The family `laplace` is smooth in no column: exp(-rate * |x - z|) is what
    averages of random trees converge to (Balog et al. 2016), and steps cause no oscillations in it.
    """

    ordered: BoolArray
    family: Family = "matern52"

    @property
    def is_smooth(self) -> BoolArray:
        """Which columns have a length scale; the others have a decay."""
        return self.ordered & (self.family != "laplace")

    def correlation(self, hyper: Hyperparameters, x: FloatArray, z: FloatArray | PointSet) -> FloatArray:
        """The correlations between the rows of `x` and the rows of `z`; the signal variance is left out."""
        points = z if isinstance(z, PointSet) else PointSet(z)
        smooth, rough = np.flatnonzero(self.is_smooth), np.flatnonzero(~self.is_smooth)
        if len(smooth):
            part, roots = points.part(*smooth.tolist()), np.sqrt(hyper.rates[smooth])
            # A length scale for each column: columns are multiplied by the root of their rate, 1 / length.
            squares = _squared_distances(x[:, smooth] * roots, part.rows * roots)
            values = part.spread(self.smooth(squares))
        else:
            values = np.ones((len(x), len(points)))
        for part in points.parts(*rough.tolist()):
            values *= part.spread(self._decay(hyper, x, part))
        return values

    def _decay(self, hyper: Hyperparameters, x: FloatArray, part: ColumnsOfPoints) -> FloatArray:
        """What columns that are not smooth contribute."""
        exponent = np.zeros((len(x), len(part.rows)))
        for column, z in zip(part.columns, part.rows.T, strict=True):
            own = x[:, [column]]
            # A product of exponentials is the exponential of the sum.
            exponent -= hyper.rates[column] * (np.abs(own - z) if self.ordered[column] else own != z)
        return np.exp(exponent, out=exponent)

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
