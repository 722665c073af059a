"""Hyper-parameters by maximum a posteriori: the marginal likelihood of a Gaussian process with its gradient."""

import math
from dataclasses import dataclass

import numpy as np

from luthier.arrays import FloatArray
from luthier.learn.kernels import Hyperparameters, Kernel
from luthier.learn.linear import cholesky, inverse_from_cholesky, solve_cholesky

# Log-normal priors: their medians, and the deviations of the logarithms. Targets have deviation 1, inputs the range 1.
_SIGNAL_MEDIAN, _SIGNAL_SPREAD = 1.0, 1.0
_NOISE_MEDIAN, _NOISE_SPREAD = 3e-3, 2.0
_LENGTH_MEDIAN, _LENGTH_SPREAD = 0.5, 1.0
_DECAY_MEDIAN, _DECAY_SPREAD = 1.0, 1.0
_NOISE_FLOOR = 1e-7  # with less noise, rounding makes covariances of close points indefinite
_MEAN_PRECISION = 1.0  # of the normal prior of the constant mean


@dataclass(frozen=True, slots=True)
class Prior:
    """Independent log-normal beliefs about the hyper-parameters: `centre` and `spread` of their logarithms."""

    centre: FloatArray
    spread: FloatArray

    def bounds(self) -> list[tuple[float, float]]:
        """Four spreads around the centre, where the optimisation stays; the noise has a floor."""
        low, high = self.centre - 4.0 * self.spread, self.centre + 4.0 * self.spread
        low[1], high[1] = max(low[1], math.log(_NOISE_FLOOR)), min(high[1], 0.0)
        return list(zip(low.tolist(), high.tolist(), strict=True))


def weak_prior(kernel: Kernel) -> Prior:
    """Beliefs that keep a fit to five points in ten dimensions stable and that a hundred points overrule.

    Length scales grow with the root of the dimension, so that the expected distance between two points stays the same
    (Hvarfner et al. 2024, section 5).
    """
    is_smooth = kernel.is_smooth
    columns = max(len(is_smooth), 1)
    length = math.log(_LENGTH_MEDIAN) + 0.5 * math.log(columns)
    # A rate is 1 / length², so its logarithm is -2 log length.
    rate_centres = np.where(is_smooth, -2.0 * length, math.log(_DECAY_MEDIAN / columns))
    rate_spreads = np.where(is_smooth, 2.0 * _LENGTH_SPREAD, _DECAY_SPREAD)
    return Prior(
        np.concatenate(([math.log(_SIGNAL_MEDIAN), math.log(_NOISE_MEDIAN)], rate_centres)),
        np.concatenate(([_SIGNAL_SPREAD, _NOISE_SPREAD], rate_spreads)),
    )


def constant_mean(whitened_ones: FloatArray, whitened_targets: FloatArray) -> float:
    """The most probable constant mean under a standard normal prior, from L⁻¹1 and L⁻¹y."""
    precision = float(whitened_ones @ whitened_ones) + _MEAN_PRECISION
    return float(whitened_ones @ whitened_targets) / precision


class LogEvidence:
    """The log posterior density of hyper-parameters given data; what depends only on the data is computed once."""

    def __init__(self, kernel: Kernel, x: FloatArray, y: FloatArray, share: FloatArray, extra: FloatArray) -> None:
        self._kernel, self._prior = kernel, weak_prior(kernel)
        self._y, self._share, self._extra = y, share, extra
        n = len(y)
        # Only pairs i > j are kept: half the exponentials, and LAPACK reads one triangle anyway.
        rows, columns = np.tril_indices(n, -1)
        self._flat = rows * n + columns
        gaps = x[rows] - x[columns]
        rough = np.where(kernel.ordered, np.abs(gaps), gaps != 0.0)
        self._squares = np.ascontiguousarray((gaps[:, kernel.is_smooth] ** 2).T)
        self._distances = np.ascontiguousarray(rough[:, ~kernel.is_smooth].T.astype(np.float64))

    def __call__(self, vector: FloatArray) -> tuple[float, FloatArray]:
        """The log density at the logarithms of the hyper-parameters, and its gradient."""
        hyper, is_smooth, n = Hyperparameters.from_log(vector), self._kernel.is_smooth, len(self._y)
        scaled = hyper.rates[is_smooth] @ self._squares
        smooth, slope = self._kernel.slope(scaled)
        factor = hyper.signal * np.exp(-(hyper.rates[~is_smooth] @ self._distances))
        covariances = factor * smooth

        matrix = np.zeros((n, n))
        matrix.ravel()[self._flat] = covariances
        np.fill_diagonal(matrix, hyper.signal + hyper.noise * self._share + self._extra)
        lower = cholesky(matrix)
        inverse = inverse_from_cholesky(lower)
        solved = solve_cholesky(lower, np.column_stack((np.ones(n), self._y)))
        mean = float(solved[:, 0] @ self._y) / (float(solved[:, 0].sum()) + _MEAN_PRECISION)
        # K⁻¹ (y - m) from K⁻¹ y and K⁻¹ 1.
        alpha = solved[:, 1] - mean * solved[:, 0]
        # Rasmussen & Williams 2006, eq. 5.8, with the most probable mean put in.
        log_density = -0.5 * float((self._y - mean) @ alpha) - float(np.log(np.diagonal(lower)).sum())
        log_density -= 0.5 * (n * math.log(2.0 * math.pi) + _MEAN_PRECISION * mean * mean)

        # Eq. 5.9; the mean is at its optimum, so its own derivative drops out.
        weights = np.outer(alpha, alpha).ravel()[self._flat] - inverse.ravel()[self._flat]
        diagonal = 0.5 * (alpha * alpha - np.diagonal(inverse))
        gradient = np.empty_like(vector)
        weighted = weights * covariances
        gradient[0] = float(weighted.sum()) + hyper.signal * float(diagonal.sum())
        gradient[1] = hyper.noise * float(diagonal @ self._share)
        rates = gradient[2:]
        # By the logarithm of a rate: the derivative by the rate, times the rate.
        rates[is_smooth] = hyper.rates[is_smooth] * (self._squares @ (weights * factor * slope))
        rates[~is_smooth] = -hyper.rates[~is_smooth] * (self._distances @ weighted)

        # The log density of the priors, up to a constant.
        deviation = (vector - self._prior.centre) / self._prior.spread
        return log_density - 0.5 * float(deviation @ deviation), gradient - deviation / self._prior.spread


def most_probable(evidence: LogEvidence, starts: list[FloatArray], prior: Prior, iterations: int) -> FloatArray:
    """The best local optimum of `evidence` reached from any of `starts` (logarithms of hyper-parameters)."""
    from scipy.optimize import minimize

    def loss(vector: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = evidence(vector)
        return -value, -gradient

    bounds = prior.bounds()
    low, high = np.array(bounds).T
    found = [
        minimize(
            loss,
            np.clip(start, low, high),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": iterations, "ftol": 1e-5, "gtol": 1e-3},
        )
        for start in starts
    ]
    best = min(found, key=lambda result: float(result.fun))
    return np.asarray(best.x, dtype=np.float64)
