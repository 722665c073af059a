"""A small client for a luthier server; it needs only the standard library.

>>> from luthier import Client
>>> client = Client("http://127.0.0.1:8642", "TOKEN")
"""

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypedDict, cast
from urllib.parse import quote, urlencode, urlsplit

from luthier.errors import InvalidInputError, LuthierError, NotFoundError, UnavailableError
from luthier.texts import visible
from luthier.trial import Json

_PAGE = 500
_TRY_LATER = frozenset({409, 429})


class ExperimentSummary(TypedDict):
    """An experiment in a list; the fields of the result are None until it ends."""

    id: int
    name: str
    status: str
    author: str
    shared: bool
    created_at: float
    runs: int
    budget: int | None
    verdict: str | None
    improved: bool | None
    speedup: float | None
    low: float | None
    high: float | None
    value: float | None
    kind: str | None
    cost_s: float | None
    mine: bool
    may_change: bool


class RunData(TypedDict):
    """One run; `value` is None unless its outcome is `completed`."""

    run: int
    trial: int
    purpose: str
    outcome: str
    value: float | None
    others: list[float]
    at_least: float | None
    reason: str | None
    submitted_at: float
    started_at: float | None
    duration_s: float | None
    batch_job: str | None
    config: dict[str, bool | int | float | str]
    metrics: dict[str, float]
    has_log: bool


class SessionSummary(TypedDict):
    """An on-line session in a list; what was not measured is None."""

    id: int
    name: str
    author: str
    shared: bool
    created_at: float
    seen_at: float | None
    phase: str
    search: int
    strategy: str
    goal: str
    client_count: int
    best_value: float | None
    default_value: float | None
    gain: float | None
    steps: int
    total: float | None
    compared_steps: int
    compared_total: float | None
    default_total: float | None
    saved: float | None
    mine: bool
    may_change: bool


class SampleData(TypedDict):
    """One value that a client of an on-line session reported; None if its run failed."""

    number: int
    search: int
    client: str
    config: dict[str, bool | int | float | str]
    value: float | None
    at: float


@dataclass(frozen=True, slots=True)
class Event:
    """A change: `runs` with a list of runs, `status`, `session` with an on-line session, `gone`; or `watching`."""

    kind: str
    data: Json
    id: int | None = None


