"""The noise of samples, learned from configurations that were sampled several times."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from luthier.arrays import FloatArray, IntArray

_LOWER, _UPPER = 0.16, 0.84  # one deviation below and above the median of a normal distribution
_DRAWS = 128  # estimates drawn for each number of samples
_MOST = 12  # samples; the noise of estimates from more of them is taken to be that of so many
_LARGEST = 50.0  # of an excess: its exponential, the factor by which a sample is above another, stays finite
_SLOWEST = 48  # quantiles that represent the slowest of many clients
_SINGLE = 16  # quantiles that represent one client


@dataclass(frozen=True, slots=True)
class SampleNoise:
    """By how much samples lie above the least possible value, on the scale of the model: all that was seen, sorted.

    No distribution is assumed: estimates are drawn from what was seen.
    """

    excess: FloatArray
    estimator: Callable[[Sequence[float]], float]
    drop: float = 0.0
    """How far one sample lies above the least possible value on average, near the lower end of the distribution."""

    @staticmethod
    def of(samples: Sequence[FloatArray], estimator: Callable[[Sequence[float]], float]) -> "SampleNoise":
        """Learn from the samples of each configuration; there is no noise as long as none was repeated."""
        repeated = [np.sort(values) for values in samples if len(values) > 1]
        if not repeated:
            return SampleNoise(np.zeros(1), estimator)
        drop = _drop(repeated)
        # The least value seen lies above the least possible one, by a k-th of what a single sample does.
        above = [values - values[0] + drop / len(values) for values in repeated]
        return SampleNoise(np.sort(np.concatenate(above)), estimator, drop)

    def of_estimates(self, counts: IntArray) -> tuple[FloatArray, FloatArray]:
        """How far estimates from this many samples lie above the least possible value: median and deviation."""
        limited = np.minimum(counts, _MOST)
        table = np.zeros((_MOST + 1, 2))
        for count in set(limited.tolist()):
            table[count] = self._of_estimate(count)
        return table[limited, 0], table[limited, 1]

    def _of_estimate(self, count: int) -> tuple[float, float]:
        if self.excess[-1] == 0.0:
            return 0.0, 0.0
        # The bootstrap (Efron 1979): estimates from samples that are drawn out of those seen.
        drawn = np.random.default_rng(count).random((_DRAWS, count)) * len(self.excess)
        estimates = [self.estimator(row) for row in self.excess[drawn.astype(np.intp)].tolist()]
        low, middle, high = np.quantile(estimates, (_LOWER, 0.5, _UPPER))
        # Of an exponential distribution, the minimum of n samples has the deviation of a sample divided by n.
        return float(middle), max(0.5 * float(high - low), self.drop / count)

    def cost(self, ratios: FloatArray, clients: int) -> FloatArray:
        """What a step costs more if one client runs something that takes `ratios` times as long as the best.

        It is in units of an average sample of the best. With much noise the slowest client is often another one.
        """
        excess = np.minimum(self.excess, _LARGEST)
        single = np.exp(np.quantile(excess, (np.arange(_SINGLE) + 0.5) / _SINGLE))
        others = np.zeros(1)
        if clients > 1:
            # The largest of n numbers is below x with the n-th power of the chance of one; inverted, the n-th root.
            shares = ((np.arange(_SLOWEST) + 0.5) / _SLOWEST) ** (1.0 / (clients - 1))
            others = np.exp(np.quantile(excess, shares))
        # A step takes as long as its slowest client (Tabatabaee et al. 2005, eq. 1).
        slowest = np.maximum(others[:, None, None], single[:, None] * ratios).mean(axis=(0, 1))
        usual = np.maximum(others[:, None], single).mean()
        return np.asarray((slowest - usual) / single.mean(), dtype=np.float64)


def _drop(repeated: Sequence[FloatArray]) -> float:
    """How far one sample lies above the least possible value, from the lower half of the samples of each configuration.

    Near its lower end the noise is taken to be exponential: the distances between neighbouring samples of m, times
    m - 1, m - 2, ..., all have its mean (Rényi 1953). Outliers are cut.
    """
    means, weights = [], []
    for values in repeated:
        half = max(1, len(values) // 2)
        means.append(float(np.mean((len(values) - np.arange(1, half + 1)) * np.diff(values[: half + 1]))))
        weights.append(half)
    # One configuration with an outlier among few samples may not decide alone.
    most = 4.0 * float(np.median(means))
    cut = np.minimum(means, most) if len(means) > 2 and most > 0.0 else np.array(means)
    return float(np.average(cut, weights=weights))
