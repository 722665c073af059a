"""Experiments and runs as flat rows, which every store uses: checked before writing, converted after reading."""

import json
import math
import uuid
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypedDict, cast, get_args

from luthier.errors import InUseError, InvalidInputError, NotFoundError, StoreError
from luthier.store.base import Owner, Record, RequestedBy, Status
from luthier.store.batch_jobs import jobs_from
from luthier.store.json_columns import DAMAGE, mapping, numbers, result_from
from luthier.store.periods import periods_from
from luthier.store.stop_requests import StopColumns, stop_request_from
from luthier.trial import (
    NO_METRICS,
    Completed,
    Config,
    Failed,
    Json,
    Lost,
    Outcome,
    Pruned,
    Purpose,
    Run,
    TimedOut,
    Value,
    outcome_name,
)

LARGEST_ID = 2**31 - 1
"""The largest row number that every database supports."""

LONGEST_NAME = 200
"""The maximum length of a text in an index; PostgreSQL allows 2,700 bytes per row."""


class OwnerColumns(TypedDict):
    """An owner; all are None if there is no owner."""

    owner_host: str | None
    owner_pid: int | None
    owner_started: str | None
    owner_claim: str | None


class StateRow(OwnerColumns, StopColumns):
    """The part of an experiment that changes while it runs."""

    status: str
    seen_at: float | None
    result: str | None
    jobs: str | None


class NewExperimentRow(StateRow):
    """An experiment before the store has given it a number."""

    uid: str
    name: str
    created_at: float
    settings: str
    unattended: bool
    author: str
    shared: bool
    source: str | None
    request_key: str | None
    periods: str | None


class ExperimentRow(NewExperimentRow):
    """An experiment without its runs."""

    id: int


class SubmissionRow(TypedDict):
    """The part of a run that is known before it starts."""

    number: int
    trial: int
    purpose: str
    config: str
    submitted_at: float
    submit_order: int
    uid: str


class EndingRow(TypedDict):
    """The part of a run that is known when it has ended."""

    finish_order: int | None
    started_at: float | None
    duration_s: float | None
    outcome: str | None
    reason: str | None
    value: float | None
    others: str | None
    at_least: float | None
    metrics: str | None
    logs: str | None
    batch_job: str | None


class RunRow(SubmissionRow, EndingRow):
    """A whole run."""


NOT_ENDED = cast("EndingRow", dict.fromkeys(EndingRow.__annotations__))


def new_experiment(name: str, settings: Mapping[str, Json], now: float, origin: RequestedBy | None) -> NewExperimentRow:
    """The row of a new experiment."""
    key = None if origin is None else origin.key
    return NewExperimentRow(
        uid=uuid.uuid4().hex,
        name=name,
        created_at=finite(now, "created_at"),
        settings=to_json(settings, "settings"),
        status="running" if origin is None else "queued",
        stop_requested=False,
        kill_requested=False,
        seen_at=None,
        result=None,
        jobs=None,
        unattended=origin is not None,
        author="" if origin is None else short(origin.author, "author"),
        shared=False,
        source=None if origin is None else origin.source,
        request_key=None if key is None else short(key, "request key"),
        periods=None,
        **owner_columns(None),
    )


def owner_columns(owner: Owner | None) -> OwnerColumns:
    """The columns of an owner; all None for no owner."""
    if owner is None:
        return OwnerColumns(owner_host=None, owner_pid=None, owner_started=None, owner_claim=None)
    return OwnerColumns(
        owner_host=owner.host, owner_pid=owner.pid, owner_started=owner.started, owner_claim=owner.claim
    )


def owner_from(row: OwnerColumns) -> Owner | None:
    """The owner in a row."""
    host, pid, started = row["owner_host"], row["owner_pid"], row["owner_started"]
    return (
        None if host is None or pid is None or started is None else Owner(host, pid, started, row["owner_claim"] or "")
    )


def record_from(row: ExperimentRow, runs: int) -> Record:
    """The experiment in a row, with the number of its runs.

    A damaged row becomes a failed experiment without settings, so that the others can still be listed.
    """
    try:
        return _record(row, runs)
    except DAMAGE:
        said: Json = f"the record of experiment {row['id']} is damaged; restore the store from a backup"
        return Record(
            id=row["id"],
            uid=str(row["uid"]),
            name=str(row["name"]),
            created_at=0.0,
            settings={},
            status="failed",
            result={"ending": said, "verdict": said},
            runs=runs,
        )


