"""How often a configuration runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from luthier.errors import InvalidInputError
from luthier.policies.base import Progress, completed_values
from luthier.statistics.estimate import TO_DEVIATION, deviation_of, mean_of, median_of
from luthier.statistics.noise import noise_of

_Z = 1.96  # deviations: 95 % of a normal distribution lie within, on both sides
_FEWEST_REPEATS = 2  # made in any case, to see how noisy runs are
_FEWEST_RUNS = 20  # a smaller budget has none to spare for repeats


@dataclass(frozen=True, slots=True)
class Once:
    """Run every configuration once."""

    uses_spare_runs: ClassVar[bool] = False

    def __call__(self, trial: int, progress: Progress) -> int:  # noqa: ARG002 - the protocol's arguments
        """Return 0: one run is enough."""
        return 0


@dataclass(frozen=True, slots=True)
class Static:
    """Run every configuration `count` times."""

    uses_spare_runs: ClassVar[bool] = False

    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InvalidInputError(f"static: {self.count} is below 1; give the number of runs of each configuration")

    def __call__(self, trial: int, progress: Progress) -> int:
        """Return how many more runs of `trial` are wanted now."""
        return max(0, self.count - len(completed_values(progress.trials[trial])))


@dataclass(frozen=True, slots=True)
class Sedr:
    """Standard error dynamic resampling: run until the mean is known well enough (Di Pietro et al. 2004).

    Well enough: the 95 % interval is no wider than `width`, a number in the measure's own unit or, if `relative`, a
    share of the mean. At least two runs are needed for a standard deviation.
    """

    uses_spare_runs: ClassVar[bool] = False

    width: float = 0.1
    relative: bool = True

    def __post_init__(self) -> None:
        if not 0.0 < self.width < math.inf:
            raise InvalidInputError(f"sedr: width {self.width} is not above 0; give the widest interval to accept")

    def __call__(self, trial: int, progress: Progress) -> int:
        """Return how many more runs of `trial` are wanted now."""
        values = completed_values(progress.trials[trial])
        # Robert-Hayek et al. 2023, section 3.4; relative to the mean is the variant that section 4 is based on.
        allowed = self.width * abs(mean_of(values)) if self.relative else self.width
        return int(interval_width(values) > allowed)


@dataclass(frozen=True, slots=True)
class Evadyr:
    """Efficient value-aware dynamic resampling (Robert-Hayek et al. 2023).

    Every configuration runs at least `least` times and at most the share `most` of the budget. In between it runs on
    while its 95 % interval is wider than a share of its mean that shrinks by `decay` with every step down to
    `narrowest`, and only if its median is below a share, which shrinks likewise down to `strictest`, of the median of
    the others.
    """

    uses_spare_runs: ClassVar[bool] = False

    least: int = 2
    most: float = 0.1
    decay: float = 0.99
    narrowest: float = 0.1
    strictest: float = 0.5

    def __post_init__(self) -> None:
        if self.least < 1:
            raise InvalidInputError(f"evadyr: least={self.least} is below 1; give the fewest runs of a configuration")
        for name in ("most", "decay", "narrowest", "strictest"):
            if not 0.0 < (share := getattr(self, name)) <= 1.0:
                raise InvalidInputError(f"evadyr: {name}={share:g} is not a share; give more than 0, and at most 1")

    def __call__(self, trial: int, progress: Progress) -> int:
        """Return how many more runs of `trial` are wanted now."""
        values = completed_values(progress.trials[trial])
        if len(values) < self.least:
            return self.least - len(values)
        # Robert-Hayek et al. 2023, section 4: at least 2 runs and at most 10 % of the budget, for promising ones only.
        if len(values) >= self.most * progress.budget or not self._promising(trial, progress):
            return 0
        # The formula there has the number of runs of this configuration as exponent; the text says elapsed steps.
        share = max(self.decay**progress.runs, self.narrowest)
        return int(interval_width(values) > share * abs(mean_of(values)))

    def _promising(self, trial: int, progress: Progress) -> bool:
        others = [
            value
            for number, other in enumerate(progress.trials)
            if number != trial
            for value in completed_values(other)
        ]
        if not others:
            return True
        # The current median is taken over the runs of all other configurations.
        share = max(self.decay**progress.runs, self.strictest)
        middle = median_of(others)
        # A share of a negative median would be above it; what is meant is better by that factor.
        return median_of(completed_values(progress.trials[trial])) <= (
            middle * share if middle > 0.0 else middle / share
        )


@dataclass(frozen=True, slots=True)
class Auto:
    """Run the best configuration again while it may be the best by chance only.

    Only the best one is run again. A search has many configurations that are nearly as good, so it costs little to drop
    one whose run was slow by chance; to keep one whose run was fast by chance costs the whole gain. When that one runs
    again it falls behind, and the next one is the best. Where two runs of it contradict each other, one of them was an
    outlier, and a third decides.

    A search of fewer than 20 runs repeats nothing. In others the first two repeats show how noisy runs are; without
    noise there are no more of them. With noise, the best one may run twice at first and `most` times the square root of
    the budget at the end of the search, but only while the chance that the second best is truly better is at least
    `doubt`. In the second half of the search a best one with a single run always runs again: a value that is too good
    for noise may still be an outlier. With several objectives there is no single best one, so nothing runs again.
    """

    uses_spare_runs: ClassVar[bool] = True

    most: float = 0.5
    doubt: float = 0.02

    def __post_init__(self) -> None:
        if not 0.0 < self.most < math.inf:
            raise InvalidInputError(f"auto: most={self.most:g} is not a factor; give more than 0")
        if not 0.0 < self.doubt < 1.0:
            raise InvalidInputError(f"auto: doubt={self.doubt:g} is not a chance; give more than 0 and less than 1")

    def __call__(self, trial: int, progress: Progress) -> int:
        """Return how many more runs of `trial` are wanted now."""
        if progress.budget < _FEWEST_RUNS or progress.objectives > 1:
            return 0
        if trial != progress.best:
            return int(_is_contradictory(trial, progress, self.doubt))
        # Measured in docs/research/2026-11-16-repeats-at-equal-runs.md.
        if sum(len(values) - 1 for values in progress.repeats) < _FEWEST_REPEATS:
            return 1
        noisy = any(min(values) < max(values) for values in progress.repeats)
        count = len(completed_values(progress.trials[trial]))
        # From one repeat at the beginning, in proportion to the part of the budget that is used.
        most = self.most * math.sqrt(progress.budget)
        if not noisy or count >= 1.0 + (most - 1.0) * progress.runs / progress.budget:
            return 0
        # A single run may have been an outlier: docs/research/2026-11-16-accidental-runs.md.
        if count == 1 and 2 * progress.runs >= progress.budget:
            return 1
        return int(_chance_of_second(progress, trial) >= self.doubt)


def _is_contradictory(trial: int, progress: Progress, doubt: float) -> bool:
    """Whether the better of two runs would lead, and the usual noise explains no such difference.

    Both happen on real machines: a run that waited for somebody else, and one that found its data in a cache. So other
    repeats may contain outliers as well; the usual noise is the median of their deviations, not the mean.
    """
    values = sorted(completed_values(progress.trials[trial]))
    best = None if progress.best is None else progress.trials[progress.best].estimate
    others = [group for group in progress.repeats if sorted(group) != values]
    if len(values) != 2 or best is None or values[0] >= best.value or not others:
        return False
    noise = noise_of([*others, *([value] for value in values)])
    deviations = [deviation_of([noise.place(value) for value in group]) or 0.0 for group in others]
    usual = replace(noise, deviation=TO_DEVIATION * median_of(deviations))
    apart = noise.place(values[1]) - noise.place(values[0])
    return usual.chance_below(apart, 0.5) < doubt  # two means of one run each: 1 x 1 / (1 + 1)


def _chance_of_second(progress: Progress, best: int) -> float:
    """The chance that the second best configuration is truly better than the best."""
    others = (other for number, other in enumerate(progress.trials) if number != best and other.estimate is not None)
    second = min(others, key=lambda other: math.inf if other.estimate is None else other.estimate.value, default=None)
    if second is None:
        return 0.0
    first, rival = completed_values(progress.trials[best]), completed_values(second)
    places = median_of(first), median_of(rival)
    noise = noise_of([*progress.repeats, *([place] for place in places)])
    behind = noise.place(places[1]) - noise.place(places[0])
    # The difference of two means has the error of a mean of so many runs.
    return noise.chance_below(behind, len(first) * len(rival) / (len(first) + len(rival)))


def interval_width(values: Sequence[float]) -> float:
    """How wide the 95 % interval of the mean is, with the unbiased deviation; infinite for a single run."""
    deviation = deviation_of(values)
    return math.inf if deviation is None else 2.0 * _Z * deviation / math.sqrt(len(values))
