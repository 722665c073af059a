"""What tuned jobs gained, and which programs to tune next."""

from collections.abc import Sequence
from dataclasses import dataclass

from luthier.result.verification import FEWEST_PAIRS
from luthier.server.authentication import Principal
from luthier.statistics.comparison import Comparison
from luthier.statistics.estimate import median_of
from luthier.store.server_store import ServerStore
from luthier.submission.benefit import effect_of
from luthier.submission.store import job_records_in, submissions_in
from luthier.submission.store.submitted import ProgramUse
from luthier.submission.store.tuned_jobs import JobRecord

_MOST_RECORDS = 200
_TIME = "wall"
"""The measure whose gain is time saved."""


@dataclass(frozen=True, slots=True)
class Gain:
    """The jobs of one author that ran with the configuration of one record.

    `speedup` is from `pairs` of jobs with and without it, or, if `pairs` is 0, from the experiment. `saved_s` follows
    from it; both are None if the experiment did not measure the elapsed time and there are no pairs.
    """

    author: str
    record: JobRecord
    jobs: int
    elapsed_s: float
    speedup: float | None
    pairs: int
    saved_s: float | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A program that often runs and matches nothing; `saving_s` is an estimate, None without tuned jobs to go by."""

    program: ProgramUse
    saving_s: float | None


def gains(store: ServerStore, author: str | None) -> list[Gain]:
    """The gains of one author, or of all; the largest first."""
    usage = sorted(submissions_in(store).usage(author=author), key=lambda one: -one.elapsed_s)
    kept = {one.record_id: None for one in usage}
    records = {number: job_records_in(store).get(number) for number in list(kept)[:_MOST_RECORDS]}
    speedups = {number: speedup_of(store, record) for number, record in records.items()}
    found = []
    for one in usage:
        if one.record_id not in records:
            continue
        speedup, pairs = speedups[one.record_id]
        # With a speed-up s, a job that took t would have taken s * t with the default.
        saved = None if speedup is None or not one.completed else one.elapsed_s * (speedup - 1.0)
        record = records[one.record_id]
        found.append(Gain(one.author, record, one.jobs, one.elapsed_s, speedup, pairs, saved))
    return sorted(found, key=lambda gain: -(gain.saved_s or 0.0))


def speedup_of(store: ServerStore, record: JobRecord) -> tuple[float | None, int]:
    """How many times faster jobs are with a configuration, and from how many pairs of jobs that is known.

    Without enough jobs that kept the default at the same time, it is what the experiment found.
    """
    found = compared(store, record.id)
    if found is not None and found.pairs >= FEWEST_PAIRS:
        return found.speedup, found.pairs
    return (record.tuned.speedup if record.tuned.measure == _TIME else None), 0


def compared(store: ServerStore, record_id: int) -> Comparison | None:
    """Jobs with the configuration of a record, compared with those that kept the default at the same time."""
    return effect_of(submissions_in(store).ended(record_id), with_earlier=False).comparison


def candidates(store: ServerStore, who: Principal, *, since: float) -> tuple[list[Candidate], int, float | None]:
    """The programs to tune next, and from how many tuned jobs the saving is estimated, with their median speed-up."""
    author = None if who.role == "admin" else who.name
    speedups = _speedups(job_records_in(store).all(limit=1000))
    usual = median_of(speedups) if speedups else None
    share = None if usual is None else 1.0 - 1.0 / usual
    programs = submissions_in(store).unmatched(author=author, since=since)
    found = [Candidate(one, None if share is None else share * one.elapsed_s) for one in programs]
    return found, len(speedups), usual


def _speedups(records: Sequence[JobRecord]) -> list[float]:
    return [
        one.tuned.speedup
        for one in records
        if one.withdrawn is None and one.tuned.measure == _TIME and one.tuned.speedup >= 1.0
    ]
