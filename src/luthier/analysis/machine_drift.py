"""The level of the machine while an experiment ran, read off the runs of the default configuration."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from luthier.spec.objectives import Goal
from luthier.statistics.drift import STEADY, Drift, Reading, drift_of
from luthier.statistics.outliers import Outlier, Timed, outliers_of
from luthier.trial import Completed, Outcome, Pruned, Run, TimedOut


@dataclass(frozen=True, slots=True)
class Level:
    """How the machine's level moved since the first run of the default, at `began_s` by the clock of the runs."""

    drift: Drift = STEADY
    began_s: float = 0.0

    def take_out(self, run: Run, goal: Goal) -> Outcome | None:
        """How a run ended, with the value (or the lower bound) it would have had on the machine of the beginning.

        Of the levels it may have met, the one that makes it look worse is taken: a winner by mistake would cost more.
        """
        least, largest = self.drift.possible(run.began_at - self.began_s)
        factor, outcome = largest if goal == "maximize" else least, run.outcome
        if factor == 1.0:
            return outcome
        if isinstance(outcome, Completed):
            return replace(outcome, value=outcome.value / factor)
        if isinstance(outcome, TimedOut | Pruned) and outcome.at_least is not None:
            return replace(outcome, at_least=outcome.at_least / factor)
        return outcome


def level_of(runs: Sequence[Run]) -> Level:
    """The level by the runs of the default that have completed, in `runs` of one experiment."""
    readings = [
        Reading(run.began_at, run.outcome.value)
        for run in runs
        if run.trial == 0 and isinstance(run.outcome, Completed)
    ]
    began_s = min((reading.at_s for reading in readings), default=0.0)
    return Level(drift_of(readings), began_s)


def search_level(runs: Sequence[Run]) -> Level:
    """The level during the search; the verification compares neighbours in time and needs none."""
    return level_of([run for run in runs if run.purpose != "verify"])


def outliers_among(runs: Sequence[Run], drift: Drift) -> list[Outlier]:
    """The runs that are far from the others of their configuration, and why."""
    timed = [
        Timed(run.number, run.trial, run.began_at, run.outcome.value)
        for run in runs
        if isinstance(run.outcome, Completed)
    ]
    return outliers_of(timed, drift)
