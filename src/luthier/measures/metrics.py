"""Measures of what the runner itself noted: times and memory."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from luthier.trial import Completed, Execution, Failed, Outcome, Pruned, TimedOut

METRICS: Mapping[str, tuple[str, ...]] = {
    "wall": ("wall_s",),
    "user": ("user_s",),
    "system": ("system_s",),
    "cpu": ("user_s", "system_s"),
    "memory": ("peak_memory_bytes",),
}
"""The metrics of the runner that each measure adds up."""


@dataclass(frozen=True, slots=True)
class Metric:
    """The sum of some of the runner's metrics; each of them only grows during a run.

    That is why a run that was stopped is known to have a value of at least what it had reached by then. No run takes a
    wall time of 0 s, so that is a failure; the processor time of a small program may well be 0, as the system counts it
    in ticks. `memory` is the peak of the largest single process, not the sum over several.
    """

    name: str
    parts: tuple[str, ...]

    def __call__(self, execution: Execution) -> Outcome:
        """Return the metric, or the problem with the metric as its lower bound."""
        problem = execution.problem
        known = all(part in execution.metrics for part in self.parts)
        reached = math.fsum(execution.metrics[part] for part in self.parts) if known else math.nan
        if problem is None and not known:
            return Failed(
                f"this runner does not measure {self.name!r}, only: {', '.join(execution.metrics) or 'nothing'}"
            )
        if problem is None:
            return self._checked(reached)
        if isinstance(problem, TimedOut | Pruned) and math.isfinite(reached):
            return replace(problem, at_least=reached)
        return problem

    def _checked(self, value: float) -> Outcome:
        is_wall = "wall_s" in self.parts
        if not math.isfinite(value) or value < 0 or (is_wall and value == 0):
            return Failed(f"measured {self.name} = {value:g}, which cannot be; the run does not count")
        return Completed(value)
