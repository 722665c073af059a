"""The plug point of the ways to turn what a run left behind into a number."""

from typing import Protocol

from luthier.trial import Execution, Outcome


class Measure(Protocol):
    """Turns an execution into an outcome; it reads files the run left behind, and never raises because of them."""

    def __call__(self, execution: Execution) -> Outcome:
        """Return the measured value, or why there is none."""
        ...
