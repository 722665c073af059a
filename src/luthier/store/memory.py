"""A store in memory."""

import threading
from collections.abc import Mapping, Sequence

from luthier.store import rows
from luthier.store.base import Machine, Owner, Record, RequestedBy, Status, StopRequest
from luthier.store.batch_jobs import jobs_text
from luthier.store.periods import with_period
from luthier.store.rows import NOT_ENDED, ExperimentRow, RunRow
from luthier.store.stop_requests import after_claim, after_close, after_request, stop_columns, stop_request_from
from luthier.trial import BatchJob, Json, Run


class MemoryStore:
    """Stores experiments and their runs in memory, for the lifetime of the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._experiments: dict[int, ExperimentRow] = {}
        self._runs: dict[int, dict[int, RunRow]] = {}
        self._events: dict[int, set[tuple[str, int | None]]] = {}
        self._requests: dict[tuple[str, str], int] = {}

    def create(self, name: str, settings: Mapping[str, Json], now: float, origin: RequestedBy | None = None) -> Record:
        """Add an experiment without an owner, unless the origin's author has used its key before."""
        row = rows.new_experiment(name, settings, now, origin)
        with self._lock:
            number = len(self._experiments) + 1
            if row["request_key"] is not None:
                earlier = self._requests.setdefault((row["author"], row["request_key"]), number)
                if earlier != number:
                    return self._record(earlier)
            self._experiments[number] = ExperimentRow(id=number, **row)
            self._runs[number] = {}
            self._events[number] = set()
            return self._record(number)

    def experiments(self) -> Sequence[Record]:
        """Every experiment, oldest first."""
        with self._lock:
            return [self._record(number) for number in self._experiments]

    def experiment(self, experiment_id: int) -> Record:
        """One experiment."""
        with self._lock:
            return self._record(experiment_id)

    def runs(self, experiment_id: int, since: int = 0) -> Sequence[Run]:
        """The runs that were submitted or ended at event `since` or later, in order of submission."""
        with self._lock:
            self._row(experiment_id)
            return [
                rows.run_from(row)
                for row in sorted(self._runs[experiment_id].values(), key=lambda row: row["submit_order"])
                if max(row["submit_order"], row["finish_order"] or 0) >= since
            ]

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
        """Become the owner if the owner is still `instead_of` and the status is still `status`."""
        with self._lock:
            row = self._row(experiment_id)
            if rows.owner_from(row) != instead_of or status not in {None, row["status"]}:
                return False
            self._experiments[experiment_id] = {
                **row,
                **rows.owner_columns(owner),
                "seen_at": rows.finite(now, "seen_at"),
                "jobs": None,
                "status": "running",
                "periods": with_period(row["periods"], row["seen_at"], now, machine),
                "settings": row["settings"] if settings is None else rows.to_json(settings, "settings"),
                **stop_columns(
                    after_claim(
                        stop_request_from(row), had_owner=instead_of is not None, has_settings=settings is not None
                    )
                ),
            }
            return True

    def heartbeat(
        self, experiment_id: int, owner: Owner, now: float, jobs: Mapping[int, BatchJob] | None = None
    ) -> StopRequest | None:
        """Record that the owner is alive, and its batch jobs; return the stop request, if there is one."""
        with self._lock:
            row = self._owned_row(experiment_id, owner)
            row["seen_at"] = rows.finite(now, "seen_at")
            if jobs is not None:
                row["jobs"] = jobs_text(jobs)
            return stop_request_from(row)

    def request_stop(self, experiment_id: int, how: StopRequest = "drain") -> None:
        """Ask the owner of the experiment to stop; a queued experiment becomes stopped."""
        with self._lock:
            row = self._row(experiment_id)
            row["status"], request = after_request(row["status"], stop_request_from(row), how)
            row.update(stop_columns(request))  # type: ignore[typeddict-item]  # a part of its columns

    def append(self, experiment_id: int, run: Run, owner: Owner | None = None) -> None:
        """Record a run that is about to be submitted."""
        rows.refuse_ended(run)
        new = rows.submission_row(run)
        with self._lock:
            self._owned_row(experiment_id, owner)
            runs = self._runs[experiment_id]
            if run.number in runs:
                if not rows.same_submission(runs[run.number], new):
                    raise rows.number_taken(experiment_id, run.number)
                return
            self._place(experiment_id, "submit_order", run.submit_order)
            runs[run.number] = RunRow(**new, **NOT_ENDED)

    def finish(self, experiment_id: int, run: Run, owner: Owner | None = None) -> None:
        """Record how a run ended; only the first ending counts."""
        submission, ending = rows.submission_row(run), rows.ending_row(run)
        with self._lock:
            self._owned_row(experiment_id, owner)
            row = self._runs[experiment_id].get(run.number)
            if row is None:
                raise rows.no_run(experiment_id, run.number)
            if not rows.same_submission(row, submission):
                raise rows.number_taken(experiment_id, run.number)
            if row["outcome"] is not None:
                return
            self._place(experiment_id, "finish_order", run.finish_order)
            self._runs[experiment_id][run.number] = {**row, **ending}

    def close(self, experiment_id: int, owner: Owner, status: Status, result: Mapping[str, Json] | None) -> None:
        """Give up ownership, and record the status and the result."""
        text = None if result is None else rows.to_json(result, "result")
        with self._lock:
            row = self._row(experiment_id)
            if rows.owner_from(row) != owner:
                if rows.is_same_close(row, status, text):
                    return
                raise rows.not_owned(experiment_id, rows.owner_from(row))
            self._experiments[experiment_id] = {
                **row,
                **rows.owner_columns(None),
                "status": status,
                "jobs": None,
                "result": text,
                **stop_columns(after_close(stop_request_from(row), status)),
            }

    def _row(self, experiment_id: int) -> ExperimentRow:
        try:
            return self._experiments[experiment_id]
        except KeyError:
            raise rows.no_experiment(experiment_id) from None

    def _owned_row(self, experiment_id: int, owner: Owner | None) -> ExperimentRow:
        row = self._row(experiment_id)
        if owner is not None and rows.owner_from(row) != owner:
            raise rows.not_owned(experiment_id, rows.owner_from(row))
        return row

    def _place(self, experiment_id: int, what: str, order: int | None) -> None:
        """Take a place in the history, if it is free."""
        if (what, order) in self._events[experiment_id]:
            raise rows.order_taken(experiment_id, what, order)
        self._events[experiment_id].add((what, order))

    def _record(self, experiment_id: int) -> Record:
        return rows.record_from(self._row(experiment_id), len(self._runs.get(experiment_id, {})))
