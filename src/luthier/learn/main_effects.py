"""A model that adds up one effect for each input: which inputs matter, and what a change of one of them may gain."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from luthier.arrays import BoolArray, FloatArray, IntArray

_REACH = 0.5  # of the unit interval, over which an effect changes
_ROUNDS = 12  # of the estimation of variances
_SMALLEST = 1e-6  # a variance, as a share of the total: 0 would stay 0 in all rounds


@dataclass(frozen=True, slots=True)
class MainEffects:
    """What is known of each input: the variance of its effect, and the weights of the observations.

    `x` are the observed rows of the unit cube; the last variance is that of the noise.
    """

    x: FloatArray
    ordered: BoolArray
    variances: FloatArray
    weights: FloatArray
    inverse: FloatArray
    total: float

    def shares(self) -> FloatArray:
        """The variance of each input's effect at the observations, as a share of the variance of the observations."""
        if not self.total > 0.0:
            return np.zeros(len(self.ordered))
        return np.asarray(np.var(self._fitted(range(len(self.ordered))), axis=1) / self.total, dtype=np.float64)

    def explained(self, columns: Sequence[int] | IntArray) -> float:
        """The share of the differences between the observations that the effects of some inputs explain together.

        That is the share of the variance that disappears when these effects are subtracted, estimated by leaving one
        observation at a time out of the model of all inputs.
        """
        fitted = self._fitted(columns).sum(axis=0)
        everything = self._fitted(range(len(self.ordered))).sum(axis=0)
        # Rasmussen & Williams 2006, eq. 5.12: the error of each observation as predicted from all others.
        left_out = self.weights / np.diag(self.inverse)
        if not self.total > 0.0 or not np.var(everything) > 0.0:
            return 0.0
        all_share = max(0.0, 1.0 - float(np.mean(left_out**2)) / self.total)
        # Their covariance with the sum of all effects, as a share of its variance: such shares add up to 1.
        part = float(np.cov(fitted, everything)[0, 1] / np.var(everything, ddof=1))
        return all_share * min(max(part, 0.0), 1.0)

    def _changes(self, column: int, values: FloatArray, here: float) -> tuple[FloatArray, FloatArray]:
        """The expected improvement by changing one input from `here` to each value, and its deviation."""
        own, ordered = self.variances[column], bool(self.ordered[column])
        # Posterior of f(here) - f(value), of the effect of this input alone: mean and deviation of a difference.
        both = np.append(values, here)
        cross = own * _kernel(both, self.x[:, column], ordered)
        difference = cross[:-1] - cross[-1]
        gain = -(difference @ self.weights)
        prior = 2.0 * own * (1.0 - _kernel(values, np.array([here]), ordered)[:, 0])
        left = prior - np.einsum("ij,jk,ik->i", difference, self.inverse, difference)
        deviation = np.sqrt(np.maximum(left, 0.0))
        return gain, deviation

    def _fitted(self, columns: Sequence[int] | IntArray) -> FloatArray:
        """The effect of each of some inputs at the observations, a row for each."""
        kernels = [_kernel(self.x[:, at], self.x[:, at], bool(self.ordered[at])) for at in columns]
        rows = [self.variances[at] * (kernel @ self.weights) for at, kernel in zip(columns, kernels, strict=True)]
        return np.array(rows).reshape(len(rows), len(self.weights))

    def expected_gain(self, column: int, values: FloatArray, here: float) -> float:
        """The largest expected improvement (towards lower values) by changing one input from `here` to a value."""
        gain, deviation = self._changes(column, values, here)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(deviation > 0.0, gain / deviation, np.where(gain > 0.0, np.inf, -np.inf))
        # Expected improvement (Jones et al. 1998, eq. 15).
        expected = gain * ndtr(z) + deviation * np.exp(-0.5 * np.minimum(z * z, 1e3)) / np.sqrt(2.0 * np.pi)
        return float(np.max(np.maximum(expected, 0.0), initial=0.0))


def fit_effects(x: FloatArray, y: FloatArray, ordered: BoolArray) -> MainEffects:
    """Fit effects to observations `y` at rows `x` of the unit cube.

    The variances are estimated by a minorise-maximise algorithm (Zhou et al. 2019, equation 4).
    """
    total = float(np.var(y))
    centred = y - y.mean()
    columns = x.shape[1]
    kernels = [_kernel(x[:, at], x[:, at], bool(ordered[at])) for at in range(columns)] + [np.eye(len(y))]
    variances = np.full(columns + 1, max(total, _SMALLEST) / (columns + 1))
    for _ in range(_ROUNDS):
        inverse = _inverse(_covariance(variances, kernels))
        weights = inverse @ centred
        # Zhou et al. 2019, eq. 4: the new variance is the old one times the root of this ratio.
        ratio = [(weights @ k @ weights) / max(float(np.sum(inverse * k)), _SMALLEST) for k in kernels]
        variances = np.maximum(variances * np.sqrt(np.maximum(ratio, 0.0)), _SMALLEST * max(total, _SMALLEST))
    inverse = _inverse(_covariance(variances, kernels))
    return MainEffects(x, ordered, variances, inverse @ centred, inverse, total)


def _inverse(matrix: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _covariance(variances: FloatArray, kernels: list[FloatArray]) -> FloatArray:
    together: FloatArray = np.einsum("i,ijk->jk", variances, np.stack(kernels))
    return together


def _kernel(a: FloatArray, b: FloatArray, ordered: bool) -> FloatArray:
    apart = np.abs(a[:, None] - b[None, :])
    return np.exp(-apart / _REACH) if ordered else np.asarray(apart < 1e-9, dtype=np.float64)
