"""When a search is over."""

import math
from dataclasses import dataclass

from luthier.errors import InvalidInputError
from luthier.policies.base import Progress, Stop


def _best(progress: Progress) -> float | None:
    return min((trial.estimate.value for trial in progress.trials if trial.estimate is not None), default=None)


@dataclass(frozen=True, slots=True)
class AfterRuns:
    """Stop once so many runs have been submitted; a budget of 0 stops before the first."""

    count: int

    def __post_init__(self) -> None:
        if self.count < 0:
            raise InvalidInputError(f"after_runs: {self.count} is below 0; give the number of runs to make")

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        return f"{self.count} runs made" if progress.runs >= self.count else None


@dataclass(frozen=True, slots=True)
class AfterSeconds:
    """Stop once so much time has passed since the experiment began."""

    seconds: float

    def __post_init__(self) -> None:
        if not self.seconds >= 0.0:
            raise InvalidInputError(f"after_seconds: {self.seconds} is not a time; give a number of seconds, 0 or more")

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        return f"{self.seconds:g} s have passed" if progress.elapsed_s >= self.seconds else None


@dataclass(frozen=True, slots=True)
class AtTarget:
    """Stop once a configuration is estimated at the target or lower."""

    value: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise InvalidInputError(f"at_target: {self.value} can never be reached; give a finite number")

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        best = _best(progress)
        return f"target {self.value:g} reached: {best:g}" if best is not None and best <= self.value else None


@dataclass(frozen=True, slots=True)
class NoImprovement:
    """Stop once the last `over` trials improved the best estimate by less than the fraction `by` of what it was.

    The fraction is of the size of the earlier best, so negative values work too; from a best of exactly 0 any
    improvement counts. Trials without a number count as trials that improved nothing; until something was measured
    before the last `over` trials, there is nothing to compare with and the search goes on.
    """

    over: int
    by: float = 0.0

    def __post_init__(self) -> None:
        if self.over < 1:
            raise InvalidInputError(f"no_improvement: over = {self.over} is below 1; give a number of trials")
        if not 0.0 <= self.by < math.inf:
            raise InvalidInputError(f"no_improvement: by = {self.by} is not a fraction of 0 or more; 5 % is 0.05")

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        values = [math.inf if trial.estimate is None else trial.estimate.value for trial in progress.trials]
        before = min(values[: -self.over], default=math.inf)
        if not math.isfinite(before):
            return None
        gain = before - min(values[-self.over :])
        if gain > 0.0 and gain >= self.by * abs(before):
            return None
        return f"less than {self.by:.3g} improvement over {self.over} trials" if self.by else self._stuck()

    def _stuck(self) -> str:
        return f"no improvement over {self.over} trials"


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


after_runs = AfterRuns
after_seconds = AfterSeconds
at_target = AtTarget
no_improvement = NoImprovement
