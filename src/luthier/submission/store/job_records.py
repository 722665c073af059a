"""The jobs that were tuned, in an SQL database."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from sqlalchemy import Connection, RowMapping, bindparam, delete, insert, not_, select, update

from luthier.errors import InvalidInputError, NotFoundError, StoreError
from luthier.store import queries, rows
from luthier.store.base import Record
from luthier.store.database import Database
from luthier.store.json_columns import DAMAGE
from luthier.store.queries import RUN_COUNT
from luthier.store.tables import experiments
from luthier.submission.job import NewJob
from luthier.submission.store.tables import examined_experiments, job_record_changes, job_records
from luthier.submission.store.tuned_jobs import JobChanges, JobRecord, TunedConfiguration

_IS_RECORD = job_records.c.id == bindparam("record")
_OF_EXPERIMENT = job_records.c.experiment_id == bindparam("experiment")
_LONGEST_PAGE = 2**31 - 1
_ALL = select(job_records).order_by(job_records.c.id.desc()).limit(bindparam("limit"))
_GET = select(job_records).where(_IS_RECORD)
_FIND = select(job_records).where(_OF_EXPERIMENT)
_ADD = insert(job_records).returning(job_records.c.id)
_JOB_COLUMNS = ("user_name", "name", "program", "command", "submitted_at", "utc_offset_s", "nodes")
_CHANGED = (
    select(*(job_records.c[name] for name in ("id", "change", "is_active", *_JOB_COLUMNS)))
    .where(job_records.c.change > bindparam("mark"))
    .order_by(job_records.c.change)
)
_IN_USE = _CHANGED.where(job_records.c.is_active)
_MARK = select(job_record_changes.c.number)
_NEXT = update(job_record_changes).values(number=job_record_changes.c.number + 1).returning(job_record_changes.c.number)
_EXPERIMENT_EXISTS = select(experiments.c.id).where(queries.IS_EXPERIMENT).with_for_update(read=True)
_UNEXAMINED = (
    select(experiments, RUN_COUNT)
    .where(experiments.c.status == "finished")
    .where(not_(select(1).where(examined_experiments.c.experiment_id == experiments.c.id).exists()))
    .order_by(experiments.c.id)
    .limit(bindparam("limit"))
)
_IS_EXAMINED = examined_experiments.c.experiment_id == bindparam("experiment")
_EXAMINED = select(examined_experiments).where(_IS_EXAMINED)
_ADD_EXAMINED = insert(examined_experiments)
_FORGET_EXAMINED = delete(examined_experiments).where(_IS_EXAMINED)


class SqlJobRecords:
    """Stores the jobs that were tuned in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, experiment_id: int, job: NewJob, tuned: TunedConfiguration, now: float) -> int:
        """Add the record of an experiment, or replace it."""
        key, columns = queries.key(experiment_id), {**_job_columns(job), **_tuned_columns(tuned)}
        columns["created_at"] = rows.finite(now, "created_at")

        def work(connection: Connection) -> int:
            if connection.execute(_EXPERIMENT_EXISTS, key).first() is None:
                raise rows.no_experiment(experiment_id)
            change = _next_change(connection)
            known = connection.execute(_FIND, key).mappings().first()
            if known is not None:
                _update(connection, known["id"], {**columns, "change": change})
                return int(known["id"])
            new = {**columns, "experiment_id": experiment_id, "change": change, "is_active": True}
            return int(connection.execute(_ADD, new).scalar_one())

        return self._database.write(work)

    def get(self, record_id: int) -> JobRecord:
        """One record."""
        return _record(self._database.read(lambda connection: _row(connection, record_id)))

    def find(self, experiment_id: int) -> JobRecord | None:
        """The record of an experiment, if it has one."""
        key = queries.key(experiment_id)
        row = self._database.read(lambda connection: connection.execute(_FIND, key).mappings().first())
        return None if row is None else _record(row)

    def all(
        self, *, user: str | None = None, before: int | None = None, limit: int | None = None
    ) -> Sequence[JobRecord]:
        """The newest records first."""
        statement = _ALL if user is None else _ALL.where(job_records.c.user_name == user)
        if before is not None:
            statement = statement.where(job_records.c.id < rows.bounded(before))
        most = {"limit": _LONGEST_PAGE if limit is None else rows.positive(limit)}
        found = self._database.read(lambda connection: connection.execute(statement, most).mappings().all())
        return [_record(row) for row in found]

    def changed_since(self, mark: int = 0) -> JobChanges:
        """What changed after a mark."""
        statement = _CHANGED if mark else _IN_USE

        def work(connection: Connection) -> JobChanges:
            newest = int(connection.execute(_MARK).scalar_one())
            changed = connection.execute(statement, {"mark": rows.bounded(mark)}).all()
            newest = max([newest, *(row[1] for row in changed[-1:])])
            used = [(int(number), _job(*columns)) for number, _, is_active, *columns in changed if is_active]
            return JobChanges(newest, used, [int(row[0]) for row in changed if not row[2]])

        return self._database.read(work)

    def withdraw(self, record_id: int, reason: str) -> None:
        """Do not use a record any more."""

        def work(connection: Connection) -> None:
            change = _next_change(connection)
            _row(connection, record_id)
            _update(connection, record_id, {"change": change, "is_active": False, "withdrawn": reason})

        self._database.write(work)

    def restore(self, record_id: int) -> None:
        """Use a record again that was withdrawn."""

        def work(connection: Connection) -> None:
            change = _next_change(connection)
            if _row(connection, record_id)["experiment_id"] is None:
                raise InvalidInputError(f"job record {record_id}: its experiment was deleted; it cannot be used again")
            _update(connection, record_id, {"change": change, "is_active": True, "withdrawn": None})

        self._database.write(work)

    def unexamined(self, *, limit: int = 100) -> Sequence[Record]:
        """The oldest finished experiments of which it is not known whether they make a record."""
        most = {"limit": rows.positive(limit)}
        found = self._database.read(lambda connection: connection.execute(_UNEXAMINED, most).mappings().all())
        return [queries.record(row) for row in found]

    def set_examined(self, experiment_id: int) -> None:
        """Record that an experiment makes no further record."""
        key = queries.key(experiment_id)

        def work(connection: Connection) -> None:
            exists = connection.execute(_EXPERIMENT_EXISTS, key).first() is not None
            if exists and connection.execute(_EXAMINED, key).first() is None:
                connection.execute(_ADD_EXAMINED, {"experiment_id": experiment_id})

        self._database.write(work)


