"""The queue of experiments for workers, in an SQL database."""

from collections.abc import Mapping, Sequence

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Text,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    update,
)

from luthier.errors import InvalidInputError
from luthier.store import queries, rows
from luthier.store.base import ENDED, Owner, Record, Status
from luthier.store.batch_jobs import jobs_from
from luthier.store.database import Database
from luthier.store.explanations import DELETE_EXPLANATION
from luthier.store.queries import IS_EXPERIMENT, IS_OWNER, RUN_COUNT
from luthier.store.server_store import Changes
from luthier.store.stop_requests import StopColumns, stop_request_from
from luthier.store.tables import experiments, runs, workers
from luthier.store.wing_tables import forget_experiment
from luthier.trial import OUTCOME_NAMES, Json

_SHORT = [column for column in experiments.c if column.name not in {"settings", "source", "jobs", "periods"}]
_NOT_READ = tuple(null().label(name) for name in ("source", "jobs", "periods"))
_LISTED = select(*_SHORT, experiments.c.settings, *_NOT_READ, RUN_COUNT).order_by(experiments.c.id.desc())
_WAITING = (
    select(*_SHORT, literal("{}", Text).label("settings"), *_NOT_READ, RUN_COUNT)
    .where(experiments.c.status.in_(["queued", "running"]), experiments.c.unattended)
    .order_by(experiments.c.id)
)
_ENQUEUE = (
    update(experiments)
    .where(IS_EXPERIMENT, IS_OWNER, experiments.c.status.not_in(list(ENDED)))
    .values(
        status="queued",
        unattended=True,
        stop_requested=False,
        kill_requested=queries.WANTS_VERIFICATION,
        **rows.owner_columns(None),
    )
)
_ENQUEUE_AGAIN = (
    update(experiments)
    .where(IS_EXPERIMENT, IS_OWNER, experiments.c.status == bindparam("was_status"))
    .values(
        status="queued",
        unattended=True,
        stop_requested=False,
        kill_requested=False,
        settings=bindparam("now_settings"),
        **rows.owner_columns(None),
    )
)
_SHARE = update(experiments).where(IS_EXPERIMENT).values(shared=bindparam("now_shared"))
_LOCK = select(experiments.c.id).where(IS_EXPERIMENT, IS_OWNER).with_for_update()
_DELETE_RUNS = delete(runs).where(runs.c.experiment_id == bindparam("experiment"))
_DELETE = delete(experiments).where(IS_EXPERIMENT)


def _last(order: ColumnElement[int]) -> ColumnElement[int]:
    newest = select(func.max(order)).where(runs.c.experiment_id == bindparam("experiment")).scalar_subquery()
    return func.coalesce(newest, -1)


_CHANGES = select(
    experiments.c.status,
    experiments.c.stop_requested,
    experiments.c.kill_requested,
    case((experiments.c.status == "running", experiments.c.jobs)),  # others need not be read up to that column
    _last(runs.c.submit_order),
    _last(runs.c.finish_order),
).where(IS_EXPERIMENT)


_IS_WORKER = and_(*(workers.c[name] == bindparam(f"worker_{name}") for name in ("host", "pid", "started")))
_SEEN = update(workers).where(_IS_WORKER).values(seen_at=bindparam("now"))
_NEW_WORKER = insert(workers)
_FORGET = delete(workers).where(_IS_WORKER)
_FORGET_OLD = delete(workers).where(workers.c.seen_at < bindparam("before"))
_FORGOTTEN_AFTER_S = 24 * 3600.0


