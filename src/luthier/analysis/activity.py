"""How the slots of a search were used: runs that ended, time without runs, time that suggestions took."""

from collections.abc import Sequence
from dataclasses import dataclass

from luthier.trial import Lost, Run

SUGGESTING = "suggest_s"
"""The metric with the time that the suggestion of a run took."""

_USUAL_STEP_S = 2.0  # from the end of a run to the next submission, besides the suggestion
_UNKNOWN_STEP_S = 60.0  # the same for runs that were stored without the time of their suggestion


@dataclass(frozen=True, slots=True)
class Activity:
    """The work of a search without its verification, which makes one run at a time.

    `finished` runs have ended and were not `lost`. `worked_s` is the time from the first submission to the last end
    without pauses, in which the experiment was stopped or its process was dead. `busy` is the share of it in which a
    slot had an active run, and None if nothing ran. `suggesting_s` is the time that suggestions took, None if unknown.
    """

    finished: int
    lost: int
    worked_s: float
    busy: float | None
    suggesting_s: float | None


def activity_of(runs: Sequence[Run], slots: int) -> Activity:
    """How a search of so many slots used them."""
    own = search_runs(runs)
    ended = [run for run in own if run.outcome is not None]
    lost = sum(isinstance(run.outcome, Lost) for run in ended)
    worked_s = sum(end - begin for begin, end in work_spans(own))
    active_s = sum(run.duration_s or 0.0 for run in ended)
    suggesting = [run.metrics[SUGGESTING] for run in ended if SUGGESTING in run.metrics]
    return Activity(
        finished=len(ended) - lost,
        lost=lost,
        worked_s=worked_s,
        busy=min(active_s / (slots * worked_s), 1.0) if worked_s > 0.0 else None,
        suggesting_s=sum(suggesting) if suggesting else None,
    )


def search_runs(runs: Sequence[Run]) -> list[Run]:
    """The runs without those of the verification."""
    return [run for run in runs if run.purpose != "verify"]


def work_spans(runs: Sequence[Run]) -> list[tuple[float, float]]:
    """The times at which the experiment was worked on, by the clock: begin and end of each, without the pauses."""
    spans: list[tuple[float, float]] = []
    for run in sorted(runs, key=lambda run: run.submitted_at):
        step_s = _UNKNOWN_STEP_S
        if SUGGESTING in run.metrics:
            step_s = _USUAL_STEP_S + run.metrics[SUGGESTING]
        if spans and run.submitted_at - spans[-1][1] <= step_s:
            spans[-1] = spans[-1][0], max(spans[-1][1], ended_at(run))
        else:
            spans.append((run.submitted_at, ended_at(run)))
    return spans


def worked_until(spans: Sequence[tuple[float, float]], at: float) -> float:
    """How much of the spans is before a time, in seconds."""
    return sum(max(min(end, at) - begin, 0.0) for begin, end in spans)


def ended_at(run: Run) -> float:
    """When a run ended, or when it began if that is unknown."""
    return max(run.began_at + (run.duration_s or 0.0), run.submitted_at)
