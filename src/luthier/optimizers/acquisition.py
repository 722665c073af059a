"""How promising a prediction is."""

import math
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_LOG_ROOT_2_PI = 0.5 * math.log(2.0 * math.pi)
_KAPPA = 1.96
_QUANTILE = 1.2815515655446004  # of the standard normal distribution at 0.9
_NEAR = -1.0  # above, the plain formula is exact
_FAR = -1e6  # below, the leading term is all that is left


def log_expected_improvement(mean: FloatArray, deviation: FloatArray, best: float | FloatArray) -> FloatArray:
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
    """1 + z Φ/φ; far out, where the difference cancels, by its asymptotic series 1/z² - 3/z⁴ + 15/z⁶."""
    inverse = 1.0 / (z * z)
    series = inverse * (1.0 - inverse * (3.0 - 15.0 * inverse))
    return np.asarray(np.where(z < -50.0, series, 1.0 + z * ratio), dtype=np.float64)


def log_probability_of_improvement(mean: FloatArray, deviation: FloatArray, best: float) -> FloatArray:
    """The logarithm of P(f < best) for f normal (Kushner 1964)."""
    from scipy.special import log_ndtr

    return np.asarray(log_ndtr((best - mean) / deviation), dtype=np.float64)


def confidence_bound(mean: FloatArray, deviation: FloatArray, best: float) -> FloatArray:
    """How far the lower confidence bound mean - 1.96 deviation lies below `best` (Cox and John 1997)."""
    return best - mean + _KAPPA * deviation


def log_noisy_expected_improvement(means: FloatArray, deviation: FloatArray, least: FloatArray) -> FloatArray:
    """The logarithm of the expected improvement, averaged over draws of what the measured points are worth.

    Row i of `means` is what draw i predicts, `least[i]` the lowest value of a measured point in that draw; the
    deviation is that of all draws (Letham et al. 2019).
    """
    from scipy.special import logsumexp

    each = log_expected_improvement(means, deviation, least[:, None])
    return np.asarray(logsumexp(each, axis=0) - math.log(len(means)), dtype=np.float64)


def log_augmented_expected_improvement(
    mean: FloatArray, deviation: FloatArray, best: float, noise: float
) -> FloatArray:
    """The logarithm of EI times 1 - τ / √(s² + τ²), what a run with noise τ can still teach (Huang et al. 2006).

    `best` is the mean at the measured point that `effective_best` names.
    """
    spread = np.hypot(deviation, noise)
    # 1 - τ/h = s² / (h (h + τ)) with h = √(s² + τ²): nothing cancels where s is small.
    taught = 2.0 * np.log(deviation) - np.log(spread) - np.log(spread + noise)
    return log_expected_improvement(mean, deviation, best) + taught


def effective_best(mean: FloatArray, deviation: FloatArray) -> float:
    """The mean at the measured point that is good without much doubt: mean + 1 deviation is lowest there."""
    return float(mean[np.argmin(mean + deviation)])


def log_expected_quantile_improvement(
    mean: FloatArray, deviation: FloatArray, lowest: float, noise: float
) -> FloatArray:
    """The logarithm of how far a point's 0.9 quantile is expected to be below `lowest` after a run with noise τ there.

    After that run the quantile has mean m + z s τ/h and deviation s²/h with h = √(s² + τ²) (Picheny et al. 2013).
    """
    share = deviation / np.hypot(deviation, noise)
    return log_expected_improvement(mean + _QUANTILE * noise * share, deviation * share, lowest)


def lowest_quantile(mean: FloatArray, deviation: FloatArray) -> float:
    """The lowest 0.9 quantile of the measured points."""
    return float(np.min(mean + _QUANTILE * deviation))


Acquisition: TypeAlias = Literal["ei", "pi", "lcb"]
NoisyAcquisition: TypeAlias = Literal["nei", "aei", "eqi"]

ACQUISITIONS: Mapping[str, Callable[[FloatArray, FloatArray, float], FloatArray]] = {
    "ei": log_expected_improvement,
    "pi": log_probability_of_improvement,
    "lcb": confidence_bound,
}
"""How promising a prediction is, given the lowest mean so far; on a scale where a factor is a difference."""
