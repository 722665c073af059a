"""How the slots of a search were used: runs that ended, idle time, the time that suggestions took."""

from collections.abc import Sequence
from dataclasses import dataclass

from luthier.result.result import Result
from luthier.result.text import duration_text
from luthier.result.working_time import worked_at, worked_spans
from luthier.trial import Lost, Run

SUGGESTING = "suggest_s"
"""The metric with the time that the suggestion of a run took."""


@dataclass(frozen=True, slots=True)
class Activity:
    """The work of a search without its verification, which makes one run at a time.

    `finished` runs have ended and were not `lost`. `busy` is the share of the time of all slots, from the first
    submission to the last end and without pauses, in which a run was active; None if nothing ran. `suggesting_s` is the
    time that suggestions took, None if that was not recorded.
    """

    finished: int
    lost: int
    busy: float | None
    suggesting_s: float | None

    def sentence(self) -> str:
        """All of it in words; empty if nothing has ended."""
        if not self.finished and not self.lost:
            return ""
        parts = [f"{self.finished} runs finished"]
        if self.lost:
            parts.append(f"{self.lost} lost")
        if self.busy is not None:
            parts.append(f"slots busy {100.0 * self.busy:.3g} % of the time")
        if self.suggesting_s is not None:
            parts.append(f"suggestions took {duration_text(self.suggesting_s)}")
        return f"search: {', '.join(parts)}"


def activity_of(result: Result) -> Activity:
    """How the search of an experiment used its slots."""
    own = search_runs(result.runs)
    ended = [run for run in own if run.outcome is not None]
    lost = sum(isinstance(run.outcome, Lost) for run in ended)
    spans = worked_spans(ended, result.pauses)
    first = min((worked_at(run.submitted_at, result.pauses) for run in own), default=0.0)
    whole_s = (max((end for _, end in spans), default=first) - first) * result.experiment.slots
    suggesting = [run.metrics[SUGGESTING] for run in ended if SUGGESTING in run.metrics]
    return Activity(
        finished=len(ended) - lost,
        lost=lost,
        busy=min(sum(end - begin for begin, end in spans) / whole_s, 1.0) if whole_s > 0.0 else None,
        suggesting_s=sum(suggesting) if suggesting else None,
    )


def search_runs(runs: Sequence[Run]) -> list[Run]:
    """The runs without those of the verification."""
    return [run for run in runs if run.purpose != "verify"]
