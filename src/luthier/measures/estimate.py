"""From the repeats of a configuration to one value with its uncertainty."""

import math
from collections.abc import Callable, Mapping, Sequence

from luthier.errors import InvalidInputError, NotFoundError
from luthier.measures.student import t_quantile
from luthier.trial import Estimate

_CONFIDENCE = 0.95


def estimate(values: Sequence[float], estimator: str = "mean") -> Estimate:
    """Judge a configuration from the values of its completed runs, with one of `ESTIMATORS`."""
    if estimator not in ESTIMATORS:
        raise NotFoundError(f"estimator: there is no {estimator!r}; there are: {', '.join(ESTIMATORS)}")
    if not values:
        raise InvalidInputError("values: there are none to judge from; pass those of the completed runs")
    if not all(math.isfinite(value) for value in values):
        raise InvalidInputError("values: not all of them are finite numbers; leave out runs without a number")
    return ESTIMATORS[estimator](values)


def mean_of(values: Sequence[float]) -> float:
    """The arithmetic mean; never outside of the values, so exactly the value where all are equal."""
    try:
        mean = math.fsum(values) / len(values)
    except OverflowError:
        mean = math.fsum(value / len(values) for value in values)
    return min(max(mean, min(values)), max(values))


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
    median = mean_of([ordered[(count - 1) // 2], ordered[count // 2]])
    rank = _median_rank(count, _CONFIDENCE)
    low, high = (None, None) if rank == 0 else (ordered[rank - 1], ordered[count - rank])
    return Estimate(median, count, deviation_of(values), low, high)


def _median_rank(count: int, confidence: float) -> int:
    """The largest r with P(x_(r) <= median <= x_(count+1-r)) >= confidence; 0 if there is none.

    Each value lies below the median with probability 1/2, so r is a quantile of the binomial distribution, whatever the
    distribution of the values (David and Nagaraja 2003, section 7.1).
    """
    if count >= 1000:  # where 0.5**count vanishes, the normal approximation errs by less than one rank
        return math.floor(count / 2 - t_quantile(confidence, count) * math.sqrt(count) / 2)
    tail, term, rank = 0.0, 0.5**count, 0
    while tail + term <= (1 - confidence) / 2:
        tail += term
        term *= (count - rank) / (rank + 1)
        rank += 1
    return rank


def _minimum(values: Sequence[float]) -> Estimate:
    """The least value, the estimate of choice under heavy-tailed noise that only ever adds; it has no interval."""
    return Estimate(min(values), len(values), deviation_of(values))


ESTIMATORS: Mapping[str, Callable[[Sequence[float]], Estimate]] = {
    "mean": _mean,
    "median": _median,
    "minimum": _minimum,
}
"""The ways to judge repeats."""
