"""The learned stop rule for tuners other than luthier's."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from luthier.errors import InvalidInputError
from luthier.policies.forecast import FEWEST_STEPS, outlook, shipped
from luthier.policies.learned import USUAL_PRODUCTION_RUNS, check_production_runs, relative_times

Goal: TypeAlias = Literal["minimize", "maximize"]


@dataclass(slots=True)
class AttachedStop:
    """Tells a tuner of your own when to stop; see `stop`."""

    production_runs: int
    goal: Goal
    run_s: float | None
    iterations: int | None
    timer: Callable[[], float]
    _values: dict[int, float] = field(default_factory=dict)
    _cost_s: float = 0.0
    _since: float = field(init=False)

    def __post_init__(self) -> None:
        check_production_runs(self.production_runs)
        if self.goal not in ("minimize", "maximize"):
            raise InvalidInputError(f"goal: {self.goal!r} is neither 'minimize' nor 'maximize'")
        if self.run_s is not None and not 0.0 < self.run_s < math.inf:
            raise InvalidInputError(f"run_s: {self.run_s} is not a time; give the seconds of a run, above 0")
        self._since = self.timer()

    def __call__(self, iteration: int, best_perf: float, cost_s: float | None = None) -> str | None:
        """Return the reason to stop, or None to continue.

        `best_perf` is the best performance found until the end of this iteration; the first one is that of the default.
        `cost_s` is what the iteration took; by default the time since the last call.
        """
        if self._values and iteration <= max(self._values):
            raise InvalidInputError(f"iteration {iteration} is not after {max(self._values)}; count upwards")
        if not math.isfinite(best_perf) or best_perf == 0.0:
            raise InvalidInputError(f"best_perf: {best_perf} is not a performance; give a finite number other than 0")
        now = self.timer()
        spent_s = now - self._since if cost_s is None else cost_s
        if not 0.0 <= spent_s < math.inf:
            raise InvalidInputError(f"cost_s: {spent_s} is not a time; give the seconds that the iteration took")
        self._cost_s, self._since = self._cost_s + spent_s, now
        self._values[iteration] = -best_perf if self.goal == "maximize" else best_perf
        return self._reason()

    def _reason(self) -> str | None:
        first, last = min(self._values), max(self._values)
        times = relative_times([self._values.get(at) for at in range(first, last + 1)])
        if times is None or len(times) < FEWEST_STEPS:
            return None
        step_s = self._cost_s / len(times)
        run_s = self.run_s or (step_s if self._values[first] < 0.0 else self._values[first])
        left = math.inf if self.iterations is None else self.iterations - len(times)
        found = outlook(times, step_s, self.production_runs * run_s * float(times[-1]), left, shipped())
        return None if found is None or found.pays else found.text("iteration", self.production_runs)


def stop(
    production_runs: int = USUAL_PRODUCTION_RUNS,
    *,
    goal: Goal = "minimize",
    run_s: float | None = None,
    iterations: int | None = None,
    timer: Callable[[], float] = time.monotonic,
) -> AttachedStop:
    """A function `stop(iteration, best_perf)` for a tuner of your own: the reason to stop, or None to continue.

    `production_runs` is how often the tuned program is going to run, `iterations` how many iterations the tuner makes
    at most. With the goal `minimize`, performances are the seconds of a run. With `maximize` they are rates: a run is
    taken to last in inverse proportion, and `run_s` is how long one with the first performance takes (by default as
    long as an iteration). The time from one call to the next is the cost of an iteration.

    >>> from luthier import tunio
    >>> stop = tunio.stop(production_runs=1000)
    >>> best_s = [10.0, 8.0, 7.5, 7.4] + 36 * [7.3]
    >>> reasons = [stop(iteration, best, cost_s=60.0) for iteration, best in enumerate(best_s)]
    >>> next(iteration for iteration, reason in enumerate(reasons) if reason)
    13
    """
    return AttachedStop(production_runs, goal, run_s, iterations, timer)