def _record(row: ExperimentRow, runs: int) -> Record:
    _check_types(row, ExperimentRow)
    if row["status"] not in get_args(Status):
        raise ValueError("status")
    return Record(
        id=row["id"],
        uid=row["uid"],
        name=row["name"],
        created_at=row["created_at"],
        settings=mapping(row["settings"]),
        status=cast("Status", row["status"]),
        stop_requested=stop_request_from(row),
        owner=owner_from(row),
        seen_at=row["seen_at"],
        result=result_from(row, runs),
        runs=runs,
        unattended=row["unattended"],
        author=row["author"],
        shared=row["shared"],
        source=row["source"],
        jobs=jobs_from(row["jobs"]),
        periods=periods_from(row["periods"]),
    )


def submission_row(run: Run) -> SubmissionRow:
    """The columns of a run that `append` writes."""
    return SubmissionRow(
        number=run.number,
        trial=run.trial,
        purpose=run.purpose,
        config=to_json(run.config, f"run {run.number}: config"),
        submitted_at=finite(run.submitted_at, f"run {run.number}: submitted_at"),
        submit_order=run.submit_order,
        uid=run.uid,
    )


def refuse_ended(run: Run) -> None:
    """Raise for a run that is to be appended but has fields of its ending, which would be lost."""
    ending = (run.finish_order, run.started_at, run.duration_s, run.outcome, run.logs, run.batch_job)
    if run.metrics or any(part is not None for part in ending):
        raise StoreError(
            f"run {run.number}: it ended before it was recorded; append it without its ending, then finish it"
        )


def ending_row(run: Run) -> EndingRow:
    """The columns of a run that `finish` writes."""
    where = f"run {run.number}"
    if run.outcome is None or run.finish_order is None:
        raise StoreError(f"{where}: it has no outcome or no finish_order; finish a run when it has ended")
    outcome = run.outcome
    return EndingRow(
        finish_order=run.finish_order,
        started_at=finite_or_none(run.started_at, f"{where}: started_at"),
        duration_s=finite_or_none(run.duration_s, f"{where}: duration_s"),
        outcome=outcome_name(outcome),
        reason=None if isinstance(outcome, Completed) else outcome.reason,
        value=finite(outcome.value, f"{where}: value") if isinstance(outcome, Completed) else None,
        others=_others(outcome, where) if isinstance(outcome, Completed) and outcome.others else None,
        at_least=finite_or_none(outcome.at_least, f"{where}: at_least")
        if isinstance(outcome, TimedOut | Pruned)
        else None,
        metrics=to_json(run.metrics, f"{where}: metrics") if run.metrics else None,
        logs=run.logs,
        batch_job=run.batch_job,
    )


def run_from(row: RunRow) -> Run:
    """The run in a row; `StoreError` if it is damaged."""
    try:
        return _run(row)
    except DAMAGE:
        raise StoreError(
            f"run {row['number']} of this experiment is damaged; restore the store from a backup"
        ) from None


def _run(row: RunRow) -> Run:
    _check_types(row, RunRow)
    if row["purpose"] not in get_args(Purpose):
        raise ValueError("purpose")
    metrics = {} if row["metrics"] is None else mapping(row["metrics"])
    numbers(metrics.values())
    return Run(
        number=row["number"],
        trial=row["trial"],
        purpose=cast("Purpose", row["purpose"]),
        config=Config(cast("Mapping[str, Value]", mapping(row["config"]))),
        submitted_at=row["submitted_at"],
        submit_order=row["submit_order"],
        finish_order=row["finish_order"],
        started_at=row["started_at"],
        duration_s=row["duration_s"],
        outcome=_outcome(row),
        metrics=MappingProxyType(cast("dict[str, float]", metrics)) if metrics else NO_METRICS,
        logs=row["logs"],
        uid=row["uid"],
        batch_job=row["batch_job"],
    )


def same_submission(row: RunRow, submission: SubmissionRow) -> bool:
    """Whether the run in a row was submitted with these values."""
    return all(row[name] == value for name, value in submission.items())  # type: ignore[literal-required]  # its keys


