"""Stops a search when further gains are expected to be worth less than they cost, as learned from many searches."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from luthier.arrays import FloatArray
from luthier.errors import InvalidInputError
from luthier.policies.base import Progress
from luthier.policies.forecast import FEWEST_STEPS, outlook, shipped

USUAL_PRODUCTION_RUNS = 1000
"""How often a tuned program is expected to run if nothing is known about it."""

_WIDEST = 1e30  # larger ratios of values count as this one


@dataclass(frozen=True, slots=True)
class LearnedStop:
    """Stop once further configurations are expected to save less, over `production_runs`, than trying them costs.

    What is expected is learned from generated searches (`luthier.policies.forecast`). A run of a configuration is taken
    to last in proportion to its value or, where values are below 0 (something is maximized), in inverse proportion. A
    step is a configuration with its repeats, and costs the seconds that these took on average. With values of both
    signs, or before enough is known, the search goes on. With `saves_seconds` the values are seconds of a run in
    production, even if the runs of the search, of a part of the program, take another time.
    """

    production_runs: int = USUAL_PRODUCTION_RUNS
    saves_seconds: bool = False

    def __post_init__(self) -> None:
        check_production_runs(self.production_runs)

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to go on."""
        ended = [trial for trial in progress.trials if trial.outcomes]
        values = [None if trial.estimate is None else trial.estimate.value for trial in ended]
        first = next((at for at, trial in enumerate(progress.trials) if trial.estimate is not None), None)
        times = relative_times(values)
        if first is None or times is None or sum(value is not None for value in values) < FEWEST_STEPS:
            return None
        measured = progress.trials[first].estimate
        run_s = measured.value if measured and self.saves_seconds else median(_costs_of(progress, first) or [0.0])
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
    ratios = [math.nan if value is None else value / base if base > 0.0 else base / value for value in values]
    best: FloatArray = np.fmin.accumulate(np.clip(ratios, 1.0 / _WIDEST, _WIDEST))
    return best[np.isfinite(best)]


def check_production_runs(production_runs: int) -> None:
    """Raise unless at least one production run is planned."""
    if production_runs < 1:
        raise InvalidInputError(f"{production_runs} production runs are planned; give 1 or more")
