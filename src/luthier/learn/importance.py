"""How much of a function's variation each input explains, with confidence intervals."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from luthier.arrays import BoolArray, FloatArray, IntArray
from luthier.learn.gaussian_process import GaussianProcess, Observations

REPLICATES = 30
"""How many bootstrap samples an interval is computed from."""

_MOST_ROWS = 400
_MOST_RESAMPLED = 80  # rows: of a larger history a part only, which is fast and makes the intervals slightly too wide
_DEVIATIONS = 2.045  # that hold 95 % of Student's distribution with 29 degrees of freedom
_SAME = 1e-12

Statistic = Callable[[GaussianProcess], FloatArray]


@dataclass(frozen=True, slots=True)
class Interval:
    """Numbers computed from data, each with bounds of a 95 % confidence interval."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, slots=True)
class Swaps:
    """Two independent samples of the inputs, a row for each point of the unit cube.

    `allowed` tells, a row for each input, in which rows of `base` this input alone may be set to its value in `other`.
    """

    base: FloatArray
    other: FloatArray
    allowed: BoolArray

    def swapped(self, column: int) -> FloatArray:
        """The allowed rows of `base`, with one input taken from `other`."""
        rows: FloatArray = self.base[self.allowed[column]]
        rows[:, column] = self.other[self.allowed[column], column]
        return rows


def effects(process: GaussianProcess, swaps: Swaps) -> FloatArray:
    """The total and the first-order effects of the inputs: two rows of shares of the variance of a measurement.

    The last column is of all inputs together: the share that the mean of `process` explains. The rest is noise.

    Jansen 1999, in the form of Saltelli et al. 2010, table 2 (f): with f' the function after input i is swapped, the
    total effect is E[(f(A) - f')²] / 2V and the first-order one 1 - E[(f(B) - f')²] / 2V. They are exact for
    independent inputs; where some swaps are not allowed, they are averages over the ones that are, and an input that
    can never move alone has no effect.
    """
    columns = swaps.base.shape[1]
    parts = [swaps.base, swaps.other, *(swaps.swapped(column) for column in range(columns))]
    mean, _ = process.predict(np.concatenate(parts))
    base, other, *rest = np.split(mean, np.cumsum([len(part) for part in parts])[:-1])
    shares = np.zeros((2, columns + 1))
    variance = float(np.var(np.concatenate((base, other))))
    # A constant function: its variance is rounding.
    if not variance > _SAME * float(np.mean(mean**2)):
        return shares
    for column, moved in enumerate(rest):
        allowed = swaps.allowed[column]
        if allowed.any():
            shares[0, column] = np.mean((base[allowed] - moved) ** 2) / (2.0 * variance)
            shares[1, column] = 1.0 - np.mean((other[allowed] - moved) ** 2) / (2.0 * variance)
    shares[:, -1] = 1.0
    # Shares of the variance of a single measurement, to which noise belongs.
    shares = np.clip(shares, 0.0, 1.0) * (variance / (variance + process.noise_deviation() ** 2))
    return np.stack((shares[0], np.minimum(shares[1], shares[0])))


def averages(process: GaussianProcess, points: FloatArray, group: FloatArray) -> FloatArray:
    """The mean of `process` averaged over the points of each group, numbered from 0 (Friedman 2001, section 8.2)."""
    mean, _ = process.predict(points)
    which = group.astype(np.intp)
    return np.asarray(np.bincount(which, weights=mean) / np.bincount(which), dtype=np.float64)


def with_uncertainty(
    statistic: Statistic, data: Observations, ordered: BoolArray, rng: np.random.Generator, replicates: int = REPLICATES
) -> Interval:
    """What `statistic` says of a process fitted to `data`, and of processes fitted to bootstrap samples of it.

    A row drawn k times enters once, with the noise of a mean of k: an interpolating model would conclude from the same
    row twice that there is no noise. The interval is symmetric: its half width comes from the mean square of the
    differences between the samples and the value, so that a bias of the value widens it.
    """
    process, data = GaussianProcess(ordered), at_most(_MOST_ROWS, data, rng)
    count = len(data.y)
    process.fit(data)
    value = statistic(process)
    drawn = []
    for _ in range(replicates):
        # Efron 1979: rows drawn with replacement.
        rows, times = np.unique(rng.integers(count, size=min(count, _MOST_RESAMPLED)), return_counts=True)
        sample = _rows(data, rows)
        process.fit(replace(sample, share=sample.share / times, error=sample.error / np.sqrt(times)))
        drawn.append(statistic(process))
    reach = _DEVIATIONS * np.sqrt(np.mean((np.stack(drawn) - value) ** 2, axis=0))
    return Interval(value, value - reach, value + reach)


def at_most(rows: int, data: Observations, rng: np.random.Generator) -> Observations:
    """The data, or as many of its rows, chosen at random."""
    if len(data.y) <= rows:
        return data
    return _rows(data, np.sort(rng.choice(len(data.y), rows, replace=False)))


def _rows(data: Observations, rows: IntArray) -> Observations:
    return replace(data, x=data.x[rows], y=data.y[rows], share=data.share[rows], error=data.error[rows])
