"""Whether a machine stayed the same during an experiment, judged by repeated runs of the same configuration."""

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, combinations, pairwise
from typing import Literal, TypeAlias

from luthier.statistics.estimate import TO_DEVIATION, mean_of, median_of

Kind: TypeAlias = Literal["steady", "jumps", "slope"]
Search: TypeAlias = Callable[[Sequence[float]], tuple[float, int, int]]

FEWEST_READINGS = 6
"""With fewer readings a change cannot be distinguished from chance."""

_CHANCE = 0.02  # of a false alarm, for each of the two tests
_ORDERS = 399  # random orders of a test; with the order at hand 400
_FEWEST_BESIDE = 3  # readings on each side of a jump
_PLAIN = 8.0  # standard errors: a step that needs no test
_SMALLEST = 1.05  # a smaller factor is never a plain step


@dataclass(frozen=True, slots=True)
class RunAtMoment:
    """What a run of the same configuration gave at a moment."""

    at_s: float
    value: float


@dataclass(frozen=True, slots=True)
class Drift:
    """How the level of a machine moved: a factor by time, 1 at the beginning.

    A `steady` one is always 1. `jumps` stays on one level until it jumps at a moment between two readings; `slope` is
    straight (on a logarithmic scale) from the first reading to the last and constant after it. `moments` and `factors`
    are where the level changes and what it is from then on, or the two ends of the slope. `gaps` holds for each jump
    the times of the readings before and after it: the level between them is unknown.
    """

    kind: Kind
    moments: tuple[float, ...] = ()
    factors: tuple[float, ...] = ()
    gaps: tuple[tuple[float, float], ...] = ()

    def factor(self, at_s: float) -> float:
        """How many times as large values are at a moment than they were at the beginning."""
        if self.kind == "steady":
            return 1.0
        if self.kind == "jumps":
            return (1.0, *self.factors)[bisect_right(self.moments, at_s)]
        first, last = self.moments
        share = min(max((at_s - first) / (last - first), 0.0), 1.0)
        return _factor(share * math.log(self.factors[-1]))

    def possible(self, at_s: float) -> tuple[float, float]:
        """The smallest and the largest factor possible at a moment."""
        if self.kind == "steady":
            return 1.0, 1.0
        edges = [edge for before, after in self.gaps if before < at_s < after for edge in (before, after)]
        factors = [self.factor(moment) for moment in (at_s, *edges)]
        return min(factors), max(factors)

    def sentence(self) -> str:
        """For people: `jumped to 1.8x after 12 min, to 1x after 31 min`."""
        if self.kind == "steady":
            return "steady"
        if self.kind == "slope":
            return f"slid to {self.factors[-1]:.3g}x within {_minutes(self.moments[-1] - self.moments[0])}"
        jumps = zip(self.moments, self.factors, strict=True)
        return "jumped " + ", ".join(f"to {factor:.3g}x after {_minutes(at_s)}" for at_s, factor in jumps)


STEADY = Drift("steady")


def drift_of(readings: Sequence[RunAtMoment]) -> Drift:
    """Judge whether, and how, values of one configuration moved; moments count from the first reading.

    A jump is the end of the first part, or else of the stretch, that differs most from the other readings; each part is
    searched in the same way, as long as the difference is larger than in 98 % of random orders of the same readings
    (circular binary segmentation, Olshen et al. 2004, on ranks). There is a slope if Kendall's test for a trend says so
    with the same confidence, and if the line (Theil 1950, Sen 1968) explains the readings better than the jumps. Ranks
    and orders make no assumption about the noise. Values that are not all positive have no factors and count as steady.
    """
    return _judged(tuple(sorted(readings, key=lambda reading: reading.at_s)))


@lru_cache(maxsize=16)
def _judged(ordered: tuple[RunAtMoment, ...]) -> Drift:
    """Cached, because one result needs it several times and random orders are slow."""
    if len(ordered) < FEWEST_READINGS or min(reading.value for reading in ordered) <= 0.0:
        return STEADY
    at_s = [reading.at_s - ordered[0].at_s for reading in ordered]
    logs = [math.log(reading.value) for reading in ordered]
    jumps, slope = _jumps(at_s, logs), _slope(at_s, logs)
    found = [drift for drift in (jumps, slope) if drift.kind != "steady"]
    return min(found, key=lambda drift: _misfit(drift, at_s, logs), default=STEADY)


def _jumps(at_s: Sequence[float], logs: Sequence[float]) -> Drift:
    borders = [0, *sorted(_borders(logs, 0)), len(logs)]
    if len(borders) == 2:
        return STEADY
    levels = [median_of(logs[start:end]) for start, end in pairwise(borders)]
    # Nobody knows when it happened between the two readings; the middle is as good as any.
    moments = tuple((at_s[border - 1] + at_s[border]) / 2.0 for border in borders[1:-1])
    gaps = tuple((at_s[border - 1], at_s[border]) for border in borders[1:-1])
    return Drift("jumps", moments, tuple(_factor(level - levels[0]) for level in levels[1:]), gaps)


def _borders(logs: Sequence[float], start: int) -> list[int]:
    """Where a new level begins, counted from the very first reading."""
    ranks = _ranks(logs)
    # A beginning first: fewer candidates, so a smaller difference is already rare.
    for search in (_most_different_side, _most_different_stretch):
        found, first, end = search(ranks)
        if found > 0.0 and (_is_plain(logs, first, end) or _is_rare(search, ranks, found)):
            inner = sorted({0, first, end, len(logs)})
            deeper = [border for low, high in pairwise(inner) for border in _borders(logs[low:high], start + low)]
            return [*(start + border for border in inner[1:-1]), *deeper]
    return []


