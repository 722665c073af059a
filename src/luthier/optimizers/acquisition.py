"""How promising a prediction is."""

import math
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import numpy as np

from luthier.arrays import FloatArray

_LOG_ROOT_2_PI = 0.5 * math.log(2.0 * math.pi)
_KAPPA = 1.96
_NEAR = -1.0  # above it the plain formula is exact
_FAR = -1e6  # below it the leading term is enough


def log_expected_improvement(mean: FloatArray, deviation: FloatArray, best: float) -> FloatArray:
    """The logarithm of E[max(best - f, 0)] for f normal; finite and ordered where the expectation itself underflows."""
    from scipy.special import erfcx, ndtr

    z = (best - mean) / deviation
    result = np.empty_like(z)
    near, far = z > _NEAR, z < _FAR
    middle = ~near & ~far
    # Ament et al. 2023, eq. 9: log h(z) with h(z) = φ(z) + z Φ(z), in three ranges of z.
    a = z[near]
    result[near] = np.log(np.exp(-0.5 * a * a - _LOG_ROOT_2_PI) + a * ndtr(a))
    b = z[middle]
    # Φ(z) / φ(z) = sqrt(π/2) erfcx(-z/√2), so h = φ (1 + z Φ/φ).
    ratio = math.sqrt(math.pi / 2.0) * erfcx(-b / math.sqrt(2.0))
    result[middle] = -0.5 * b * b - _LOG_ROOT_2_PI + np.log(_one_plus(b, ratio))
    c = z[far]
    result[far] = -0.5 * c * c - _LOG_ROOT_2_PI - 2.0 * np.log(-c)
    return np.asarray(result + np.log(deviation), dtype=np.float64)


def _one_plus(z: FloatArray, ratio: FloatArray) -> FloatArray:
    """1 + z Φ/φ; for very negative z, where the difference cancels, by its asymptotic series 1/z² - 3/z⁴ + 15/z⁶."""
    inverse = 1.0 / (z * z)
    series = inverse * (1.0 - inverse * (3.0 - 15.0 * inverse))
    return np.asarray(np.where(z < -50.0, series, 1.0 + z * ratio), dtype=np.float64)


def log_probability_of_improvement(mean: FloatArray, deviation: FloatArray, best: float) -> FloatArray:
    """The logarithm of P(f < best) for f normal (Kushner 1964)."""
    from scipy.special import log_ndtr

    return np.asarray(log_ndtr((best - mean) / deviation), dtype=np.float64)


def confidence_bound(mean: FloatArray, deviation: FloatArray, best: float, kappa: float = _KAPPA) -> FloatArray:
    """How far the lower confidence bound mean - kappa deviation lies below `best` (Cox and John 1997)."""
    return best - mean + kappa * deviation


Acquisition: TypeAlias = Literal["ei", "pi", "lcb"]

ACQUISITIONS: Mapping[str, Callable[[FloatArray, FloatArray, float], FloatArray]] = {
    "ei": log_expected_improvement,
    "pi": log_probability_of_improvement,
    "lcb": confidence_bound,
}
"""How promising a prediction is, given the lowest mean so far; on a logarithmic scale, except for `lcb`."""
