"""Whether one configuration is really better than another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from luthier.errors import InvalidInputError
from luthier.statistics.estimate import estimate, half_width_of, mean_of

Kind: TypeAlias = Literal["ratio", "difference"]

# Chosen by simulations: docs/research/2026-11-15-verification.md.
_FEWEST_EQUAL = 6  # pairs: with fewer equal ratios, chance explains them with more than 2.5 %
_MOST_FLIPPED = 16  # pairs: the flips of more of them take long, and Student's interval is wide enough then


@dataclass(frozen=True, slots=True)
class Comparison:
    """How much better the winner is than the default: a ratio (1: as good) or a difference (0: as good).

    A difference is in the unit of the measure. `low` and `high` bound it with the confidence that was asked for; they
    are None if there are too few pairs.
    """

    speedup: float
    low: float | None
    high: float | None
    pairs: int
    kind: Kind = "ratio"

    @property
    def improved(self) -> bool:
        """Whether the winner is better with the confidence asked for."""
        return self.low is not None and self.low > self._no_difference

    @property
    def worsened(self) -> bool:
        """Whether the winner is worse with the confidence asked for."""
        return self.high is not None and self.high < self._no_difference

    @property
    def decided(self) -> bool:
        """Whether the two differ with the confidence asked for."""
        return self.improved or self.worsened

    @property
    def looks_better(self) -> bool:
        """Whether the winner's estimate is better than the default's, proven or not."""
        return self.speedup > self._no_difference

    def reversed(self) -> "Comparison":
        """The same comparison seen from the default: how much better the default is."""

        def back(gain: float | None) -> float | None:
            if gain is None or self.kind == "difference":
                return None if gain is None else -gain
            return 1.0 / gain if gain else math.inf

        return replace(self, speedup=back(self.speedup) or 0.0, low=back(self.high), high=back(self.low))

    @property
    def _no_difference(self) -> float:
        return 1.0 if self.kind == "ratio" else 0.0


def compare(
    default_values: Sequence[float],
    winner_values: Sequence[float],
    *,
    estimator: str = "median",
    goal: Literal["minimize", "maximize"] = "minimize",
    confidence: float = 0.95,
    repeatable: bool = False,
) -> Comparison:
    """Compare runs made in turns: the i-th of the default and the i-th of the winner are neighbours in time.

    The speed-up is the ratio of the two estimates: the same estimator that is used everywhere else, so it fits the
    values shown beside it, and a single outlier moves it as little as it moves them.

    The interval is Student's on the logarithms of the pairs' ratios. Three reasons: Neighbours share the state of the
    machine, so slow drift and interference cancel within a pair. If there is no difference, the two of a pair can be
    exchanged: their log ratio is symmetric around 0 whatever the distribution of the noise, and for symmetric values
    Student's interval is conservative even with heavy tails, where a comparison of two means is not. And a ratio has no
    unit. Where the speed-up is outside, the interval is widened to include it.

    Where noise has few values (a disturbance that is there or not), Student's interval can be too narrow. So the
    symmetry is used for a second test: if more than the allowed share of all ways to flip the pairs' signs gives as
    large a mean, the interval is widened to include "no difference". Ratios that are all equal have no interval before
    the sixth pair (2⁻⁶ < 2.5 %), unless runs are known to be `repeatable` to the last digit.

    A ratio needs values above 0. If any is not, the result is of kind `difference`: that of the two estimates, in their
    own unit, with the same interval on the pairs' differences.
    """
    _check(default_values, winner_values)
    sign = 1.0 if goal == "minimize" else -1.0
    # A lower value is better from here on.
    default, winner = (
        estimate([sign * value for value in values], estimator).value for values in (default_values, winner_values)
    )
    pairs = list(zip(default_values, winner_values, strict=True))
    # Logarithms: the ratio of a pair has no unit, and what slows both runs of a pair down cancels.
    if min(*default_values, *winner_values) > 0:
        logs = [sign * (math.log(before) - math.log(after)) for before, after in pairs]
        bounds = _interval(logs, confidence, repeatable=repeatable)
        log_ratio = sign * (math.log(abs(default)) - math.log(abs(winner)))
        low, high = (None if bound is None else _exp(bound) for bound in _including(log_ratio, bounds))
        return Comparison(_exp(log_ratio), low, high, len(pairs))
    gains = [sign * (before - after) for before, after in pairs]
    low, high = _including(default - winner, _interval(gains, confidence, repeatable=repeatable))
    return Comparison(default - winner, low, high, len(pairs), "difference")


Bounds: TypeAlias = tuple[float | None, float | None]


def _including(value: float, bounds: Bounds) -> Bounds:
    """The bounds, widened to include a value."""
    low, high = bounds
    return (low, high) if low is None or high is None else (min(low, value), max(high, value))


def _interval(gains: Sequence[float], confidence: float, *, repeatable: bool) -> Bounds:
    """Bounds of the mean gain; no difference is 0."""
    middle, half_width = mean_of(gains), half_width_of(gains, confidence)
    all_equal = max(gains) == min(gains)
    if half_width is None or (all_equal and not repeatable and len(gains) < _FEWEST_EQUAL):
        return None, None
    low, high = middle - half_width, middle + half_width
    if low <= 0.0 <= high or (repeatable and all_equal):
        return low, high
    # One side of the interval; with few pairs no p-value is below that of a single arrangement.
    allowed = max((1.0 - confidence) / 2.0, 2.0 ** -len(gains))
    if _share_as_large(gains) > allowed:
        return min(low, 0.0), max(high, 0.0)
    return low, high


def _share_as_large(gains: Sequence[float]) -> float:
    """The share of all ways to flip signs that give a sum as far from 0, on the same side (Fisher's sign-flip test)."""
    if len(gains) > _MOST_FLIPPED:
        return 0.0
    direction = math.copysign(1.0, math.fsum(gains))
    sums = [0.0]
    for gain in gains:
        # All 2^n sums; the first one has every sign as it was observed.
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
        raise InvalidInputError("values: some differences of pairs are not finite; leave out these pairs")


def _exp(exponent: float) -> float:
    try:
        return math.exp(exponent)
    except OverflowError:
        return math.inf
