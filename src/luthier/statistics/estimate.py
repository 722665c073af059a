"""Estimates one value with its uncertainty from the repeated runs of a configuration."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations_with_replacement

from luthier.errors import InvalidInputError, NotFoundError
from luthier.statistics.student import t_quantile
from luthier.trial import Estimate

_CONFIDENCE = 0.95
_TRIMMED = 0.2  # the share cut off at each end
_MOST_COUNTED = 50  # runs: for more, the normal approximation of the signed-rank distribution is used
_FEWEST_GROUPS = 4  # configurations with three runs or more, before noise can be called one-sided
_ONE_SIDED = 0.4  # (above - below) / (above + below): 0 is symmetric, 1 is one-sided

TO_DEVIATION = 1.4826
"""The standard deviation of normal noise over the median of its absolute deviations."""

AUTO = "auto"
"""The name that leaves the choice of the estimator to `estimator_for`."""


def estimate(values: Sequence[float], estimator: str = "mean") -> Estimate:
    """Estimate the value of a configuration from those of its completed runs, with one of `ESTIMATORS`."""
    if estimator not in ESTIMATORS:
        raise NotFoundError(f"estimator {estimator!r} is unknown; known: {', '.join(ESTIMATORS)}")
    if not values:
        raise InvalidInputError("values: the list is empty; pass those of the completed runs")
    if not all(map(math.isfinite, values)):
        raise InvalidInputError("values: not all of them are finite numbers; leave out runs without a number")
    if len(values) == 1:  # by far the most frequent case, and the same for all estimators
        return Estimate(values[0], 1)
    return ESTIMATORS[estimator](values)


def mean_of(values: Sequence[float]) -> float:
    """The arithmetic mean, never outside of the values: exactly the value where all are equal."""
    try:
        mean = math.fsum(values) / len(values)
    except OverflowError:
        # The sum overflows, the mean does not.
        mean = math.fsum(value / len(values) for value in values)
    return min(max(mean, min(values)), max(values))


def median_of(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two in the middle."""
    ordered = sorted(values)
    return mean_of([ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]])


def deviation_of(values: Sequence[float]) -> float | None:
    """The sample standard deviation; None for a single value."""
    if len(values) < 2:
        return None
    mean = mean_of(values)
    return math.hypot(*(value - mean for value in values)) / math.sqrt(len(values) - 1)


def half_width_of(values: Sequence[float], confidence: float) -> float | None:
    """Half the length of Student's confidence interval for the mean; None for a single value."""
    deviation = deviation_of(values)
    if deviation is None:
        return None
    return t_quantile(confidence, len(values) - 1) * deviation / math.sqrt(len(values))


def _mean(values: Sequence[float]) -> Estimate:
    mean, half_width = mean_of(values), half_width_of(values, _CONFIDENCE)
    low, high = (None, None) if half_width is None else (mean - half_width, mean + half_width)
    return Estimate(mean, len(values), deviation_of(values), low, high)


def _median(values: Sequence[float]) -> Estimate:
    """The median between the order statistics that enclose it with 95 % or more; less than 6 runs have none."""
    ordered = sorted(values)
    count = len(ordered)
    # Order statistics are counted from 1.
    rank = _median_rank(count, _CONFIDENCE)
    low, high = (None, None) if rank == 0 else (ordered[rank - 1], ordered[count - rank])
    return Estimate(median_of(values), count, deviation_of(values), low, high)


def _median_rank(count: int, confidence: float) -> int:
    """The largest r with P(x_(r) <= median <= x_(count+1-r)) >= confidence; 0 if no r has it.

    Each value lies below the median with probability 1/2, so r is a quantile of the binomial distribution, whatever the
    distribution of the values (David and Nagaraja 2003, section 7.1).
    """
    if count >= 1000:  # where 0.5**count vanishes, the normal approximation errs by less than one rank
        return math.floor(count / 2 - t_quantile(confidence, count) * math.sqrt(count) / 2)
    tail, term, rank = 0.0, 0.5**count, 0
    while tail + term <= (1 - confidence) / 2:
        tail += term
        # Binomial coefficients one from the other.
        term *= (count - rank) / (rank + 1)
        rank += 1
    return rank


