"""Whether one configuration is really better than another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from luthier.errors import InvalidInputError
from luthier.statistics.estimate import half_width_of, mean_of

_FEWEST_EQUAL = 6
_MOST_FLIPPED = 16


@dataclass(frozen=True, slots=True)
class Comparison:
    """How much better the winner is than the default: a ratio (1: as good) or a relative difference (0: as good).

    `low` and `high` bound it with the confidence that was asked for; they are None
    where there are too few pairs.
    """

    speedup: float
    low: float | None
    high: float | None
    pairs: int
    kind: Literal["ratio", "difference"] = "ratio"

    @property
    def improved(self) -> bool:
        """Whether the winner is better with the confidence asked for."""
        return self.low is not None and self.low > self._no_difference

    @property
    def decided(self) -> bool:
        """Whether the two differ with the confidence asked for."""
        return self.improved or (self.high is not None and self.high < self._no_difference)

    @property
    def _no_difference(self) -> float:
        return 1.0 if self.kind == "ratio" else 0.0

    def sentence(self, relation: str) -> str:
        """For people: `1.42x faster than the default (1.30x to 1.55x with 95 % confidence, 5 pairs)`."""

        def written(number: float) -> str:
            return f"{number:.3g}x" if self.kind == "ratio" else f"{number:+.1%}"

        if self.low is None or self.high is None:
            return f"{written(self.speedup)} {relation}"
        span = f"{written(self.low)} to {written(self.high)} with 95 % confidence, {self.pairs} pairs"
        return f"{written(self.speedup)} {relation} ({span})"


def compare(
    default_values: Sequence[float],
    winner_values: Sequence[float],
    *,
    goal: Literal["minimize", "maximize"] = "minimize",
    confidence: float = 0.95,
    repeatable: bool = False,
) -> Comparison:
    """Compare runs made in turns: the i-th of the default and the i-th of the winner are neighbours in time.

    The speed-up is exp(mean(log(default_i / winner_i))), the geometric mean of the pairs' ratios (winner / default
    when maximising), with Student's interval on the logarithms. Three reasons: Neighbours share the state of the
    machine, so slow drift and interference cancel within a pair. If there is no difference, the two of a pair can be
    exchanged: their log ratio is symmetric around 0 whatever the distribution of the noise, and for symmetric values
    Student's interval is conservative even with heavy tails, where a comparison of two means is not. And a ratio has no
    unit.

    Where noise has few values (a disturbance that is there or not), Student's interval can be too narrow. So the
    symmetry is used for a second test: if more than the allowed share of all ways to flip the pairs' signs gives as
    large a mean, the interval is widened to include "no difference". Ratios that are all equal have no interval before
    the sixth pair (2⁻⁶ < 2.5 %), unless runs are known to be `repeatable` to the last digit.

    A ratio needs values above 0. If any is not, the result is of kind `difference`: the mean of default_i - winner_i
    (winner_i - default_i when maximising) with the same interval, divided by the absolute mean of the default, or by 1
    if that mean is 0.
    """
    _check(default_values, winner_values)
    sign = 1 if goal == "minimize" else -1
    pairs = list(zip(default_values, winner_values, strict=True))
    if min(*default_values, *winner_values) > 0:
        logs = [sign * (math.log(default) - math.log(winner)) for default, winner in pairs]
        low, high = _interval(logs, confidence, repeatable=repeatable)
        bounds = [None if bound is None else _exp(bound) for bound in (low, high)]
        return Comparison(_exp(mean_of(logs)), bounds[0], bounds[1], len(pairs))
    unit = abs(mean_of(default_values)) or 1.0
    gains = [sign * (default - winner) for default, winner in pairs]
    low, high = _interval(gains, confidence, repeatable=repeatable)
    bounds = [None if bound is None else bound / unit for bound in (low, high)]
    return Comparison(mean_of(gains) / unit, bounds[0], bounds[1], len(pairs), "difference")


def _interval(gains: Sequence[float], confidence: float, *, repeatable: bool) -> tuple[float | None, float | None]:
    """Bounds of the mean gain; no difference is 0."""
    middle, half_width = mean_of(gains), half_width_of(gains, confidence)
    all_equal = max(gains) == min(gains)
    if half_width is None or (all_equal and not repeatable and len(gains) < _FEWEST_EQUAL):
        return None, None
    low, high = middle - half_width, middle + half_width
    if low <= 0.0 <= high or (repeatable and all_equal):
        return low, high
    allowed = max((1.0 - confidence) / 2.0, 2.0 ** -len(gains))
    if _share_as_large(gains) > allowed:
        return min(low, 0.0), max(high, 0.0)
    return low, high


def _share_as_large(gains: Sequence[float]) -> float:
    """The share of all ways to flip signs that give a sum as far from 0, on the same side (Fisher's sign-flip test)."""
    if len(gains) > _MOST_FLIPPED:
        return 0.0  # with more pairs Student's interval is wide enough
    direction = math.copysign(1.0, math.fsum(gains))
    sums = [0.0]
    for gain in gains:
        sums = [total + turned for total in sums for turned in (direction * gain, -direction * gain)]
    observed = sums[0]
    slack = 1e-9 * math.fsum(abs(gain) for gain in gains)
    return sum(total >= observed - slack for total in sums) / len(sums)


def _check(default_values: Sequence[float], winner_values: Sequence[float]) -> None:
    if not default_values or len(default_values) != len(winner_values):
        raise InvalidInputError(
            f"values: {len(default_values)} of the default and {len(winner_values)} of the winner do not form pairs; "
            "pass as many of one as of the other, at least 1"
        )
    if not all(math.isfinite(default - winner) for default, winner in zip(default_values, winner_values, strict=True)):
        raise InvalidInputError("values: not all pairs are finite numbers to subtract; leave out those that are not")


def _exp(exponent: float) -> float:
    try:
        return math.exp(exponent)
    except OverflowError:
        return math.inf
