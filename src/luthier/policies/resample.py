"""How often a configuration runs."""

from dataclasses import dataclass

from luthier.errors import InvalidInputError
from luthier.policies.base import Progress
from luthier.trial import Trial


@dataclass(frozen=True, slots=True)
class Static:
    """Run every configuration `count` times, whatever the outcomes."""

    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InvalidInputError(f"static: {self.count} is below 1; give the number of runs of each configuration")

    def __call__(self, trial: Trial, progress: Progress) -> int:  # noqa: ARG002 - the protocol's arguments
        """Return how many more runs of `trial` are wanted now."""
        return max(0, self.count - len(trial.outcomes))


@dataclass(frozen=True, slots=True)
class Once:
    """Run every configuration once."""

    def __call__(self, trial: Trial, progress: Progress) -> int:  # noqa: ARG002 - the protocol's arguments
        """Return how many more runs of `trial` are wanted now."""
        return 0 if trial.outcomes else 1


once = Once
static = Static