def _minimum(values: Sequence[float]) -> Estimate:
    """The lowest value, best under heavy-tailed noise that only adds to it; it has no interval."""
    return Estimate(min(values), len(values), deviation_of(values))


def _trimmed(values: Sequence[float]) -> Estimate:
    """The mean without the lowest and the highest fifth, with the interval of Tukey and McLaughlin (1963)."""
    ordered, count = sorted(values), len(values)
    cut = int(_TRIMMED * count)
    kept = ordered[cut : count - cut]
    # The deviation is the winsorised one: what was cut off counts as the last value that is kept.
    mean, spread = mean_of(kept), deviation_of([kept[0]] * cut + kept + [kept[-1]] * cut)
    if spread is None:
        return Estimate(mean, count)
    half_width = t_quantile(_CONFIDENCE, len(kept) - 1) * spread * math.sqrt(count) / len(kept)
    return Estimate(mean, count, deviation_of(values), mean - half_width, mean + half_width)


def _hodges_lehmann(values: Sequence[float]) -> Estimate:
    """The median of the means of all pairs, each value with itself included (Hodges and Lehmann 1963).

    Nearly as precise as the mean on normal noise, but a few outliers do not move it far. Its interval lies between two
    of the pairs' means, by the signed-rank distribution, and needs at least 6 runs.
    """
    means = sorted(mean_of(pair) for pair in combinations_with_replacement(values, 2))
    rank = _signed_rank(len(values), _CONFIDENCE)
    low, high = (None, None) if rank == 0 else (means[rank - 1], means[-rank])
    return Estimate(median_of(means), len(values), deviation_of(values), low, high)


def _signed_rank(count: int, confidence: float) -> int:
    """One more than the number of pairs' means that may lie on either side of the interval; 0 if it is unbounded.

    The number of subsets of 1 ... count by their sum is the distribution of Wilcoxon's statistic under symmetric noise
    (Hollander and Wolfe 1999, section 3.1).
    """
    if count > _MOST_COUNTED:
        # Moments of Wilcoxon's statistic under symmetry.
        mean, variance = count * (count + 1) / 4, count * (count + 1) * (2 * count + 1) / 24
        return math.floor(mean - t_quantile(confidence, 10**6) * math.sqrt(variance))
    ways = [1]
    for number in range(1, count + 1):
        # Each rank is in the subset or not.
        ways = [a + b for a, b in zip(ways + [0] * number, [0] * number + ways, strict=True)]
    tail, rank = 0, 0
    while (tail + ways[rank]) / 2**count <= (1 - confidence) / 2:
        tail += ways[rank]
        rank += 1
    return rank


def estimator_for(repeats: Sequence[Sequence[float]]) -> str:
    """The estimator that suits the noise seen in the values of configurations that ran more than once.

    It depends on which side the tail is. If, in the groups of three or more values, most are close to the lowest and
    some far above it, disturbances only add to the runs: then the minimum is nearest to what the program itself takes.
    Otherwise, and with fewer than four groups, it is the median, which no single run can move far.
    """
    groups = [sorted(group) for group in repeats if len(group) > 2]
    above = math.fsum(group[-1] - median_of(group) for group in groups)
    below = math.fsum(median_of(group) - group[0] for group in groups)
    one_sided = len(groups) >= _FEWEST_GROUPS and above - below > _ONE_SIDED * (above + below)
    return "minimum" if one_sided else "median"


ESTIMATORS: Mapping[str, Callable[[Sequence[float]], Estimate]] = {
    "mean": _mean,
    "median": _median,
    "minimum": _minimum,
    "trimmed": _trimmed,
    "hodges-lehmann": _hodges_lehmann,
}
"""The estimators for repeated runs."""
