"""Jobs that were submitted and what was decided about them, in an SQL database."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Update,
    bindparam,
    case,
    func,
    insert,
    select,
    tuple_,
    update,
)

from luthier.errors import NotFoundError
from luthier.store import rows
from luthier.store.database import Database
from luthier.submission.job import NewJob
from luthier.submission.store.submitted import Decision, EndedJob, NewSubmission, ProgramUse, Submission, Usage
from luthier.submission.store.tables import submissions

_MOST_RUNS = 2_000
"""How many of the newest runs with or without a record are compared."""

_IS_SUBMISSION = submissions.c.id == bindparam("submission")
_ONE = select(submissions).where(_IS_SUBMISSION)
_ADD = insert(submissions).returning(submissions.c.id, sort_by_parameter_order=True)
_REVIEW = update(submissions).where(_IS_SUBMISSION).values(confirmed=bindparam("is_right"))
_END = (
    update(submissions)
    .where(_IS_SUBMISSION, submissions.c.state.is_(None))
    .values(job_id=bindparam("job"), state=bindparam("ended_as"), elapsed_s=bindparam("took_s"))
)
_CHANGE_AUTHOR = (
    update(submissions).where(submissions.c.author == bindparam("user")).values(author=bindparam("removed"))
)
_REVIEWS = (
    select(submissions.c.by_field, submissions.c.confirmed)
    .where(submissions.c.confirmed.is_not(None), submissions.c.by_field.is_not(None))
    .order_by(submissions.c.id.desc())
    .limit(_MOST_RUNS)
)
_ENDED = select(submissions).where(submissions.c.state.is_not(None))
_SAME = (submissions.c.user_name, submissions.c.program, submissions.c.command, submissions.c.nodes)
_MOST_KINDS = 50
"""For how many kinds of equal jobs earlier ones are looked up."""


class SqlSubmissions:
    """Stores submitted jobs in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, new: Sequence[NewSubmission]) -> list[int]:
        """Add jobs, all of them or none; return their numbers in the same order."""
        if not new:
            return []
        added = [_row(one) for one in new]
        return self._database.write(
            lambda connection: list(connection.execute(_ADD, added).scalars().all()), repeatable=False
        )

    def get(self, submission_id: int) -> Submission:
        """One submitted job."""
        key = _key(submission_id)

        def work(connection: Connection) -> Submission:
            row = connection.execute(_ONE, key).mappings().first()
            if row is None:
                raise _no_submission(submission_id)
            return _submission(row)

        return self._database.read(work)

    def all(
        self,
        *,
        author: str | None = None,
        decision: Decision | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Sequence[Submission]:
        """The newest submitted jobs first; with an `author`, only theirs."""
        wanted = select(submissions).order_by(submissions.c.id.desc()).limit(rows.positive(limit))
        if author is not None:
            wanted = wanted.where(submissions.c.author == author)
        if decision is not None:
            wanted = wanted.where(submissions.c.decision == decision)
        if before is not None:
            wanted = wanted.where(submissions.c.id < rows.bounded(before))
        return self._database.read(lambda connection: list(map(_submission, connection.execute(wanted).mappings())))

    def note_end(self, submission_id: int, job_id: str, state: str, elapsed_s: float | None) -> bool:
        """Record how the job ended; False if that is known already, or if the number is unknown."""
        ended = {"job": rows.short(job_id, "job"), "ended_as": rows.short(state, "state")}
        return self._update(_END, submission_id, {**ended, "took_s": rows.finite_or_none(elapsed_s, "elapsed_s")})

    def review(self, submission_id: int, *, confirmed: bool | None) -> None:
        """Record whether a person says that the match is right; None removes an earlier review."""
        if not self._update(_REVIEW, submission_id, {"is_right": confirmed}):
            raise _no_submission(submission_id)

    def reviews(self) -> Sequence[tuple[Mapping[str, float], bool]]:
        """The scores per field of the reviewed matches, and whether each is right."""

        def work(connection: Connection) -> list[tuple[Mapping[str, float], bool]]:
            found = connection.execute(_REVIEWS)
            return [(json.loads(by_field), bool(confirmed)) for by_field, confirmed in found]

        return self._database.read(work)

    def ended(self, record_id: int) -> Sequence[EndedJob]:
        """The newest ended jobs that matched this record, and equal jobs that matched nothing."""
        newest = _ENDED.order_by(submissions.c.id.desc()).limit(_MOST_RUNS)
        is_compared = submissions.c.decision.in_(("set", "default"))
        matched = newest.where(submissions.c.record_id == rows.bounded(record_id), is_compared)

        def work(connection: Connection) -> list[EndedJob]:
            found = list(connection.execute(matched).mappings())
            equal = list({tuple(row[column.name] for column in _SAME): None for row in found})[:_MOST_KINDS]
            if not equal:
                return []
            others = newest.where(submissions.c.decision == "none", tuple_(*_SAME).in_(equal))
            every = [*found, *connection.execute(others).mappings()]
            return [_ended_job(row) for row in sorted(every, key=lambda row: int(row["id"]))]

        return self._database.read(work)

    def usage(self, *, author: str | None = None) -> Sequence[Usage]:
        """For each author and record: the jobs that got its configuration, and the time they took."""
        took = case((submissions.c.state == "COMPLETED", submissions.c.elapsed_s), else_=None)
        wanted = (
            select(
                submissions.c.author,
                submissions.c.record_id,
                func.count(submissions.c.state).label("jobs"),
                func.count(took).label("completed"),
                func.coalesce(func.sum(took), 0.0).label("elapsed_s"),
            )
            .where(submissions.c.decision == "set", *_by(author))
            .group_by(submissions.c.author, submissions.c.record_id)
        )
        found = self._database.read(lambda connection: connection.execute(wanted).mappings().all())
        return [Usage(**row) for row in found]

    def unmatched(self, *, author: str | None = None, since: float = 0.0, limit: int = 50) -> Sequence[ProgramUse]:
        """The programs whose jobs matched no record, those that took most time first."""
        same = (submissions.c.author, submissions.c.user_name, submissions.c.program)
        elapsed = func.coalesce(func.sum(submissions.c.elapsed_s), 0.0)
        wanted = (
            select(
                *same,
                func.count().label("jobs"),
                func.count(submissions.c.elapsed_s).label("ended"),
                elapsed.label("elapsed_s"),
                func.max(submissions.c.at).label("last_at"),
                func.max(submissions.c.id).label("last_id"),
            )
            .where(
                submissions.c.decision == "none", submissions.c.at >= since, submissions.c.program != "", *_by(author)
            )
            .group_by(*same)
            .having(func.count() > 1)
            .order_by(elapsed.desc(), func.count().desc(), func.max(submissions.c.id).desc())
            .limit(rows.positive(limit))
        )
        found = self._database.read(lambda connection: connection.execute(wanted).mappings().all())
        return [ProgramUse(**row) for row in found]

    def _update(self, statement: Update, submission_id: int, values: Mapping[str, object]) -> bool:
        key = _key(submission_id)
        return self._database.write(lambda connection: connection.execute(statement, {**key, **values}).rowcount == 1)


def change_submitter(connection: Connection, user: str, removed: str) -> None:
    """Give the jobs of a user to another author."""
    connection.execute(_CHANGE_AUTHOR, {"user": user, "removed": removed})


def _by(author: str | None) -> list[ColumnElement[bool]]:
    return [] if author is None else [submissions.c.author == author]


def _row(new: NewSubmission) -> dict[str, object]:
    job = new.job
    offset = job.submitted_at.utcoffset() or timedelta()
    return {
        "author": rows.short(new.author, "author"),
        "at": rows.finite(job.submitted_at.timestamp(), "submitted_at"),
        "utc_offset_s": round(offset.total_seconds()),
        "user_name": job.user,
        "name": job.name,
        "program": job.program,
        "command": job.command,
        "nodes": rows.bounded(job.nodes),
        "decision": new.decision,
        "reason": new.reason,
        "record_id": new.record_id,
        "experiment_id": new.experiment_id,
        "component": new.component,
        "score": rows.finite_or_none(new.score, "score"),
        "by_field": None if new.by_field is None else rows.to_json(dict(new.by_field), "by_field"),
        "environment": rows.to_json(dict(new.environment), "environment"),
    }


def _submission(row: RowMapping) -> Submission:
    return Submission(
        id=row["id"],
        author=row["author"],
        job=_job(row),
        decision=cast("Decision", row["decision"]),
        reason=row["reason"],
        record_id=row["record_id"],
        experiment_id=row["experiment_id"],
        component=row["component"],
        score=row["score"],
        by_field=None if row["by_field"] is None else json.loads(row["by_field"]),
        environment=json.loads(row["environment"]),
        job_id=row["job_id"],
        state=row["state"],
        elapsed_s=row["elapsed_s"],
        confirmed=row["confirmed"],
    )


def _job(row: RowMapping) -> NewJob:
    zone = timezone(timedelta(seconds=row["utc_offset_s"]))
    at = datetime.fromtimestamp(row["at"], zone)
    return NewJob(row["user_name"], row["name"], row["program"], row["command"], at, row["nodes"])


def _ended_job(row: RowMapping) -> EndedJob:
    return EndedJob(row["id"], _job(row), cast("Decision", row["decision"]), row["state"], row["elapsed_s"])


def _key(submission_id: int) -> dict[str, object]:
    if not 0 < submission_id <= rows.LARGEST_ID:
        raise _no_submission(submission_id)
    return {"submission": submission_id}


def _no_submission(submission_id: int) -> NotFoundError:
    return NotFoundError(f"submitted job {submission_id} does not exist")
