"""Scales on which models see values."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.learn.kernels import Family


class Scale(Protocol):
    """An increasing function from values to targets."""

    def __call__(self, y: FloatArray) -> FloatArray:
        """The targets of values."""
        ...

    def errors(self, y: FloatArray, error: FloatArray) -> FloatArray:
        """The standard deviations of values at `y` on the scale of the targets."""
        ...


MakeScale: TypeAlias = Callable[[FloatArray], Scale]
"""Fits a scale to values (at least one)."""


def scaled(data: Observations, scale: Scale) -> Observations:
    """The same observations on another scale."""
    return replace(data, y=scale(data.y), error=scale.errors(data.y, data.error))


@dataclass(frozen=True, slots=True)
class Linear:
    """The values themselves."""

    def __call__(self, y: FloatArray) -> FloatArray:
        """The targets of values."""
        return y

    def errors(self, y: FloatArray, error: FloatArray) -> FloatArray:
        """The standard deviations of values at `y` on the scale of the targets."""
        del y
        return error


@dataclass(frozen=True, slots=True)
class Logarithmic:
    """The logarithms of values; those below `lowest`, which is above 0, count as `lowest`."""

    lowest: float

    def __call__(self, y: FloatArray) -> FloatArray:
        """The targets of values."""
        return np.log(np.maximum(y, self.lowest))

    def errors(self, y: FloatArray, error: FloatArray) -> FloatArray:
        """The standard deviations of values at `y` on the scale of the targets, by its derivative."""
        return error / y


def linear(y: FloatArray) -> Scale:
    """The values as they are."""
    del y
    return Linear()


def logarithmic(y: FloatArray) -> Scale:
    """The logarithms of the values if all are positive, else the values as they are."""
    lowest = float(np.min(y))
    return Logarithmic(lowest) if lowest > 0.0 else Linear()


def linear_or_logarithmic(data: Observations, ordered: BoolArray, family: Family) -> MakeScale:
    """The scale on which a Gaussian process predicts observations left out better."""
    if not np.all(data.y > 0.0):
        return linear
    plain, logarithms = GaussianProcess(ordered, family), GaussianProcess(ordered, family)
    plain.fit(data)
    logarithms.fit(scaled(data, logarithmic(data.y)))
    # Densities of y itself: that of log y times the Jacobian 1/y.
    density = logarithms.leave_one_out_log_density() - float(np.log(data.y).sum())
    return logarithmic if density >= plain.leave_one_out_log_density() else linear


@dataclass(frozen=True, slots=True)
class Warp:
    """Targets of mean 0 and deviation 1 at the values it was fitted to; differences between good values stay visible.

    Half of it is the logarithm (times differ by factors; where values are not all positive, the inverse hyperbolic
    sine of their deviations from the median), half the normal score of the rank, which outliers do not stretch.
    """

    values: FloatArray
    targets: FloatArray

    @staticmethod
    def of(y: FloatArray) -> "Warp":
        """Fit the scale to values (at least one)."""
        from scipy.special import ndtri

        values, counts = np.unique(y, return_counts=True)
        last = np.cumsum(counts)
        # Equal values share the mean of their ranks.
        ranks = last - 0.5 * (counts - 1)
        scores = ndtri((ranks - 0.375) / (len(y) + 0.25))  # Blom 1958
        weight = counts / len(y)
        targets = _standard(_standard(_squeezed(values), weight) + _standard(scores, weight), weight)
        return Warp(values, targets)

    def __call__(self, y: FloatArray) -> FloatArray:
        """The targets of values; between known values by interpolation, outside as the nearest."""
        return np.interp(y, self.values, self.targets)

    def errors(self, y: FloatArray, error: FloatArray) -> FloatArray:
        """The standard deviations of values at `y` on the scale of the targets."""
        # The slope of the scale, over the range of the error.
        return 0.5 * (self(y + error) - self(y - error))


def _squeezed(values: FloatArray) -> FloatArray:
    if values[0] > 0.0:
        return np.log(values)
    small = values / (float(np.max(np.abs(values))) or 1.0)
    away = small - np.median(small)
    spread = float(np.median(np.abs(away)))
    # Linear near 0 and logarithmic far from it, for both signs.
    return np.arcsinh(away / spread) if spread > 1e-13 else np.arcsinh(away)


def _standard(values: FloatArray, weight: FloatArray) -> FloatArray:
    centred = values - weight @ values
    spread = float(np.sqrt(weight @ (centred * centred)))
    return centred / spread if spread > 1e-13 else centred * 0.0
