"""The objectives of an experiment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from luthier.errors import InvalidInputError
from luthier.measures.base import About, about
from luthier.texts import shown

Goal: TypeAlias = Literal["minimize", "maximize"]

GOALS: Mapping[str, Goal] = {"min": "minimize", "max": "maximize"}
"""The prefix of a measure that sets its goal, as in `max:json:iops`."""


@dataclass(frozen=True, slots=True)
class Objective:
    """A measure, and whether to minimize or maximize it."""

    measure: str
    goal: Goal = "minimize"

    def __post_init__(self) -> None:
        if self.goal not in GOALS.values():
            raise InvalidInputError(f"goal: {shown(self.goal)} is neither 'minimize' nor 'maximize'")

    @property
    def maximizes(self) -> bool:
        """Whether higher is better."""
        return self.goal == "maximize"

    @property
    def sign(self) -> float:
        """The factor that makes lower values better."""
        return -1.0 if self.maximizes else 1.0

    @property
    def is_time(self) -> bool:
        """Whether it is the elapsed time, minimized."""
        return self.about.quantity == "time" and not self.maximizes

    @property
    def is_io_time(self) -> bool:
        """Whether it is the part of the elapsed time that is spent in I/O, minimized."""
        return self.about.quantity == "part" and not self.maximizes

    @property
    def is_amount(self) -> bool:
        """Whether it is an amount of something that is neither a time nor a rate: memory, bytes, operations."""
        return self.about.quantity == "amount"

    @property
    def about(self) -> About:
        """What is known about the measure from its name."""
        return about(self.measure)

    @property
    def text(self) -> str:
        """The notation that `parse` reads."""
        if self.maximizes:
            return f"max:{self.measure}"
        return self.measure if self.about.goal == "minimize" else f"min:{self.measure}"

    @staticmethod
    def parse(text: str) -> "Objective":
        """Read `wall` or `max:json:iops`; without a goal, a measure has its usual one."""
        prefix, _, rest = text.partition(":")
        return Objective(rest, GOALS[prefix]) if prefix in GOALS else Objective(text, about(text).goal)
