"""A store in an SQL database."""

from collections.abc import Mapping, Sequence
from typing import cast

from sqlalchemy import (
    Boolean,
    Connection,
    RowMapping,
    Text,
    and_,
    bindparam,
    func,
    insert,
    select,
    union,
    update,
)
from sqlalchemy.exc import IntegrityError

from luthier.store import json_columns, queries, rows
from luthier.store.base import ENDED, Machine, Owner, Record, RequestedBy, Status, StopRequest
from luthier.store.batch_jobs import jobs_text
from luthier.store.database import Database
from luthier.store.periods import with_period
from luthier.store.queries import IS_EXPERIMENT, IS_OWNER, RUN_COUNT
from luthier.store.rows import ExperimentRow, RunRow
from luthier.store.stop_requests import after_claim, after_request, stop_request_from
from luthier.store.tables import experiments, runs
from luthier.trial import BatchJob, Json, Run

_IS_RUN = and_(runs.c.experiment_id == bindparam("experiment"), runs.c.number == bindparam("run"))
_RECORDS = select(experiments, RUN_COUNT).order_by(experiments.c.id)
_RECORD = _RECORDS.where(IS_EXPERIMENT)
_REQUESTED = _RECORDS.where(
    experiments.c.author == bindparam("author"), experiments.c.request_key == bindparam("request_key")
)
_RUNS = select(runs).where(runs.c.experiment_id == bindparam("experiment"))
_NUMBERS = select(runs.c.number).where(runs.c.experiment_id == bindparam("experiment"))
# Each half uses its own index; with an "or", SQLite would read every run.
_RUNS_SINCE = _RUNS.where(
    runs.c.number.in_(
        union(*(_NUMBERS.where(order >= bindparam("since")) for order in (runs.c.submit_order, runs.c.finish_order)))
    )
)
_RUN = select(runs).where(_IS_RUN)
_CREATE = insert(experiments)
_APPEND = insert(runs)
_CLAIM = (
    update(experiments)
    .where(
        IS_EXPERIMENT,
        IS_OWNER,
        experiments.c.status == func.coalesce(bindparam("was_status", type_=Text), experiments.c.status),
    )
    .values(
        owner_host=bindparam("owner_host"),
        owner_pid=bindparam("owner_pid"),
        owner_started=bindparam("owner_started"),
        owner_claim=bindparam("owner_claim"),
        seen_at=bindparam("now"),
        jobs=None,
        status="running",
        stop_requested=bindparam("now_stop"),
        kill_requested=bindparam("now_kill"),
        periods=bindparam("now_periods"),
        settings=bindparam("now_settings"),
    )
)
_HEARTBEAT = update(experiments).where(IS_EXPERIMENT, IS_OWNER).values(seen_at=bindparam("now"))
_HEARTBEAT_AND_JOBS = _HEARTBEAT.values(jobs=bindparam("new_jobs"))
_REQUEST_STOP = (
    update(experiments)
    .where(IS_EXPERIMENT)
    .values(stop_requested=bindparam("now_stop"), kill_requested=bindparam("now_kill"), status=bindparam("now_status"))
)
_CLOSE = (
    update(experiments)
    .where(IS_EXPERIMENT, IS_OWNER)
    .values(
        **rows.owner_columns(None),
        stop_requested=False,
        kill_requested=and_(queries.WANTS_VERIFICATION, bindparam("keeps_request", type_=Boolean)),
        jobs=None,
        status=bindparam("new_status"),
        result=bindparam("new_result"),
    )
)
_SUBMITTED = [name for name in rows.SubmissionRow.__annotations__ if name != "number"]
_FINISH = (
    update(runs)
    .where(
        _IS_RUN,
        runs.c.outcome.is_(None),
        *(runs.c[name] == bindparam(f"was_{name}", type_=runs.c[name].type) for name in _SUBMITTED),
    )
    .values({name: bindparam(name) for name in rows.NOT_ENDED})
)


