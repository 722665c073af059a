"""When a search is over."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from luthier.errors import InvalidInputError
from luthier.policies.base import Progress, Stop, completed_values
from luthier.space import Space
from luthier.statistics.estimate import mean_of, median_of
from luthier.trial import Completed, Value

Level: TypeAlias = Literal["best", "mean", "median"]
"""Which statistic of the values must improve."""

_LEVELS: Mapping[Level, Callable[[Sequence[float]], float]] = {"best": min, "mean": mean_of, "median": median_of}

_FEWEST_TO_FORESEE = 10
"""Fewer values say too little about what further ones would bring."""


def _best(progress: Progress) -> float | None:
    best = None if progress.best is None else progress.trials[progress.best].estimate
    return None if best is None else best.value


@dataclass(frozen=True, slots=True)
class AfterRuns:
    """Stop after `count` runs; with 0 there is no run at all."""

    count: int

    def __post_init__(self) -> None:
        if self.count < 0:
            raise InvalidInputError(f"{self.count} runs is below 0; give the number of runs to make")

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        return f"{self.count} runs made" if progress.runs >= self.count else None


@dataclass(frozen=True, slots=True)
class AfterSeconds:
    """Stop when this many seconds have passed since the experiment began."""

    seconds: float

    def __post_init__(self) -> None:
        if not self.seconds >= 0.0:
            raise InvalidInputError(f"{self.seconds} s is not a time; give a number of seconds, 0 or more")

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        return f"{self.seconds:g} s have passed" if progress.elapsed_s >= self.seconds else None


@dataclass(frozen=True, slots=True)
class AtTarget:
    """Stop once a configuration is estimated at the target or lower."""

    value: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise InvalidInputError(f"target {self.value} can never be reached; give a finite number")

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        best = _best(progress)
        return f"target {self.value:g} reached: {best:g}" if best is not None and best <= self.value else None


@dataclass(frozen=True, slots=True)
class AtShareOfDefault:
    """Stop once a configuration is estimated at `share` times the default's value, or better.

    Where that would be no better than the default itself (a share above 1 of a positive value), nothing is reached.
    """

    share: float

    def __post_init__(self) -> None:
        if not 0.0 < self.share < math.inf:
            raise InvalidInputError(f"share {self.share} is not above 0; half of the default is 0.5")

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        default, best = progress.default, _best(progress)
        if default is None or default.estimate is None or best is None:
            return None
        target = self.share * default.estimate.value
        reached = best <= target < default.estimate.value
        return f"{100.0 * self.share:g} % of the default reached" if reached else None


@dataclass(frozen=True, slots=True)
class NoImprovement:
    """Stop once the last `over` configurations improved `of` by less than the fraction `by` of what it was.

    `of` is the best estimate, or the mean or median of them: that of the last `over` against that of all before. The
    fraction is of the size of the earlier one, so negative values work too; from exactly 0 any improvement counts.
    Configurations without a number improved nothing; until something was measured before the last `over`, there is
    nothing to compare with and the search goes on.
    """

    over: int
    by: float = 0.0
    of: Level = "best"

    def __post_init__(self) -> None:
        if self.over < 1:
            raise InvalidInputError(f"over = {self.over} is below 1; give a number of configurations")
        if not 0.0 <= self.by < math.inf:
            raise InvalidInputError(f"by = {self.by} is not a fraction of 0 or more; 5 % is 0.05")

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        before, last = (_estimates(progress, part) for part in (slice(-self.over), slice(-self.over, None)))
        if not before:
            return None
        level = _LEVELS[self.of]
        gain = level(before) - level(last) if last else 0.0
        if gain > 0.0 and gain >= self.by * abs(level(before)):
            return None
        what = "improvement" if self.of == "best" else f"improvement of the {self.of}"
        least = f"less than {100.0 * self.by:g} %" if self.by else "no"
        return f"{least} {what} over {self.over} configurations"


@dataclass(frozen=True, slots=True)
class NoImprovementOfRuns:
    """Stop once the last `over` runs improved `of` by less than the fraction `by` of what it was before them.

    This is SHAMan's criterion: it compares the values of single runs, initial draws included, without those of the
    default. With `by` 0 it stops only where the last ones are worse. Runs without a number are left out.
    """

    over: int
    by: float = 0.0
    of: Level = "best"

    def __post_init__(self) -> None:
        NoImprovement(self.over, self.by, self.of)

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        values = _values_of_runs(progress)
        before, last = (
            [one for one in part if one is not None] for part in (values[: -self.over], values[-self.over :])
        )
        if not before:
            return None
        level = _LEVELS[self.of]
        gain = level(before) - level(last) if last else 0.0
        if gain >= self.by * abs(level(before)):
            return None
        what = "improvement" if self.of == "best" else f"improvement of the {self.of}"
        return f"less than {100.0 * self.by:g} % {what} over {self.over} runs"


def _values_of_runs(progress: Progress) -> list[float | None]:
    """The value of every run that has ended, oldest first, without the runs of the default."""
    counts: dict[int, int] = {}
    values: list[float | None] = []
    for number in progress.steps:
        outcomes, made = progress.trials[number].outcomes, counts.get(number, 0)
        counts[number] = made + 1
        if number > 0 and made < len(outcomes):
            outcome = outcomes[made]
            values.append(outcome.value if isinstance(outcome, Completed) else None)
    return values


def _estimates(progress: Progress, part: slice) -> list[float]:
    return [trial.estimate.value for trial in progress.trials[part] if trial.estimate is not None]


@dataclass(frozen=True, slots=True)
class FewDistinct:
    """Stop once fewer than `below` different configurations were run in the last `over` runs."""

    below: int
    over: int

    def __post_init__(self) -> None:
        if not 1 < self.below <= self.over:
            raise InvalidInputError(
                f"fewer than {self.below} in {self.over} runs; give 2 or more, and at least as many runs"
            )

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        last = progress.steps[-self.over :]
        if len(last) < self.over or len(set(last)) >= self.below:
            return None
        return f"fewer than {self.below} different configurations in {self.over} runs"


@dataclass(frozen=True, slots=True)
class CloseTogether:
    """Stop once each of the last `over` runs was of a configuration nearer than `below` to the one before.

    The distance is the root mean square over the parameters, each from 0 to 1 over its range; two values of a choice
    without order are 1 apart.
    """

    space: Space
    below: float
    over: int

    def __post_init__(self) -> None:
        if self.over < 1 or not self.below > 0.0:
            raise InvalidInputError(
                f"below {self.below} over {self.over} runs; give a distance above 0, and 1 or more runs"
            )

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        if len(progress.steps) <= self.over:
            return None
        configs = [progress.trials[number].config for number in progress.steps[-self.over - 1 :]]
        points = self.space.to_unit(self.space.codes(configs))
        apart = np.abs(np.diff(points, axis=0))
        apart = np.where(np.asarray(self.space.ordered, dtype=np.bool_), apart, apart > 0.0)
        farthest = float(np.sqrt(np.mean(apart**2, axis=1)).max())
        return f"{self.over} runs nearer than {self.below:g} to the one before" if farthest < self.below else None


@dataclass(frozen=True, slots=True)
class CloseInUnits:
    """Stop once the configurations of the last `over` runs are close to each other, in the units of the parameters.

    This is SHAMan's criterion: the distances of every two different configurations, added up and divided by how many
    different ones there are, are at most `most`. A parameter whose values are not numbers has no such distance.
    """

    space: Space
    most: float
    over: int

    def __post_init__(self) -> None:
        if self.over < 1 or not 0.0 <= self.most < math.inf:
            raise InvalidInputError(
                f"at most {self.most} over {self.over} runs; give a distance of 0 or more, and 1 or more runs"
            )

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        if len(progress.steps) <= self.over:
            return None
        points = [
            [_number(progress.trials[number].config[name]) for name in self.space.names]
            for number in dict.fromkeys(progress.steps[-self.over :])
        ]
        if any(math.isnan(number) for point in points for number in point):
            return None
        total = math.fsum(math.dist(one, other) for one, other in combinations(points, 2))
        close = total / len(points) <= self.most
        return f"the configurations of {self.over} runs were at most {self.most:g} apart" if close else None


def _number(value: Value) -> float:
    """The value as a number; NaN for a text that is none."""
    try:
        return float(value)
    except ValueError:
        return math.nan


@dataclass(frozen=True, slots=True)
class NotWorthIt:
    """Stop once one more configuration is expected to save less, over `production_runs`, than trying it costs.

    The values are run times, so gain and cost have one unit. The cost is what a configuration took so far on average,
    repeats included. The expected gain is the larger of two guesses that need no model of the search. One is the gain
    per configuration over the second half of the history: returns diminish, so the next step brings less than that on
    average. The other is (second best - best) / n: of n exchangeable draws each is the best with a chance of 1 / n, and
    without it the second best would have been taken. It is above 0 also after a long time without improvement.
    """

    production_runs: int

    def __post_init__(self) -> None:
        if self.production_runs < 1:
            raise InvalidInputError(f"{self.production_runs} runs are planned; give 1 or more")

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        values = _estimates(progress, slice(None))
        if len(values) < _FEWEST_TO_FORESEE:
            return None
        half = len(values) // 2
        ordered = sorted(values)
        recent = (min(values[:half]) - ordered[0]) / (len(values) - half)
        gain_s = max(recent, (ordered[1] - ordered[0]) / len(values))
        cost_s = math.fsum(value for trial in progress.trials for value in completed_values(trial)) / len(
            progress.trials
        )
        if self.production_runs * gain_s >= cost_s:
            return None
        return f"one more configuration costs {cost_s:.3g} s and is expected to save {gain_s:.2g} s a run"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Stop as soon as one of the rules says so."""

    rules: tuple[Stop, ...]

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason of the first rule that has one, or None to go on."""
        return next((reason for rule in self.rules if (reason := rule(progress)) is not None), None)


@dataclass(frozen=True, slots=True)
class AllOf:
    """Stop once all of the rules say so; without any rule, never."""

    rules: tuple[Stop, ...]

    def __call__(self, progress: Progress) -> str | None:
        """Return all the reasons, or None to go on."""
        reasons = [rule(progress) for rule in self.rules]
        given = [reason for reason in reasons if reason is not None]
        return "; ".join(given) if given and len(given) == len(reasons) else None


def any_of(*rules: Stop) -> AnyOf:
    """Stop as soon as one of `rules` says so."""
    return AnyOf(rules)


def all_of(*rules: Stop) -> AllOf:
    """Stop once all of `rules` say so."""
    return AllOf(rules)
