"""How searches of one hour are compared: the published definitions, and corrected ones."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from luthier.arrays import FloatArray

HOUR_S = 3600.0

Results = Sequence[tuple[float, float]]
"""Of one search: when each result came, in seconds since it began, and its value; in order of time."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over repetitions; None where RAND's best was never reached."""

    best: float
    expected: float
    speedup: float | None
    speedup_all_started: float | None

    @property
    def speedups(self) -> tuple[float | None, float | None]:
        """The published one and the corrected one."""
        return self.speedup, self.speedup_all_started


def curve(results: Results, times: FloatArray) -> FloatArray:
    """The best value so far at each time; before the first result, that one."""
    ends, values = np.array([end for end, _ in results]), np.array([value for _, value in results])
    return np.minimum.accumulate(values)[np.maximum(np.searchsorted(ends, times, side="right") - 1, 0)]


def expected(results: Results) -> float:
    """The best value so far, averaged from the beginning to the last result."""
    ends = np.array([0.0, *(end for end, _ in results)])
    return float(curve(results, ends[:-1]) @ np.diff(ends)) / float(ends[-1])


def scores(runs: Sequence[Results], target: float) -> Scores:
    """Compare repetitions with `target`, RAND's mean best after an hour.

    The published speed-up counts a repetition without a result as if it had its first one already; the corrected one
    begins when every repetition has a result.
    """
    times = np.array(sorted({end for run in runs for end, _ in run}))
    mean = np.mean([curve(run, times) for run in runs], axis=0)
    all_started_s = max(run[0][0] for run in runs)
    reached, fair = times[mean < target], times[(mean < target) & (times >= all_started_s)]
    return Scores(
        best=float(np.mean([min(value for _, value in run) for run in runs])),
        expected=float(np.mean([expected(run) for run in runs])),
        speedup=HOUR_S / float(reached[0]) if len(reached) else None,
        speedup_all_started=HOUR_S / float(fair[0]) if len(fair) else None,
    )


def best_after_an_hour(runs: Sequence[Results]) -> float:
    """The mean over repetitions of the best value."""
    return math.fsum(min(value for _, value in run) for run in runs) / len(runs)
