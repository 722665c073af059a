"""The guard of a running program: when the last good configuration must be put back immediately."""

import math
from dataclasses import dataclass

from luthier.errors import InvalidInputError
from luthier.spec.objectives import Goal

READINGS_TO_ACT = 2
"""So many readings in a row must be worse than the bound: a single one may be due to chance."""


@dataclass(frozen=True, slots=True)
class Guard:
    """The bound: `factor` times worse than the default."""

    factor: float
    goal: Goal = "minimize"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.factor) and self.factor > 1.0):
            raise InvalidInputError(
                f"--guard {self.factor:g}: write a number above 1; 1.5 allows values 1.5 times worse than the default"
            )

    def is_worse(self, value: float, level: float) -> bool:
        """Whether a value is worse than the bound, where `level` is that of the default."""
        if self.goal == "minimize":
            return value > level + (self.factor - 1.0) * abs(level)
        return value < level - (1.0 - 1.0 / self.factor) * abs(level)
