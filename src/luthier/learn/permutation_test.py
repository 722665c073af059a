"""Whether inputs affect a measured value at all: permutation tests with a known rate of false positives."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.learn.linear import solve_lower

PERMUTATIONS = 399  # with the values at hand 400, so that p-values are multiples of 1 / 400
_LENGTHS = (0.15, 0.6)  # of a short and of a long dependence on an ordered input
_JOINT_LENGTH = 0.5  # times the root of the number of inputs


@dataclass(frozen=True, slots=True)
class _Residuals:
    """What a model without the tested inputs leaves unexplained: independent numbers w = L⁻¹ (y - mean)."""

    whitened: FloatArray
    inverse: FloatArray  # L⁻¹


def chance_without_effect(data: Observations, ordered: BoolArray, rng: np.random.Generator) -> float:
    """The p-value of "no input has any effect": the values of the observations are exchanged at random."""
    # Every configuration counts once: a search repeats the ones that had luck, which is no reason to trust them more.
    residuals = _Residuals(data.y - data.y.mean(), np.eye(len(data.y)))
    kernels = [kernel for column in range(data.x.shape[1]) for kernel in _kernels(data.x[:, column], ordered[column])]
    if data.x.shape[1] > 1:
        kernels.append(_joint(data.x, ordered))
    return _p_value(residuals, kernels, rng)


def chance_without_input(process: GaussianProcess, data: Observations, column: int, rng: np.random.Generator) -> float:
    """The p-value of "this input has no effect": what the other inputs leave unexplained is exchanged at random.

    The residuals of a process that does not see the input are made independent first (Freedman & Lane 1983, with the
    covariance of the process). `process` starts from the hyper-parameters it has, and is fitted without the input.
    """
    x = data.x.copy()
    x[:, column] = 0.0
    process.fit(Observations(x, data.y, data.share, data.error))
    inverse = solve_lower(process.lower, np.eye(len(x)))
    own = _kernels(data.x[:, column], process.kernel.ordered[column])
    # Products with the kernel of the other inputs are for interactions with them.
    others = process.kernel.correlation(process.hyper, x, x)
    return _p_value(_Residuals(process.whitened, inverse), [*own, *(kernel * others for kernel in own)], rng)


def _kernels(x: FloatArray, is_ordered: bool) -> list[FloatArray]:
    gaps = x[:, None] - x
    if not is_ordered:
        return [(gaps == 0.0).astype(np.float64)]
    return [np.exp(-0.5 * (gaps / length) ** 2) for length in _LENGTHS]


def _joint(x: FloatArray, ordered: BoolArray) -> FloatArray:
    gaps = x[:, None, :] - x[None, :, :]
    length = _JOINT_LENGTH * np.sqrt(x.shape[1])
    squares = np.where(ordered, (gaps / length) ** 2, 2.0 / x.shape[1] * (gaps != 0.0))
    return np.asarray(np.exp(-0.5 * squares.sum(axis=2)), dtype=np.float64)


def _p_value(residuals: _Residuals, kernels: Sequence[FloatArray], rng: np.random.Generator) -> float:
    """The share of permutations whose residuals follow any of the kernels as closely as the ones at hand do.

    Each statistic is the score wᵀ L⁻¹ K L⁻ᵀ w of a kernel K (Zhang & Lin 2003, eq. 5), in units of its deviation over
    the permutations; the largest of them counts (Westfall & Young 1993).
    """
    w = _normal_scores(residuals.whitened)
    # The mean was estimated, so residuals have no part along the constant; permuted ones must have none either.
    constant = residuals.inverse.sum(axis=1)
    constant /= np.linalg.norm(constant)
    order = np.argsort(rng.random((PERMUTATIONS, len(w))), axis=1)
    draws = np.concatenate((w[None, :], w[order])).T
    draws -= np.outer(constant, constant @ draws)
    raised = residuals.inverse.T @ draws
    scores = np.stack([np.einsum("ij,ij->j", raised, kernel @ raised) for kernel in kernels])
    spread = scores.std(axis=1, keepdims=True)
    standard = (scores - scores.mean(axis=1, keepdims=True)) / np.where(spread > 0.0, spread, 1.0)
    largest = standard.max(axis=0)
    # The values at hand are one of the permutations (the first), so the p-value is never 0.
    return float(np.mean(largest >= largest[0] - 1e-9))


def _normal_scores(values: FloatArray) -> FloatArray:
    """The values by their ranks as quantiles of the normal distribution, so that a single outlier decides nothing."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - 0.5 * counts)[inverse] / len(values)
    quantile = NormalDist().inv_cdf
    return np.array([quantile(rank) for rank in ranks])
