"""The plug points of the rules that steer an experiment: pure functions over values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from luthier.trial import Trial


@dataclass(frozen=True, slots=True)
class Progress:
    """What a rule may know: the search so far. Values are lower-is-better.

    `trials` holds every configuration measured so far, oldest first; `default` is the one of the default configuration,
    if it was measured; `runs` counts the runs submitted and `elapsed_s` the time since the experiment began.
    """

    trials: Sequence[Trial]
    default: Trial | None
    runs: int
    elapsed_s: float


class Stop(Protocol):
    """Decides whether the search is over."""

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        ...


class Prune(Protocol):
    """Decides whether a run under way is worth finishing."""

    def __call__(self, elapsed_s: float, progress: Progress) -> str | None:
        """Return the reason to stop the run that has been going for `elapsed_s`, or None to let it go on."""
        ...


class Resample(Protocol):
    """Decides whether the configuration that was measured last runs again."""

    def __call__(self, trial: Trial, progress: Progress) -> int:
        """Return how many more runs of `trial` are wanted now."""
        ...
