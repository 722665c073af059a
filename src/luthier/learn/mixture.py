"""A mixture of a few normal distributions on the unit interval, fitted by expectation maximisation."""

from dataclasses import dataclass

import numpy as np

from luthier.arrays import FloatArray

_MOST_MODES = 3  # tens of rows show no more
_LEAST_DEVIATION = 0.02  # of the unit interval, also for a mode of equal values
_ITERATIONS = 30


@dataclass(frozen=True, slots=True)
class Mixture:
    """Modes with their weights, means and standard deviations."""

    weights: FloatArray
    means: FloatArray
    deviations: FloatArray

    def responsibilities(self, x: FloatArray) -> FloatArray:
        """The probability that each number belongs to each mode, a row for each number."""
        log = self._log_parts(x)
        parts = np.exp(log - log.max(axis=1, keepdims=True))
        return np.asarray(parts / parts.sum(axis=1, keepdims=True), dtype=np.float64)

    def log_likelihood(self, x: FloatArray) -> float:
        """The log density of all numbers together."""
        log = self._log_parts(x)
        top = log.max(axis=1)
        return float(np.sum(top + np.log(np.exp(log - top[:, None]).sum(axis=1))))

    def _log_parts(self, x: FloatArray) -> FloatArray:
        z = (x[:, None] - self.means) / self.deviations
        return np.asarray(np.log(self.weights) - np.log(self.deviations) - 0.5 * z * z, dtype=np.float64)


def fit_mixture(x: FloatArray) -> Mixture:
    """The mixture of one to three modes with the lowest Bayesian information criterion (Schwarz 1978)."""
    return min((_fitted(x, modes) for modes in range(1, _MOST_MODES + 1)), key=lambda found: _criterion(found, x))


def _criterion(found: Mixture, x: FloatArray) -> float:
    # A mode has a mean, a deviation and a weight; the weights add up to 1.
    return (3.0 * len(found.means) - 1.0) * float(np.log(len(x))) - 2.0 * found.log_likelihood(x)


def _fitted(x: FloatArray, modes: int) -> Mixture:
    """Expectation maximisation (Dempster et al. 1977), from modes at quantiles: no random numbers."""
    means = np.quantile(x, (np.arange(modes) + 0.5) / modes)
    found = Mixture(np.full(modes, 1.0 / modes), means, np.full(modes, max(float(np.std(x)) / modes, _LEAST_DEVIATION)))
    for _ in range(_ITERATIONS):
        # E step, then M step.
        parts = found.responsibilities(x)
        total = parts.sum(axis=0) + 1e-9
        means = parts.T @ x / total
        spread = np.sqrt(np.sum(parts * (x[:, None] - means) ** 2, axis=0) / total)
        found = Mixture(total / total.sum(), means, np.maximum(spread, _LEAST_DEVIATION))
    return found