class Client:
    """A luthier server, as one user sees it.

    Invalid input raises `InvalidInputError`, and unknown numbers and names raise `NotFoundError`. A server that cannot
    be reached, or that answers with a temporary error, raises `UnavailableError`. `timeout_s` is the time limit of an
    answer, `retry_s` the pause before `watch` reconnects.
    """

    def __init__(self, url: str, token: str, *, timeout_s: float = 60.0, retry_s: float = 1.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise InvalidInputError(
                f"url: {url!r} is not a valid server address; use for example http://127.0.0.1:8642"
            )
        if not token.isascii() or not token.isprintable() or not token:
            raise InvalidInputError("invalid token; create one on your account page")
        self._base = f"{url.rstrip('/')}/api/v1"
        self._token = token
        self._timeout_s = timeout_s
        self._retry_s = retry_s

    def components(self) -> list[dict[str, Json]]:
        """The registered components."""
        return cast("list[dict[str, Json]]", self._ask("GET", "/components"))

    def register(self, yaml: str, *, replace: bool = False) -> list[str]:
        """Register the components that a text describes, and return their names."""
        answer = self._ask("POST", "/components", {"yaml": yaml, "replace": replace})
        return cast("dict[str, list[str]]", answer)["names"]

    def create(self, yaml: str, *, key: str | None = None) -> ExperimentSummary:
        """Launch the experiment that a text describes; a `key` that was used before creates no second one."""
        headers = {} if key is None else {"Idempotency-Key": key}
        return cast("ExperimentSummary", self._ask("POST", "/experiments", {"yaml": yaml}, headers))

    def experiments(self, *, text: str = "", status: str = "", mine: bool = False) -> Iterator[ExperimentSummary]:
        """The experiments that you may see, the newest first."""
        wanted = {"text": text, "status": status, "mine": "true" if mine else ""}
        return cast("Iterator[ExperimentSummary]", self._listed("/experiments", "before", wanted))

    def experiment(self, number: int) -> dict[str, Json]:
        """All details of one experiment."""
        return cast("dict[str, Json]", self._ask("GET", f"/experiments/{number}"))

    def stop(self, number: int, *, now: bool = False, verify: bool = False) -> ExperimentSummary:
        """Stop an experiment: active runs finish, or are killed with `now`; no new runs start.

        With `verify` only the search ends, and the best configuration so far is verified.
        """
        query = "?now=true" if now else "?verify=true" if verify else ""
        return cast("ExperimentSummary", self._ask("POST", f"/experiments/{number}/stop{query}"))

    def resume(self, number: int, *, budget: str | int | None = None) -> ExperimentSummary:
        """Resume an experiment that was stopped, failed or was interrupted.

        With a `budget`, `"+30"` for 30 more runs or a total, also one that has ended.
        """
        query = "" if budget is None else f"?{urlencode({'budget': str(budget)})}"
        return cast("ExperimentSummary", self._ask("POST", f"/experiments/{number}/resume{query}"))

    def clone(self, number: int, yaml: str | None = None) -> ExperimentSummary:
        """Launch a copy of an experiment, optionally with a changed text."""
        return cast("ExperimentSummary", self._ask("POST", f"/experiments/{number}/clone", {"yaml": yaml}))

    def delete(self, number: int, *, stop: bool = False) -> None:
        """Delete an experiment and its runs; with `stop`, a running experiment is killed first."""
        self._ask("DELETE", f"/experiments/{number}{'?stop=true' if stop else ''}")

    def runs(self, number: int) -> Iterator[RunData]:
        """The runs of an experiment, in order of submission."""
        return cast("Iterator[RunData]", self._listed(f"/experiments/{number}/runs", "after", {}))

    def figure(self, number: int, name: str) -> dict[str, Json] | None:
        """A figure for plotly.js; None if it has no content yet."""
        return cast("dict[str, Json] | None", self._ask("GET", f"/experiments/{number}/figures/{quote(name, safe='')}"))

    def watch(self, number: int, since: int | None = None) -> Iterator[Event]:
        """The changes of an experiment, from event `since` or from now on, until it is deleted.

        A lost connection is opened again, and no event is missed. A run may be reported twice.
        """
        return self._events(f"/experiments/{number}/events", since)

    def wait(self, number: int) -> dict[str, Json]:
        """All details of an experiment as soon as it is neither queued nor running."""
        for event in self.watch(number):
            if event.kind == "gone":
                break
            status = event.data.get("status") if isinstance(event.data, Mapping) else None
            if event.kind == "status" and status not in ("queued", "running"):
                break
        return self.experiment(number)

    def online_sessions(self, *, mine: bool = False) -> Iterator[SessionSummary]:
        """The on-line sessions that you may see, the newest first."""
        return cast("Iterator[SessionSummary]", self._listed("/online", "before", {"mine": "true" if mine else ""}))

    def online_session(self, number: int) -> dict[str, Json]:
        """An on-line session with its clients, its best configurations and its settings."""
        return cast("dict[str, Json]", self._ask("GET", f"/online/{number}"))

    def online_samples(self, number: int) -> Iterator[SampleData]:
        """The values that the clients of an on-line session reported while it searched, in order."""
        return cast("Iterator[SampleData]", self._listed(f"/online/{number}/samples", "after", {}))

    def watch_online(self, number: int) -> Iterator[Event]:
        """The changes of an on-line session as in the list, until it is deleted.

        Requests after the first event, `watching`, miss no change.
        """
        return self._events(f"/online/{number}/events", None)

    def stop_online(self, number: int) -> SessionSummary:
        """Stop an on-line session: from then on its clients get the best configuration."""
        return cast("SessionSummary", self._ask("POST", f"/online/{number}/stop"))

    def share_online(self, number: int, *, shared: bool = True) -> SessionSummary:
        """Share an on-line session with all users, or stop sharing it."""
        return cast("SessionSummary", self._ask("PATCH", f"/online/{number}", {"shared": shared}))

    def delete_online(self, number: int) -> None:
        """Delete an on-line session and its samples."""
        self._ask("DELETE", f"/online/{number}")

    def submissions(self, *, decision: str = "", mine: bool = False) -> Iterator[dict[str, Json]]:
        """The submitted jobs that you may see, with what was decided about each, the newest first."""
        wanted = {"decision": decision, "mine": "true" if mine else ""}
        return cast("Iterator[dict[str, Json]]", self._listed("/submissions", "before", wanted))

    def review_submission(self, number: int, *, confirmed: bool | None) -> dict[str, Json]:
        """Confirm (True) or reject (False) the match of a submitted job; None removes an earlier review."""
        return cast("dict[str, Json]", self._ask("POST", f"/submissions/{number}/review", {"confirmed": confirmed}))

    def job_gains(self) -> list[dict[str, Json]]:
        """The time saved by submitted jobs, by user and record."""
        return cast("list[dict[str, Json]]", self._ask("GET", "/job-gains"))

    def tuning_candidates(self) -> dict[str, Json]:
        """Programs that run often and match no tuned job, those that took most time first."""
        return cast("dict[str, Json]", self._ask("GET", "/tuning-candidates"))

    def job_records(self, *, withdrawn: bool = False) -> list[dict[str, Json]]:
        """Jobs that were tuned, with which new jobs are compared."""
        return cast("list[dict[str, Json]]", self._ask("GET", f"/job-records?withdrawn={str(withdrawn).lower()}"))

    def withdraw_record(self, number: int, reason: str) -> dict[str, Json]:
        """Do not use a record any more."""
        return cast("dict[str, Json]", self._ask("POST", f"/job-records/{number}/withdraw", {"reason": reason}))

    def restore_record(self, number: int) -> dict[str, Json]:
        """Use a record again that was withdrawn."""
        return cast("dict[str, Json]", self._ask("POST", f"/job-records/{number}/restore"))

    def _events(self, path: str, last: int | None) -> Iterator[Event]:
        """The events of a stream, which is opened again when the connection is lost, until the event `gone`."""
        was_there = False
        while True:
            try:
                with self._open("GET", path, None, _last_seen(last)) as stream:
                    was_there = True
                    for event in events_in(line.decode("utf-8") for line in stream):
                        last = last if event.id is None else event.id
                        yield event
                        if event.kind == "gone":
                            return
            except (UnavailableError, OSError, http.client.HTTPException):
                if not was_there:
                    raise
            time.sleep(self._retry_s)

    def _listed(self, path: str, cursor: str, wanted: Mapping[str, str]) -> Iterator[object]:
        """Every item of a list, page by page."""
        query = {name: value for name, value in wanted.items() if value} | {"limit": str(_PAGE)}
        while True:
            page = cast("dict[str, object]", self._ask("GET", f"{path}?{urlencode(query)}"))
            yield from cast("list[object]", page["items"])
            if page["next"] is None:
                return
            query[cursor] = str(page["next"])

    def _ask(self, method: str, path: str, given: Json = None, headers: Mapping[str, str] | None = None) -> Json:
        body = None if given is None else json.dumps(given).encode()
        try:
            with self._open(method, path, body, headers or {}) as answer:
                text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise UnavailableError(f"{self._base}: the answer is incomplete: {visible(str(error))}") from error
        return cast("Json", json.loads(text)) if text else None

    def _open(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        request = urllib.request.Request(f"{self._base}{path}", body, dict(headers), method=method)  # noqa: S310  # __init__ has checked the scheme
        request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
        try:
            answer = urllib.request.urlopen(request, timeout=self._timeout_s)  # noqa: S310  # the same
        except urllib.error.HTTPError as error:
            with error:
                raise _error_for(error.code, error.read()) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise UnavailableError(f"{self._base}: cannot be reached: {visible(str(reason))}") from error
        return cast("http.client.HTTPResponse", answer)


def events_in(lines: Iterable[str]) -> Iterator[Event]:
    """The server-sent events in a stream of lines."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.rstrip("\r\n").partition(":")
        if name:
            fields[name] = value.removeprefix(" ")
        elif not line.strip():
            if "data" in fields:
                number = fields.get("id", "")
                yield Event(fields.get("event", ""), json.loads(fields["data"]), int(number) if number else None)
            fields = {}


def _last_seen(last: int | None) -> dict[str, str]:
    return {} if last is None else {"Last-Event-ID": str(last)}


def _error_for(status: int, body: bytes) -> LuthierError:
    """The exception for an error response."""
    try:
        text = visible(str(json.loads(body)["error"]))  # it may end on a terminal
    except (ValueError, TypeError, KeyError):
        text = f"the server answered {status}"
    if status == 404:
        return NotFoundError(text)
    return UnavailableError(text) if status in _TRY_LATER or status >= 500 else InvalidInputError(text)
