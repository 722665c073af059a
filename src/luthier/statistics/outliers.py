"""Runs that differ strongly from others of the same configuration, and possible reasons."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from luthier.statistics.drift import Drift
from luthier.statistics.estimate import TO_DEVIATION, median_of

FEWEST_RUNS = 3
"""Of two runs it is impossible to say which one is the outlier."""

_FAR = 4.0  # in standard deviations: one of 16,000 runs with normal noise
_LEAST = 0.02  # a run within 2 % of the others is never an outlier
_MOVED = 1.1  # a machine that was less off than this explains no outlier


@dataclass(frozen=True, slots=True)
class TimedRun:
    """A completed run: its number, which configuration it was of, when it started, what it gave."""

    run: int
    trial: int
    at_s: float
    value: float


@dataclass(frozen=True, slots=True)
class Outlier:
    """A run far from the others of its configuration: `factor` times their median."""

    run: int
    factor: float
    reason: str


def outliers_of(runs: Sequence[TimedRun], drift: Drift) -> list[Outlier]:
    """The outliers among runs of configurations that ran three times or more, in the order of the runs.

    Far means four deviations of the noise that all these configurations share (its median absolute deviation, which
    outliers do not move). The reason given is one of: the level of the machine had changed (`drift`, with moments
    counted from the first run); the run before or after was far off in the same direction; unknown.
    """
    ordered = sorted(runs, key=lambda run: run.at_s)
    if not ordered or min(run.value for run in ordered) <= 0.0:
        return []
    middles = _middles(ordered)
    rests = {run.run: math.log(run.value) - middles[run.trial] for run in ordered if run.trial in middles}
    if not rests:
        return []
    # Logarithms of factors: 0.02 is about 2 %.
    limit = _FAR * max(TO_DEVIATION * median_of([abs(rest) for rest in rests.values()]), _LEAST / _FAR)
    found = []
    for place, run in enumerate(ordered):
        rest = rests.get(run.run, 0.0)
        if abs(rest) > limit:
            beside = [
                rests.get(other.run, 0.0)
                for other in (*ordered[max(place - 1, 0) : place], *ordered[place + 1 : place + 2])
            ]
            moved = drift.factor(run.at_s - ordered[0].at_s)
            found.append(Outlier(run.run, math.exp(min(max(rest, -700.0), 700.0)), _reason(rest, moved, beside, limit)))
    return sorted(found, key=lambda outlier: outlier.run)


def _middles(runs: Sequence[TimedRun]) -> dict[int, float]:
    """The median of the logarithms, for each configuration with enough runs."""
    groups: dict[int, list[float]] = {}
    for run in runs:
        groups.setdefault(run.trial, []).append(math.log(run.value))
    return {trial: median_of(logs) for trial, logs in groups.items() if len(logs) >= FEWEST_RUNS}


def _reason(rest: float, moved: float, beside: Sequence[float], limit: float) -> str:
    # A slow run on a slow machine (above 1.1), or a fast run on a fast one (below 1 / 1.1).
    if moved * math.copysign(1.0, rest) > (_MOVED if rest > 0.0 else -1.0 / _MOVED):
        return f"the machine was at {moved:.3g}x then"
    if any(other * math.copysign(1.0, rest) > limit / 2.0 for other in beside):
        return "its neighbours in time were off as well"
    return "alone; others at that time were as usual"
