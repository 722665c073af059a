"""When a run under way is not worth finishing.

All of these but `BeyondSeconds` compare the time a run has taken with measured values, so they make sense only where
what is measured is the elapsed time, the less the better.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from luthier.errors import InvalidInputError
from luthier.policies.base import Progress, completed_values
from luthier.statistics.estimate import mean_of, median_of
from luthier.statistics.noise import noise_of
from luthier.trial import Completed, Pruned, TimedOut, Trial


@dataclass(frozen=True, slots=True)
class Never:
    """Let every run finish."""

    def __call__(self, trial: int, elapsed_s: float, progress: Progress) -> str | None:  # noqa: ARG002 - the protocol's
        """Return None: let it go on."""
        return None


@dataclass(frozen=True, slots=True)
class BeyondSeconds:
    """Stop a run that takes longer than a fixed time."""

    seconds: float

    def __post_init__(self) -> None:
        if not self.seconds > 0.0:
            raise InvalidInputError(f"{self.seconds} s is not above 0; give a number of seconds")

    def __call__(self, trial: int, elapsed_s: float, progress: Progress) -> str | None:  # noqa: ARG002 - the protocol's
        """Return the reason to stop the run, or None to let it go on."""
        return f"longer than {self.seconds:g} s" if elapsed_s > self.seconds else None


@dataclass(frozen=True, slots=True)
class BeyondDefault:
    """Stop a run that takes longer than `factor` times the estimate of the default configuration.

    While the default has no estimate, every run finishes.
    """

    factor: float = 1.0

    def __post_init__(self) -> None:
        if not self.factor > 0.0:
            raise InvalidInputError(f"default: factor={self.factor:g} is not above 0; 1 stops at the default's time")

    def __call__(self, trial: int, elapsed_s: float, progress: Progress) -> str | None:  # noqa: ARG002 - the protocol's
        """Return the reason to stop the run, or None to let it go on."""
        if progress.default is None or progress.default.estimate is None:
            return None
        default_s = progress.default.estimate.value
        if elapsed_s <= self.factor * default_s:
            return None
        return f"longer than {self.factor:g} times the default's {default_s:g} s"


@dataclass(frozen=True, slots=True)
class BeyondPast:
    """Stop a run that takes longer than the limit that `level` computes from past runs; initial draws always finish.

    `name` is the name of that limit in messages.
    """

    name: str
    level: Callable[[Sequence[Trial]], float]

    def __call__(self, trial: int, elapsed_s: float, progress: Progress) -> str | None:
        """Return the reason to stop the run, or None to let it go on."""
        # Robert 2022, chapter 5: during the initial draws there is no past to compare with.
        if trial < progress.initial:
            return None
        limit_s = self.level(progress.trials)
        return f"longer than the {self.name} of past runs, {limit_s:.4g} s" if elapsed_s > limit_s else None


def _mean(trials: Sequence[Trial]) -> float:
    """The mean of completed runs; what the others would have taken is not known."""
    values = [value for trial in trials for value in completed_values(trial)]
    return mean_of(values) if values else math.inf


def _quantile(share: float, trials: Sequence[Trial]) -> float:
    """The time that this share of all runs did not exceed.

    A run that was cut short counts as longer than any that completed. Without it only the fast ones would be left, and
    every run that is pruned would lower the limit for the next.
    """
    outcomes = [outcome for trial in trials for outcome in trial.outcomes]
    cut = sum(isinstance(outcome, Pruned | TimedOut) for outcome in outcomes)
    values = sorted(outcome.value for outcome in outcomes if isinstance(outcome, Completed))
    rank = math.ceil(share * (len(values) + cut))
    return values[rank - 1] if 0 < rank <= len(values) else math.inf


@dataclass(frozen=True, slots=True)
class BeyondChance:
    """Stop a run once a configuration as good as the best one would take so long with a chance below `least`.

    The time so far is a lower bound of what the run will take. If the configuration were as good as the best, the
    logarithm of what it takes would follow Student's distribution around the best one's, with the noise known from all
    repeats so far. So with few repeats a run is stopped late; without any, nothing is known of the noise and every run
    finishes. Initial draws always finish.

    The noise is taken to be at least `margin`, a share of the value: a search learns from
    the configurations around the best one, and more from a value than from a bound.
    """

    least: float = 0.025
    margin: float = 0.1

    def __post_init__(self) -> None:
        if not 0.0 < self.least < 0.5:
            raise InvalidInputError(
                f"chance: least={self.least:g} is not a small chance; give more than 0 and less than 0.5"
            )
        if not 0.0 <= self.margin < math.inf:
            raise InvalidInputError(f"chance: margin={self.margin:g} is not a share; give 0 or more")

    def __call__(self, trial: int, elapsed_s: float, progress: Progress) -> str | None:
        """Return the reason to stop the run, or None to let it go on."""
        if trial < progress.initial or progress.best is None or not elapsed_s > 0.0:
            return None
        if not progress.repeats:
            return None
        runs = completed_values(progress.trials[progress.best])
        best_s = median_of(runs)  # whatever the estimator: a minimum would be no typical run
        # The two single values add nothing to the noise, but must have a place on its scale.
        noise = noise_of([*progress.repeats, [best_s], [elapsed_s]])
        noise = replace(noise, deviation=max(noise.deviation, self.margin))
        behind = noise.place(elapsed_s) - noise.place(best_s)
        # One run against the mean of the best one's runs.
        chance = noise.chance_below(behind, len(runs) / (len(runs) + 1))
        if chance >= self.least:
            return None
        return f"a chance of {100.0 * chance:.2g} % to be as good as the best, {best_s:.4g} s"


def beyond_quantile(share: float) -> BeyondPast:
    """Stop a run that takes longer than a share of all past ones did."""
    if not 0.0 < share < 1.0:
        raise InvalidInputError(f"quantile {share} is not between 0 and 1; 0.75 is the upper quartile")
    return BeyondPast("median" if share == 0.5 else f"{100.0 * share:g} % quantile", partial(_quantile, share))


def beyond_mean() -> BeyondPast:
    """Stop a run that takes longer than past ones did on average."""
    return BeyondPast("mean", _mean)