def _is_plain(logs: Sequence[float], first: int, end: int) -> bool:
    """Whether a beginning differs so much that no test is needed, even with too few readings for one.

    Its readings do not overlap with the rest, and the noise, estimated from the differences of neighbours (in which a
    jump counts once), is far too small for the step.
    """
    inside, outside = logs[first:end], logs[end:]
    apart = max(inside) < min(outside) or min(inside) > max(outside) if outside and first == 0 else False
    if not apart:
        return False
    # A difference of two readings has twice the variance of one.
    noise = TO_DEVIATION * median_of([abs(after - before) for before, after in pairwise(logs)]) / math.sqrt(2.0)
    error = noise * math.sqrt(1.0 / len(inside) + 1.0 / len(outside))
    step = abs(median_of(inside) - median_of(outside))
    return step > max(_PLAIN * error, math.log(_SMALLEST))


def _is_rare(search: Search, ranks: Sequence[float], found: float) -> bool:
    """Whether random orders of the same readings seldom differ as much somewhere."""
    rng = random.Random(len(ranks))  # noqa: S311 - not for secrets: the same readings get the same verdict
    shuffled, larger = list(ranks), 0
    for _ in range(_ORDERS):
        rng.shuffle(shuffled)
        larger += search(shuffled)[0] >= found
        if larger + 1 > _CHANCE / 2.0 * (_ORDERS + 1):  # half of it for each of the two searches
            return False
    return True


def _most_different_side(ranks: Sequence[float]) -> tuple[float, int, int]:
    """The beginning whose mean rank differs most from the rest's: by how much, its start and its end."""
    return _most_different(ranks, [0])


def _most_different_stretch(ranks: Sequence[float]) -> tuple[float, int, int]:
    """The stretch, wherever it starts, whose mean rank differs most from the rest's."""
    return _most_different(ranks, range(len(ranks)))


def _most_different(ranks: Sequence[float], starts: Iterable[int]) -> tuple[float, int, int]:
    count = len(ranks)
    sums = [0.0, *accumulate(ranks)]
    best = (0.0, 0, 0)
    for first in starts:
        last = min(count, first + count - _FEWEST_BESIDE)
        for end in range(first + _FEWEST_BESIDE, last + 1):
            size = end - first
            inside = sums[end] - sums[first]
            # The statistic Z of Olshen et al. 2004, without the factor that depends on the number of readings only.
            step = abs(inside / size - (sums[-1] - inside) / (count - size)) * math.sqrt(size * (count - size))
            if step > best[0]:
                best = (step, first, end)
    return best


def _slope(at_s: Sequence[float], logs: Sequence[float]) -> Drift:
    if at_s[-1] <= at_s[0] or not _has_trend(logs):
        return STEADY
    pairs = [(i, j) for i, j in combinations(range(len(logs)), 2) if at_s[j] > at_s[i]]
    # Jaeckel 1972: pairs weighted by their distance; else readings close in time, which show only noise, decide.
    slope = _weighted_median([((logs[j] - logs[i]) / (at_s[j] - at_s[i]), at_s[j] - at_s[i]) for i, j in pairs])
    # The line may not leave the range of the readings.
    reach = max(logs) - min(logs)
    return Drift("slope", (0.0, at_s[-1]), (1.0, _factor(min(max(slope * at_s[-1], -reach), reach))))


def _weighted_median(weighted: Sequence[tuple[float, float]]) -> float:
    """The first of the ordered values at which half of the weight is reached."""
    ordered = sorted(weighted)
    half = math.fsum(weight for _, weight in ordered) / 2.0
    reached = accumulate(weight for _, weight in ordered)
    return next((value for (value, _), sum_so_far in zip(ordered, reached, strict=True) if sum_so_far >= half), 0.0)


def _has_trend(values: Sequence[float]) -> bool:
    """Kendall's test (Mann 1945, Kendall 1975, section 4.9): whether later values are rather larger, or smaller."""
    count = len(values)
    score = sum((after > before) - (after < before) for before, after in combinations(values, 2))
    ties = [values.count(value) for value in set(values)]
    variance = (count * (count - 1) * (2 * count + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)) / 18.0
    if variance <= 0.0:
        return False
    # Normal approximation with a continuity correction of 1; the variance above is reduced for ties.
    return math.erfc(max(abs(score) - 1, 0) / math.sqrt(2.0 * variance)) < _CHANCE


def _misfit(drift: Drift, at_s: Sequence[float], logs: Sequence[float]) -> float:
    """Schwarz's criterion for double-exponential noise: distance of the readings from the level, plus a penalty."""
    rest = [log - math.log(drift.factor(moment)) for moment, log in zip(at_s, logs, strict=True)]
    middle = median_of(rest)
    distance = mean_of([abs(each - middle) for each in rest])
    # A jump has a moment and a level; a slope has its gradient.
    parameters = 2 * len(drift.factors) if drift.kind == "jumps" else 1
    return 2.0 * len(logs) * math.log(max(distance, 1e-12)) + parameters * math.log(len(logs))


def _ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value; equal ones share the mean of theirs."""
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(values)):
        places.setdefault(value, []).append(place)
    return [mean_of(places[value]) for value in values]


def _factor(log: float) -> float:
    """The exponential, kept within the range of floats."""
    return math.exp(min(max(log, -700.0), 700.0))


def _minutes(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 120.0 else f"{seconds / 60.0:.3g} min"
