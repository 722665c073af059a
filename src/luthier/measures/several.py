"""Several numbers of one run."""

from dataclasses import dataclass

from luthier.measures.base import Measure
from luthier.trial import Completed, Execution, Outcome


@dataclass(frozen=True, slots=True)
class Several:
    """Takes every measure of a run: the first gives the value, the rest the others."""

    measures: tuple[Measure, ...]

    def __call__(self, execution: Execution) -> Outcome:
        """Return all the numbers, or why the first missing one is missing."""
        values: list[float] = []
        for measure in self.measures:
            outcome = measure(execution)
            if not isinstance(outcome, Completed):
                return outcome
            values.append(outcome.value)
        return Completed(values[0], tuple(values[1:]))
