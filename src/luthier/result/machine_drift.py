"""How the speed of the machine changed during an experiment, estimated from the runs of the default."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from luthier.spec.objectives import Goal
from luthier.statistics.drift import STEADY, Drift, RunAtMoment, drift_of
from luthier.statistics.outliers import Outlier, TimedRun, outliers_of
from luthier.trial import Completed, Outcome, Pruned, Run, TimedOut


@dataclass(frozen=True, slots=True)
class Level:
    """How the speed of the machine changed since the first run of the default, which started at `began_s`."""

    drift: Drift = STEADY
    began_s: float = 0.0

    def take_out(self, run: Run, goal: Goal) -> Outcome | None:
        """The outcome of a run, with the value or lower bound that it would have had at the machine's first speed.

        Where the speed is uncertain, the one that makes the run look worse is used: a false winner would cost more.
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
    """The level from the completed runs of the default, among the `runs` of one experiment."""
    readings = [
        RunAtMoment(run.began_at, run.outcome.value)
        for run in runs
        if run.trial == 0 and isinstance(run.outcome, Completed)
    ]
    began_s = min((reading.at_s for reading in readings), default=0.0)
    return Level(drift_of(readings), began_s)


def search_level(runs: Sequence[Run]) -> Level:
    """The level during the search; the verification compares runs that are close in time and needs none."""
    return level_of([run for run in runs if run.purpose != "verify"])


def outliers_among(runs: Sequence[Run], drift: Drift) -> list[Outlier]:
    """The runs that are far from the others of their configuration, and why."""
    timed = [
        TimedRun(run.number, run.trial, run.began_at, run.outcome.value)
        for run in runs
        if isinstance(run.outcome, Completed)
    ]
    return outliers_of(timed, drift)
