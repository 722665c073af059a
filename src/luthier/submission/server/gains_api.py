"""What tuned jobs gained, which programs to tune next, and records that are not to be used."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field

from luthier.errors import NotFoundError
from luthier.result.verification import FEWEST_PAIRS
from luthier.server.api.models import ERRORS, LARGEST_NUMBER, RequestModel, ResponseModel, Short, example
from luthier.server.api.session import note
from luthier.server.authentication import ForbiddenError, Principal
from luthier.server.context import Context, Launcher, Server, Viewer
from luthier.statistics.comparison import Comparison
from luthier.statistics.estimate import median_of
from luthier.store.server_store import ServerStore, shown_author
from luthier.submission.benefit import effect_of
from luthier.submission.server.state import submission_of
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


router = APIRouter(tags=["submitted jobs"], responses=ERRORS)

Id = Annotated[int, Path(ge=1, le=LARGEST_NUMBER, description="The number of the job record.", examples=[1])]

_DAY_S = 24 * 3600.0


class JobGain(ResponseModel):
    """The jobs of one user that ran with the configuration of one record."""

    model_config = example(
        {
            "author": "ada",
            "record_id": 3,
            "experiment_id": 12,
            "component": "openmpi",
            "program": "stencil",
            "jobs": 40,
            "elapsed_s": 72000.0,
            "speedup": 1.31,
            "pairs": 5,
            "saved_s": 22320.0,
            "withdrawn": None,
        }
    )

    author: str
    record_id: int
    experiment_id: int | None
    component: str
    program: str
    jobs: int
    """Those of which the end is known."""
    elapsed_s: float
    """The time of those that completed."""
    speedup: float | None
    """How many times faster; null if it is not known."""
    pairs: int
    """The number of pairs of jobs with and without the configuration behind it; 0: from the experiment."""
    saved_s: float | None
    """The additional time that the default would have taken, estimated from `speedup`."""
    withdrawn: str | None
    """Why the record is not used any more; null while it is used."""


class JobRecordDetail(ResponseModel):
    """A job that was tuned, with which new jobs are compared."""

    model_config = example(
        {
            "id": 3,
            "experiment_id": 12,
            "component": "openmpi",
            "user": "ada",
            "name": "stencil",
            "program": "stencil",
            "nodes": 4,
            "created_at": 1.7e9,
            "environment": {"OMPI_MCA_coll_tuned_bcast_algorithm": "6"},
            "speedup": 1.4,
            "measure": "wall",
            "withdrawn": None,
            "production_speedup": 1.31,
            "pairs": 5,
            "may_change": True,
        }
    )

    id: int
    experiment_id: int | None
    component: str
    user: str
    name: str
    program: str
    nodes: int
    created_at: float
    environment: dict[str, str]
    speedup: float
    """As the experiment found it."""
    measure: str
    withdrawn: str | None
    production_speedup: float | None
    """As jobs show it that had the configuration or kept the default; null before the first pair."""
    pairs: int
    may_change: bool


class TuningCandidate(ResponseModel):
    """A program that ran at least twice and matched no record."""

    model_config = example(
        {
            "author": "ada",
            "user": "ada",
            "program": "stencil",
            "jobs": 120,
            "ended": 110,
            "elapsed_s": 360000.0,
            "saving_s": 82800.0,
            "last_at": 1.7e9,
            "last_id": 7,
        }
    )

    author: str
    user: str
    program: str
    jobs: int
    ended: int
    """The number of these jobs whose time is known."""
    elapsed_s: float
    saving_s: float | None
    """What tuning would have saved with the median speed-up of the jobs that were tuned; null without any."""
    last_at: float
    last_id: int
    """The newest of these jobs."""


class TuningCandidates(ResponseModel):
    """The programs to tune next, by the time they took."""

    model_config = example({"items": [], "tuned": 7, "median_speedup": 1.3})

    items: list[TuningCandidate] = Field(default_factory=list)
    tuned: int
    """The number of tuned jobs from which the saving is estimated."""
    median_speedup: float | None


class Withdrawal(RequestModel):
    """Why a record is not to be used."""

    model_config = example({"reason": "the library was replaced"})

    reason: Annotated[Short, Field(min_length=1)]


@router.get("/job-gains", summary="Get the time saved by submitted jobs")
def list_gains(server: Server, who: Viewer) -> list[JobGain]:
    """Your own; of all users for administrators. The largest first."""
    return [
        JobGain(
            author=shown_author(gain.author),
            record_id=gain.record.id,
            experiment_id=gain.record.experiment_id,
            component=gain.record.tuned.component,
            program=gain.record.job.program,
            jobs=gain.jobs,
            elapsed_s=gain.elapsed_s,
            speedup=gain.speedup,
            pairs=gain.pairs,
            saved_s=gain.saved_s,
            withdrawn=gain.record.withdrawn,
        )
        for gain in gains(server.store, None if who.role == "admin" else who.name)
    ]


@router.get("/tuning-candidates", summary="List programs that could be tuned")
def list_candidates(
    server: Server, who: Viewer, days: Annotated[int, Query(ge=1, le=3650, description="How far to look back.")] = 90
) -> TuningCandidates:
    """Your own; of all users for administrators. Those that took most time first."""
    found, tuned, usual = candidates(server.store, who, since=time.time() - days * _DAY_S)
    items = [
        TuningCandidate(
            author=shown_author(one.program.author),
            user=one.program.user_name,
            program=one.program.program,
            jobs=one.program.jobs,
            ended=one.program.ended,
            elapsed_s=one.program.elapsed_s,
            saving_s=one.saving_s,
            last_at=one.program.last_at,
            last_id=one.program.last_id,
        )
        for one in found
    ]
    return TuningCandidates(items=items, tuned=tuned, median_speedup=usual)


@router.get("/job-records", summary="List jobs that were tuned")
def list_job_records(
    server: Server,
    who: Viewer,
    *,
    withdrawn: Annotated[bool, Query(description="Only those that are not used any more.")] = False,
) -> list[JobRecordDetail]:
    """At most 200 of the newest: those of experiments that you may see."""
    found = [
        one for one in submission_of(server).job_records.all(limit=1000) if not withdrawn or one.withdrawn is not None
    ]
    visible = [one for one in found if _may_see(server, who, one)]
    return [_detail(server, who, one) for one in visible[:200]]


@router.post("/job-records/{number}/withdraw", summary="Do not use a record any more")
def withdraw_record(server: Server, who: Launcher, number: Id, given: Withdrawal) -> JobRecordDetail:
    """New jobs do not get its configuration; for administrators and for the author of its experiment."""
    _require_change(server, who, number)
    submission_of(server).job_records.withdraw(number, f"{given.reason} ({who.name})")
    note(server, who, "withdraw", f"job record {number}")
    return _detail(server, who, submission_of(server).job_records.get(number))


@router.post("/job-records/{number}/restore", summary="Use a record again")
def restore_record(server: Server, who: Launcher, number: Id) -> JobRecordDetail:
    """It is withdrawn again when further jobs show that it does harm."""
    _require_change(server, who, number)
    submission_of(server).job_records.restore(number)
    note(server, who, "restore", f"job record {number}")
    return _detail(server, who, submission_of(server).job_records.get(number))


def _may_see(server: Context, who: Principal, record: JobRecord) -> bool:
    if who.role == "admin" or record.experiment_id is None:
        return who.role == "admin"
    try:
        server.operations.visible(who, record.experiment_id)
    except NotFoundError:
        return False
    return True


def _may_change(server: Context, who: Principal, record: JobRecord) -> bool:
    if who.role == "admin":
        return True
    return (
        record.experiment_id is not None
        and _may_see(server, who, record)
        and who.may_change(server.store.history.experiment(record.experiment_id))
    )


def _require_change(server: Context, who: Principal, number: int) -> None:
    record = submission_of(server).job_records.get(number)
    if not _may_see(server, who, record):
        raise NotFoundError(f"job record {number} is not in this store")
    if not _may_change(server, who, record):
        raise ForbiddenError(f"job record {number} belongs to another user")


def _detail(server: Context, who: Principal, record: JobRecord) -> JobRecordDetail:
    found = compared(server.store, record.id)
    return JobRecordDetail(
        id=record.id,
        experiment_id=record.experiment_id,
        component=record.tuned.component,
        user=record.job.user,
        name=record.job.name,
        program=record.job.program,
        nodes=record.job.nodes,
        created_at=record.created_at,
        environment=dict(record.tuned.environment),
        speedup=record.tuned.speedup,
        measure=record.tuned.measure,
        withdrawn=record.withdrawn,
        production_speedup=None if found is None else found.speedup,
        pairs=0 if found is None else found.pairs,
        may_change=_may_change(server, who, record),
    )