def is_same_close(row: StateRow, status: Status, result: str | None) -> bool:
    """Whether an experiment was closed before with the same status and result, so that nothing changes."""
    return owner_from(row) is None and row["status"] == status and row["result"] == result


def to_json(value: Mapping[str, Json] | Config, where: str) -> str:
    """The value as JSON text: keys stay in order, whole numbers stay whole, every finite float comes back exactly."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"{where}: {error}; the store accepts only JSON values with finite numbers") from error


def no_experiment(experiment_id: int) -> NotFoundError:
    """The error for an unknown experiment."""
    return NotFoundError(f"experiment {experiment_id} is not in this store; to see all experiments: luthier list")


def not_owned(experiment_id: int, owner: Owner | None) -> InUseError:
    """The error when an experiment no longer belongs to the process that works on it."""
    now = "no process" if owner is None else f"process {owner.pid} on {owner.host}"
    return InUseError(f"experiment {experiment_id} now belongs to {now}; this process must not change it")


def number_taken(experiment_id: int, number: int) -> StoreError:
    """The error when a different run is recorded with the same number."""
    return StoreError(f"experiment {experiment_id}: number {number} belongs to another run; read its history again")


def order_taken(experiment_id: int, what: str, order: int | None) -> StoreError:
    """The error when two events have the same place in the history."""
    return StoreError(f"experiment {experiment_id}: {what} {order} belongs to another run; read its history again")


def no_run(experiment_id: int, number: int) -> StoreError:
    """The error when a run ends that was not recorded."""
    return StoreError(f"experiment {experiment_id}: run {number} was not recorded; append it before it is submitted")


def _outcome(row: EndingRow) -> Outcome | None:
    reason = row["reason"] or ""
    match row["outcome"]:
        case None:
            return None
        case "completed" if row["value"] is not None:
            return Completed(row["value"], () if row["others"] is None else numbers(json.loads(row["others"])))
        case "failed":
            return Failed(reason)
        case "timed out":
            return TimedOut(reason, row["at_least"])
        case "pruned":
            return Pruned(reason, row["at_least"])
        case "lost":
            return Lost(reason)
    raise StoreError(f"a run in this store has the outcome {row['outcome']!r}, which is not supported; upgrade luthier")


def _check_types(row: Mapping[str, object], columns: type[ExperimentRow | RunRow]) -> None:
    """Raise unless every column has the type that luthier writes, and numbers are finite; SQLite accepts any type."""
    for name, kind in columns.__annotations__.items():
        value = row[name]
        if not isinstance(value, kind) and not (isinstance(value, int) and isinstance(0.0, kind)):
            raise TypeError(name)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(name)


def finite(number: float, where: str) -> float:
    """The number as a float; `StoreError` unless it is finite."""
    try:
        exact = float(number)
    except OverflowError:
        exact = math.inf
    if not math.isfinite(exact):
        raise StoreError(f"{where}: {number!r:.30} is not a finite number; record a run without a number as failed")
    return exact


def short(text: str, where: str) -> str:
    """The text; `InvalidInputError` if it is too long for an index."""
    if len(text) > LONGEST_NAME:
        raise InvalidInputError(f"{where}: {text[:20]!r} has {len(text)} characters; the limit is {LONGEST_NAME}")
    return text


def bounded(number: int) -> int:
    """The nearest number that every database can compare with row numbers."""
    return max(-1, min(number, LARGEST_ID))


def positive(limit: int) -> int:
    """A limit for a list, at most as large as every database supports."""
    if limit < 1:
        raise InvalidInputError(f"limit: {limit} is too small; use 1 or more")
    return min(limit, LARGEST_ID)


def _others(outcome: Completed, where: str) -> str:
    return _ENCODER.encode([finite(value, f"{where}: one of the others") for value in outcome.others])


def finite_or_none(number: float | None, where: str) -> float | None:
    """The same for a number that may be None."""
    return None if number is None else finite(number, where)


def _plain(value: object) -> object:
    """A mapping or sequence of another class as a dict or list."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return list(value)
    raise TypeError(f"a value of type {type(value).__name__} cannot be stored")


_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_plain)
