"""A search is over when what it may still find is worth less than looking for it costs: learnt, not a fixed rule."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

import numpy as np

from luthier.arrays import FloatArray
from luthier.errors import InvalidInputError
from luthier.policies.base import Progress
from luthier.policies.forecast import FEWEST_STEPS, outlook, shipped

USUAL_PRODUCTION_RUNS = 1000
"""How often a tuned program is expected to run if nothing is known about it."""


@dataclass(frozen=True, slots=True)
class Learned:
    """Stop once further configurations are expected to save less, over `production_runs`, than trying them costs.

    What is expected is learnt from generated searches (`luthier.policies.forecast`). A run of a configuration is taken
    to last in proportion to its value or, where values are below 0 (something is maximized), in inverse proportion. A
    step is a configuration with its repeats, and costs the seconds that these took on average. With values of both
    signs, or before enough is known, the search goes on.
    """

    production_runs: int = USUAL_PRODUCTION_RUNS

    def __post_init__(self) -> None:
        _check_runs(self.production_runs)

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        ended = [trial for trial in progress.trials if trial.outcomes]
        values = [None if trial.estimate is None else trial.estimate.value for trial in ended]
        first = next((at for at, trial in enumerate(progress.trials) if trial.estimate is not None), None)
        times = relative_times(values)
        if first is None or times is None or sum(value is not None for value in values) < FEWEST_STEPS:
            return None
        run_s = median(_costs_of(progress, first) or [0.0])
        step_s = progress.cost_s / len(ended)
        left = (progress.budget - progress.runs) * len(ended) / max(progress.runs, 1)
        if not run_s > 0.0 or not step_s > 0.0:
            return None
        production_s = self.production_runs * run_s * float(times[-1])
        found = outlook(times, step_s, production_s, left, shipped())
        return None if found is None or found.pays else found.text("configuration", self.production_runs)


def _costs_of(progress: Progress, number: int) -> list[float]:
    """The seconds of each run of a trial that has ended."""
    pairs = zip(progress.steps, progress.costs_s, strict=False)
    return [cost_s for trial, cost_s in pairs if trial == number and cost_s is not None]


def relative_times(values: Sequence[float | None]) -> FloatArray | None:
    """The best time so far after each value, with that of the first number as 1; None if signs differ.

    Values are lower-is-better: those above 0 are times, those below 0 rates with the sign changed.
    """
    known = [value for value in values if value is not None]
    if not known or not (min(known) > 0.0 or max(known) < 0.0):
        return None
    base = known[0]
    ratios = [math.inf if value is None else value / base if base > 0.0 else base / value for value in values]
    best: FloatArray = np.minimum.accumulate(np.array(ratios))
    return best[np.isfinite(best)]


def _check_runs(production_runs: int) -> None:
    if production_runs < 1:
        raise InvalidInputError(f"{production_runs} production runs are planned; give 1 or more")


@dataclass(slots=True)
class LearnedStop:
    """Tells a tuner of your own when to stop; see `stop`."""

    production_runs: int
    goal: Literal["minimize", "maximize"]
    run_s: float | None
    iterations: int | None
    timer: Callable[[], float]
    _values: dict[int, float] = field(default_factory=dict)
    _cost_s: float = 0.0
    _since: float = field(init=False)

    def __post_init__(self) -> None:
        _check_runs(self.production_runs)
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
    goal: Literal["minimize", "maximize"] = "minimize",
    run_s: float | None = None,
    iterations: int | None = None,
    timer: Callable[[], float] = time.monotonic,
) -> LearnedStop:
    """A function `stop(iteration, best_perf)` for a tuner of your own: the reason to stop, or None to continue.

    `production_runs` is how often the tuned program is going to run, `iterations` how many iterations the tuner makes
    at most. With the goal `minimize`, performances are the seconds of a run. With `maximize` they are rates: a run is
    taken to last in inverse proportion, and `run_s` is how long one with the first performance takes (by default as
    long as an iteration). The time from one call to the next is the cost of an iteration.

    >>> import luthier as lt
    >>> stop = lt.stop(production_runs=100)
    >>> best_s = [10.0, 8.0, 7.5, 7.4] + 16 * [7.3]
    >>> reasons = [stop(iteration, best, cost_s=60.0) for iteration, best in enumerate(best_s)]
    >>> next(iteration for iteration, reason in enumerate(reasons) if reason)
    8
    """
    return LearnedStop(production_runs, goal, run_s, iterations, timer)