def forget_experiment(connection: Connection, experiment_id: int) -> None:
    """Withdraw the record of an experiment that is being deleted, and remove what it tells about the job."""
    key = queries.key(experiment_id)
    connection.execute(_FORGET_EXAMINED, key)
    if (row := connection.execute(_FIND, key).mappings().first()) is None:
        return
    empty = {"user_name": "", "name": "", "program": "", "command": "", "environment": "{}", "options": "[]"}
    gone = {"change": _next_change(connection), "is_active": False, "experiment_id": None, "config": "{}"}
    _update(connection, row["id"], {**empty, **gone, "withdrawn": row["withdrawn"] or "its experiment was deleted"})


def _next_change(connection: Connection) -> int:
    """The number of the change that this transaction makes; others wait until it has ended."""
    return int(connection.execute(_NEXT).scalar_one())


def _update(connection: Connection, record_id: int, columns: dict[str, object]) -> None:
    connection.execute(update(job_records).where(_IS_RECORD).values(columns), {"record": record_id})


def _row(connection: Connection, record_id: int) -> RowMapping:
    if 0 < record_id <= rows.LARGEST_ID:
        row = connection.execute(_GET, {"record": record_id}).mappings().first()
        if row is not None:
            return row
    raise NotFoundError(f"job record {record_id} is not in this store")


def _job_columns(job: NewJob) -> dict[str, object]:
    """The columns of a job, in which the time is seconds since the epoch and an offset."""
    offset = job.submitted_at.utcoffset() or timedelta()
    return {
        "user_name": job.user,
        "name": job.name,
        "program": job.program,
        "command": job.command,
        "submitted_at": job.submitted_at.timestamp(),
        "utc_offset_s": round(offset.total_seconds()),
        "nodes": rows.bounded(job.nodes),
    }


def _job(
    user: str, name: str, program: str, command: str, submitted_at: float, utc_offset_s: int, nodes: int
) -> NewJob:
    zone = timezone(timedelta(seconds=utc_offset_s))
    return NewJob(user, name, program, command, datetime.fromtimestamp(submitted_at, zone), nodes)


def _tuned_columns(tuned: TunedConfiguration) -> dict[str, object]:
    values = {name: getattr(tuned, name) for name in ("default_value", "best_value", "speedup")}
    return {
        "component": tuned.component,
        "config": rows.to_json(dict(tuned.config), "config"),
        "environment": rows.to_json(dict(tuned.environment), "environment"),
        "options": json.dumps(tuned.options),
        "measure": tuned.measure,
        **{name: rows.finite(value, name) for name, value in values.items()},
    }


def _record(row: RowMapping) -> JobRecord:
    try:
        tuned = TunedConfiguration(
            component=row["component"],
            config=json.loads(row["config"]),
            environment=json.loads(row["environment"]),
            options=tuple(json.loads(row["options"])),
            **{name: row[name] for name in ("measure", "default_value", "best_value", "speedup")},
        )
        job = _job(*(row[name] for name in _JOB_COLUMNS))
    except (*DAMAGE, InvalidInputError) as error:
        raise StoreError(f"job record {row['id']} is damaged: {error}") from None
    return JobRecord(row["id"], row["experiment_id"], row["created_at"], job, tuned, row["withdrawn"])
