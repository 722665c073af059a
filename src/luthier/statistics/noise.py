"""How much the runs of one configuration differ, and whether a difference between configurations is more than that."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from luthier.statistics.estimate import mean_of
from luthier.statistics.student import t_chance


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of a single run, pooled over the configurations that ran more than once.

    `deviation` is its standard deviation: of logarithms if `relative`, so that 0.1 means about 10 % of the value. It is
    relative where all values have the same sign, because what slows a program down mostly does so by a factor.
    `freedom` is the number of repeats behind it; with none, nothing is known and the standard deviation is 0.
    """

    deviation: float = 0.0
    freedom: int = 0
    relative: bool = False

    def place(self, value: float) -> float:
        """The place of a value on the scale of the standard deviation; lower values stay lower."""
        if not self.relative:
            return value
        return math.log(value) if value > 0.0 else -math.log(-value)

    def chance_below(self, difference: float, runs: float) -> float:
        """The chance that a true difference is below 0 if `difference` was seen.

        `difference` is between places, and `runs` is the number of runs whose mean has the same error: n m / (n + m) if
        it was between means of n and of m runs.
        """
        # Two means of n and m runs differ by chance with the variance s² (1 / n + 1 / m).
        error = self.deviation / math.sqrt(runs)
        if error == 0.0:
            return 1.0 if difference < 0.0 else 0.0 if difference > 0.0 else 0.5
        return t_chance(-difference / error, self.freedom)


def noise_of(groups: Sequence[Sequence[float]]) -> Noise:
    """The noise behind the values of several configurations, a group for each; a group of one value has none.

    All of them decide whether the noise can be relative, so that every value has a place on its scale.
    """
    values = [value for group in groups for value in group]
    freedom = len(values) - len(groups)
    relative = bool(values) and (min(values) > 0.0 or max(values) < 0.0)
    scale = Noise(relative=relative)
    if freedom == 0:
        return scale
    residuals = [rest for group in groups for rest in _residuals([scale.place(value) for value in group])]
    # The pooled deviation: each group uses up one degree of freedom for its mean.
    return Noise(math.hypot(*residuals) / math.sqrt(freedom), freedom, relative)


def _residuals(places: Sequence[float]) -> list[float]:
    mean = mean_of(places)
    return [place - mean for place in places]
