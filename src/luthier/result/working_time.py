"""How long an experiment was worked on, how long it may still take, and where."""

from collections.abc import Sequence
from dataclasses import dataclass

from luthier.result.result import Result
from luthier.result.text import duration_text
from luthier.result.verification import MOST_PAIRS
from luthier.spec.script import JobScript
from luthier.store.base import ENDED, Record
from luthier.store.ownership import status_text
from luthier.trial import Lost, Run

Pauses = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class WorkingTime:
    """The time that processes worked on an experiment, and an estimate of the time left.

    Both are None if they are not known; an experiment that has ended has no time left.
    """

    elapsed_s: float | None
    left_s: float | None

    @property
    def sentence(self) -> str:
        """Both times as a text; empty if they are not known."""
        if self.elapsed_s is None:
            return ""
        left = "" if self.left_s is None else f", at most {duration_text(self.left_s)} left (an estimate)"
        return f"{duration_text(self.elapsed_s)} elapsed{left}"


def working_time(record: Record, result: Result, now: float) -> WorkingTime:
    """The time that was spent on an experiment until `now`, without pauses, and the time left at the same pace."""
    elapsed_s = _elapsed_s(record, now)
    ended = [run for run in result.runs if run.outcome is not None and not isinstance(run.outcome, Lost)]
    if elapsed_s is None or not ended or record.status in ENDED:
        return WorkingTime(elapsed_s, None)
    experiment = result.experiment
    pace_s, left = elapsed_s / len(ended), experiment.budget - len(ended)
    most_verified = 2 * (MOST_PAIRS if experiment.verify_pairs is None else experiment.verify_pairs)
    last = len(experiment.refinements)
    verified = sum(run.purpose == "verify" and experiment.round_of(run.submit_order) == last for run in ended)
    if verified or record.stop_requested == "verify":
        return WorkingTime(elapsed_s, pace_s * max(min(left, most_verified - verified), 0))
    left_s = pace_s * max(left, 0)
    if experiment.time_limit_s is not None:
        search_s = max(experiment.time_limit_s - elapsed_s, 0.0)
        left_s = min(left_s, search_s + 2 * experiment.reserved_pairs * pace_s)
    return WorkingTime(elapsed_s, left_s)


def _elapsed_s(record: Record, now: float) -> float | None:
    if not record.periods:
        return None
    last = now if status_text(record) == "running" else record.seen_at
    spans = [(period.since, last if period.until is None else period.until) for period in record.periods]
    return sum(max(until - since, 0.0) for since, until in spans if until is not None)


def pauses_of(record: Record) -> tuple[tuple[float, float], ...]:
    """The times between periods of work, in which an experiment was stopped, interrupted or queued."""
    pairs = zip(record.periods, record.periods[1:], strict=False)
    return tuple((one.until, next_.since) for one, next_ in pairs if one.until is not None and one.until < next_.since)


def worked_at(at: float, pauses: Pauses) -> float:
    """A time without the pauses before it."""
    return at - sum(min(at, end) - begin for begin, end in pauses if begin < at)


def worked_spans(runs: Sequence[Run], pauses: Pauses) -> list[tuple[float, float]]:
    """The times of start and end of the runs that have ended, without pauses."""
    return [
        (worked_at(run.started_at, pauses), worked_at(run.started_at + run.duration_s, pauses))
        for run in runs
        if run.started_at is not None and run.duration_s is not None
    ]


def machine_rows(record: Record, result: Result) -> list[tuple[str, str]]:
    """Where luthier ran, with its version, as names and texts; empty if that was not recorded."""
    machines = list(dict.fromkeys(period.machine for period in record.periods))
    job = result.experiment.command
    is_elsewhere = isinstance(job, JobScript) and job.where != "local"
    rows = []
    for machine in machines:
        cores = f"{machine.cores} core{'' if machine.cores == 1 else 's'}"
        rows.append(("Submitted from" if is_elsewhere else "Host", machine.host))
        rows.append(("CPU", f"{machine.cpu}, {cores}"))
        rows.append(("luthier", machine.version))
    return list(dict.fromkeys(rows))