class SqlStore:
    """Stores experiments and their runs in a database; safe to use from several threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, name: str, settings: Mapping[str, Json], now: float, origin: RequestedBy | None = None) -> Record:
        """Add an experiment without an owner, unless the origin's author has used its key before."""
        row = rows.new_experiment(name, settings, now, origin)
        request = {"author": row["author"], "request_key": row["request_key"]}

        def work(connection: Connection) -> int:
            key = connection.execute(_CREATE, dict(row)).inserted_primary_key
            return cast("tuple[int]", key)[0]

        try:
            number = self._database.write(work, repeatable=row["request_key"] is not None)
        except IntegrityError:  # the key is taken
            earlier = self._database.read(lambda connection: connection.execute(_REQUESTED, request).mappings().first())
            if earlier is None:  # that experiment has just been deleted
                return self.create(name, settings, now, origin)
            return queries.record(earlier)
        return rows.record_from(ExperimentRow(id=number, **row), 0)

    def experiments(self) -> Sequence[Record]:
        """Every experiment, oldest first."""
        found = self._database.read(lambda connection: connection.execute(_RECORDS).mappings().all())
        return [queries.record(row) for row in found]

    def experiment(self, experiment_id: int) -> Record:
        """One experiment."""
        key = queries.key(experiment_id)
        row = self._database.read(lambda connection: connection.execute(_RECORD, key).mappings().first())
        if row is None:
            raise rows.no_experiment(experiment_id)
        return queries.record(row)

    def runs(self, experiment_id: int, since: int = 0) -> Sequence[Run]:
        """The runs that were submitted or ended at event `since` or later, in order of submission."""
        wanted, parameters = _RUNS, queries.key(experiment_id)
        if since > 0:
            wanted, parameters = _RUNS_SINCE, {**parameters, "since": rows.bounded(since)}

        def work(connection: Connection) -> list[Run]:
            # The result first: with PostgreSQL, a process may end the experiment between two statements.
            result = queries.state(connection, experiment_id)["result"] if since <= 0 else None
            found = connection.execute(wanted, parameters).mappings().all()
            json_columns.check_runs(result, found)
            if since > 0 and not found:
                queries.state(connection, experiment_id)
            return [rows.run_from(cast("RunRow", row)) for row in found]

        return sorted(self._database.read(work), key=lambda run: run.submit_order)

    def claim(
        self,
        experiment_id: int,
        owner: Owner,
        now: float,
        instead_of: Owner | None,
        status: Status | None = None,
        machine: Machine | None = None,
        settings: Mapping[str, Json] | None = None,
    ) -> bool:
        """Become the owner if the owner is still `instead_of`; of several simultaneous claims exactly one succeeds."""
        parameters = {
            **queries.key(experiment_id),
            **rows.owner_columns(owner),
            **queries.was(instead_of),
            "was_status": status,
            "now": rows.finite(now, "seen_at"),
        }
        text = None if settings is None else rows.to_json(settings, "settings")

        def work(connection: Connection) -> bool:
            row = queries.locked(connection, experiment_id)
            request = after_claim(
                stop_request_from(row), had_owner=instead_of is not None, has_settings=text is not None
            )
            changed = {
                **queries.now_requested(request),
                "now_settings": row["settings"] if text is None else text,
                "now_periods": with_period(row["periods"], row["seen_at"], now, machine),
            }
            return connection.execute(_CLAIM, {**parameters, **changed}).rowcount == 1

        return self._database.write(work, repeatable=False)

    def heartbeat(
        self, experiment_id: int, owner: Owner, now: float, jobs: Mapping[int, BatchJob] | None = None
    ) -> StopRequest | None:
        """Record that the owner is alive, and its batch jobs; return the stop request, if there is one."""
        parameters = {**queries.key(experiment_id), **queries.was(owner), "now": rows.finite(now, "seen_at")}
        if jobs is not None:
            parameters["new_jobs"] = jobs_text(jobs)

        def work(connection: Connection) -> StopRequest | None:
            statement = _HEARTBEAT if jobs is None else _HEARTBEAT_AND_JOBS
            changed = connection.execute(statement, parameters).rowcount
            state = queries.state(connection, experiment_id)
            if changed == 0:
                raise rows.not_owned(experiment_id, rows.owner_from(state))
            return stop_request_from(state)

        return self._database.write(work)

    def request_stop(self, experiment_id: int, how: StopRequest = "drain") -> None:
        """Ask the owner of the experiment to stop; a queued experiment becomes stopped."""

        def work(connection: Connection) -> None:
            row = queries.locked(connection, experiment_id)
            status, request = after_request(row["status"], stop_request_from(row), how)
            changed = {**queries.now_requested(request), "now_status": status}
            connection.execute(_REQUEST_STOP, {**queries.key(experiment_id), **changed})

        self._database.write(work)

    def append(self, experiment_id: int, run: Run, owner: Owner | None = None) -> None:
        """Record a run that is about to be submitted; recording the same run again changes nothing."""
        rows.refuse_ended(run)
        queries.key(experiment_id)
        new = rows.submission_row(run)
        parameters = {"experiment_id": experiment_id, **new}

        def work(connection: Connection) -> None:
            queries.require_owner(connection, experiment_id, owner)
            connection.execute(_APPEND, parameters)

        try:
            self._database.write(work)
        except IntegrityError:
            row = self._run(experiment_id, run.number)
            if row is None:
                raise rows.order_taken(experiment_id, "submit_order", run.submit_order) from None
            if not rows.same_submission(row, new):
                raise rows.number_taken(experiment_id, run.number) from None

    def finish(self, experiment_id: int, run: Run, owner: Owner | None = None) -> None:
        """Record how a run ended; only the first ending counts."""
        submission = rows.submission_row(run)
        was = {f"was_{name}": value for name, value in submission.items()}
        parameters = {**queries.key(experiment_id), **was, "run": run.number, **rows.ending_row(run)}

        def work(connection: Connection) -> int:
            queries.require_owner(connection, experiment_id, owner)
            return connection.execute(_FINISH, parameters).rowcount

        try:
            if self._database.write(work) == 1:
                return
        except IntegrityError:
            raise rows.order_taken(experiment_id, "finish_order", run.finish_order) from None
        row = self._run(experiment_id, run.number)
        if row is None:
            raise rows.no_run(experiment_id, run.number)
        if not rows.same_submission(row, submission):
            raise rows.number_taken(experiment_id, run.number)

    def close(self, experiment_id: int, owner: Owner, status: Status, result: Mapping[str, Json] | None) -> None:
        """Give up ownership, clear any stop request, and record the status and the result."""
        text = None if result is None else rows.to_json(result, "result")
        key = queries.key(experiment_id)
        parameters = {**key, **queries.was(owner), "new_status": status, "keeps_request": status not in ENDED}

        def work(connection: Connection) -> None:
            row, known = queries.locked(connection, experiment_id), connection.execute(_RUNS, key).mappings()
            stored = None if text is None else json_columns.sealed(text, row, known)
            if connection.execute(_CLOSE, {**parameters, "new_result": stored}).rowcount == 1:
                return
            state = queries.state(connection, experiment_id)
            if not rows.is_same_close(state, status, stored):
                raise rows.not_owned(experiment_id, rows.owner_from(state))

        self._database.write(work)

    def dispose(self) -> None:
        """Close the connection; the next call opens another one."""
        self._database.dispose()

    def _run(self, experiment_id: int, number: int) -> RunRow | None:
        def work(connection: Connection) -> RowMapping | None:
            queries.state(connection, experiment_id)
            return connection.execute(_RUN, {**queries.key(experiment_id), "run": number}).mappings().first()

        return cast("RunRow | None", self._database.read(work))
