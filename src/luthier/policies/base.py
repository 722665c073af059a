"""The plug points of the rules that steer an experiment: pure functions over values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from luthier.space import Space
from luthier.trial import Completed, Trial


@dataclass(frozen=True, slots=True)
class Progress:
    """What a rule may know: the search so far. Values are lower-is-better.

    `trials` holds every configuration tried so far, oldest first; the first of them is the default, and the first
    `initial` are initial draws, made before there was anything to learn from. `best` is the number of the best one, if
    any gave a number. `repeats` holds the values of each configuration that completed more than once, `steps` the trial
    of every run submitted; `budget` is how many runs the search may make, and `elapsed_s` the time since the experiment
    began. `costs_s` holds the seconds that each run of `steps` took, None while it is under way. With more than one of
    the `objectives`, the values are those of the first.
    """

    trials: Sequence[Trial]
    best: int | None
    repeats: Sequence[Sequence[float]]
    steps: Sequence[int]
    initial: int
    budget: int
    elapsed_s: float
    costs_s: Sequence[float | None] = ()
    objectives: int = 1

    @property
    def runs(self) -> int:
        """How many runs were submitted."""
        return len(self.steps)

    @property
    def default(self) -> Trial | None:
        """The default configuration, if it was tried."""
        return self.trials[0] if self.trials else None

    @property
    def cost_s(self) -> float:
        """How many seconds all runs that have ended took together."""
        return math.fsum(cost_s for cost_s in self.costs_s if cost_s is not None)


class Stop(Protocol):
    """Decides whether the search is over."""

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        ...


class Prune(Protocol):
    """Decides whether a run under way is worth finishing."""

    def __call__(self, trial: int, elapsed_s: float, progress: Progress) -> str | None:
        """Return the reason to stop the run of `trial` that has been going for `elapsed_s`, or None to let it go on.

        Only the first run of a configuration is asked about, and never one of the default or of the verification.
        """
        ...


class Resample(Protocol):
    """Decides whether a configuration runs again."""

    @property
    def uses_spare_runs(self) -> bool:
        """Whether to go on when every configuration has run: the best ones run again until the best is certain."""
        ...

    def __call__(self, trial: int, progress: Progress) -> int:
        """Return how many more runs of `trial`, which has completed at least one, are wanted now.

        After every run the plan asks about the configuration that was measured last, unless it is an initial draw, and
        about the best one, whichever it is. A rule looks at no clock: a resumed experiment asks it again.
        """
        ...


@dataclass(frozen=True, slots=True)
class Subset:
    """Which parameters are tuned now, the most important first, and why."""

    names: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class TunedStep:
    """A part of a search in which one subset was tuned, from the configuration with number `begin` on.

    `best` is the best value known when it began; None if none was known. Lower is better.
    """

    names: tuple[str, ...]
    begin: int
    best: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SearchSoFar:
    """What a subset picker may know: the space, every configuration that has ended, oldest first, and past steps.

    Values are lower-is-better. A tuner of another program may know no configurations; `count` is then how many it had
    measured, and `best` the best value. `seed` is for pickers that draw.
    """

    space: Space
    trials: Sequence[Trial]
    steps: Sequence[TunedStep]
    count: int
    best: float | None
    seed: int = 0


class SubsetPicker(Protocol):
    """Decides which parameters are tuned next; the others keep the best known values.

    The answer depends on the argument only. A parameter that is left out may come back later.
    """

    def __call__(self, search: SearchSoFar) -> Subset:
        """Return the parameters to tune now: at least one, the most important first."""
        ...


def completed_values(trial: Trial) -> list[float]:
    """What the completed runs of a trial gave."""
    return [outcome.value for outcome in trial.outcomes if isinstance(outcome, Completed)]