class SqlQueue:
    """Lists, queues, shares and deletes the experiments in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def records(
        self,
        *,
        author: str | None = None,
        status: Status | Sequence[Status] | None = None,
        text: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Sequence[Record]:
        """The newest experiments first, without their `source` and batch jobs."""
        wanted = _LISTED.limit(rows.positive(limit))
        if author is not None:
            wanted = wanted.where(or_(experiments.c.author == author, experiments.c.shared))
        if status is not None:
            wanted = wanted.where(experiments.c.status.in_([status] if isinstance(status, str) else status))
        if text is not None:
            wanted = wanted.where(experiments.c.name.icontains(rows.short(text, "text"), autoescape=True))
        if before is not None:
            wanted = wanted.where(experiments.c.id < rows.bounded(before))
        return self._records(wanted)

    def outcomes(self, *, limit: int = 100) -> Mapping[str, int]:
        """The number of runs of the newest experiments by outcome."""
        newest = select(experiments.c.id).order_by(experiments.c.id.desc()).limit(rows.positive(limit))
        wanted = select(runs.c.outcome, func.count()).where(runs.c.experiment_id.in_(newest)).group_by(runs.c.outcome)
        found = self._database.read(lambda connection: connection.execute(wanted).all())
        nothing = dict.fromkeys(("running", *OUTCOME_NAMES.values()), 0)
        return nothing | {outcome or "running": count for outcome, count in found}

    def waiting(self) -> Sequence[Record]:
        """The unattended experiments that are `queued` or `running`, oldest first, without settings and `source`."""
        return self._records(_WAITING)

    def enqueue(self, experiment_id: int, instead_of: Owner | None) -> bool:
        """Queue an experiment that has not ended for the workers."""
        parameters = {**queries.key(experiment_id), **queries.was(instead_of)}

        def work(connection: Connection) -> bool:
            if connection.execute(_ENQUEUE, parameters).rowcount == 1:
                return True
            status = queries.state(connection, experiment_id)["status"]
            if status in ENDED:
                raise InvalidInputError(f"experiment {experiment_id} {ENDED[status]}; it cannot be resumed")
            return False

        return self._database.write(work, repeatable=False)

    def enqueue_again(self, record: Record, settings: Mapping[str, Json]) -> bool:
        """Queue an experiment with new settings, also one that has ended."""
        parameters = {
            **queries.key(record.id),
            **queries.was(record.owner),
            "was_status": record.status,
            "now_settings": rows.to_json(settings, "settings"),
        }

        def work(connection: Connection) -> bool:
            queries.state(connection, record.id)
            return connection.execute(_ENQUEUE_AGAIN, parameters).rowcount == 1

        return self._database.write(work, repeatable=False)

    def share(self, experiment_id: int, *, shared: bool) -> None:
        """Share an experiment with all users, or stop sharing it."""
        parameters = {**queries.key(experiment_id), "now_shared": shared}
        if self._database.write(lambda connection: connection.execute(_SHARE, parameters).rowcount) == 0:
            raise rows.no_experiment(experiment_id)

    def delete(self, experiment_id: int, instead_of: Owner | None) -> bool:
        """Delete an experiment and its runs."""
        key = queries.key(experiment_id)

        def work(connection: Connection) -> bool:
            if connection.execute(_LOCK, {**key, **queries.was(instead_of)}).first() is None:
                queries.state(connection, experiment_id)
                return False
            connection.execute(_DELETE_RUNS, key)
            connection.execute(DELETE_EXPLANATION, key)
            forget_experiment(connection, experiment_id)
            connection.execute(_DELETE, key)
            return True

        return self._database.write(work, repeatable=False)

    def changes(self, experiment_id: int) -> Changes:
        """What shows whether something changed."""
        key = queries.key(experiment_id)

        def work(connection: Connection) -> Changes:
            row = connection.execute(_CHANGES, key).first()
            if row is None:
                raise rows.no_experiment(experiment_id)
            status, stop, kill, jobs, submitted, finished = row
            request = stop_request_from(StopColumns(stop_requested=bool(stop), kill_requested=bool(kill)))
            return Changes(str(status), 1 + max(submitted, finished), request, jobs_from(jobs))

        return self._database.read(work)

    def note_worker(self, worker: Owner, now: float) -> None:
        """Record that a worker is alive; those that have not been seen for a day are forgotten."""
        seen = {"host": worker.host, "pid": worker.pid, "started": worker.started}
        key = {f"worker_{name}": value for name, value in seen.items()}
        finite = rows.finite(now, "seen_at")

        def work(connection: Connection) -> None:
            connection.execute(_FORGET_OLD, {"before": finite - _FORGOTTEN_AFTER_S})
            if connection.execute(_SEEN, {**key, "now": finite}).rowcount == 0:
                connection.execute(_NEW_WORKER, {**seen, "seen_at": finite})

        self._database.write(work)

    def forget_worker(self, worker: Owner) -> None:
        """Record that a worker has ended."""
        key = {"worker_host": worker.host, "worker_pid": worker.pid, "worker_started": worker.started}
        self._database.write(lambda connection: connection.execute(_FORGET, key))

    def workers(self) -> Sequence[tuple[Owner, float]]:
        """The workers, each with the time at which it was last seen."""
        found = self._database.read(lambda connection: connection.execute(select(workers)).all())
        return [(Owner(host, pid, started), seen_at) for host, pid, started, seen_at in found]

    def _records(self, wanted: Executable) -> Sequence[Record]:
        found = self._database.read(lambda connection: connection.execute(wanted).mappings().all())
        return [queries.record(row) for row in found]
