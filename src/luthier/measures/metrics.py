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
"""What each measure adds up, by the runners' names for it."""


@dataclass(frozen=True, slots=True)
class Metric:
    """The sum of some of the runner's metrics; each of them only grows during a run.

    That is why a run that was stopped is known to have a value of at least what it had reached by then.
    """

    name: str
    parts: tuple[str, ...]

    def __call__(self, execution: Execution) -> Outcome:
        """Return the metric, or the problem with the metric as its lower bound."""
        problem = execution.problem
        known = all(part in execution.metrics for part in self.parts)
        reached = math.fsum(execution.metrics[part] for part in self.parts) if known else math.nan
        if problem is None:
            if math.isfinite(reached):
                return Completed(reached)
            return Failed(
                f"this runner does not measure {self.name!r}, only: {', '.join(execution.metrics) or 'nothing'}"
            )
        if isinstance(problem, TimedOut | Pruned) and math.isfinite(reached):
            return replace(problem, at_least=reached)
        return problem
