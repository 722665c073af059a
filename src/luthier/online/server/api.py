"""On-line sessions of running programs: list, look at, stop, share, delete, and watch."""

import time
from collections.abc import Mapping
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field, JsonValue, ValidationError
from starlette.concurrency import run_in_threadpool

from luthier.figures import to_plotly
from luthier.online.figures import online_steps
from luthier.online.records import OnlineRecord
from luthier.online.server.state import online_of
from luthier.online.server.summaries import is_served, online_summary_of
from luthier.result.serial import json_text
from luthier.server.api.events import HEADERS, STREAM, EventStream
from luthier.server.api.figures import FigureResponse
from luthier.server.api.models import (
    ERRORS,
    LARGEST_NUMBER,
    After,
    Before,
    Limit,
    Page,
    RequestModel,
    ResponseModel,
    example,
)
from luthier.server.authentication import Principal
from luthier.server.context import Server, Viewer, current_user
from luthier.server.json_response import SafeJsonResponse

router = APIRouter(tags=["on-line sessions"], responses=ERRORS)

Id = Annotated[int, Path(ge=1, le=LARGEST_NUMBER, description="The number of the on-line session.", examples=[1])]
Phase = Literal["baseline", "searching", "converged", "stopped", "not served"]
Configuration = dict[str, JsonValue]

_SUMMARY: dict[str, JsonValue] = {
    "id": 1,
    "name": "stencil",
    "author": "ada",
    "shared": False,
    "created_at": 1.7e9,
    "seen_at": 1.7e9,
    "phase": "searching",
    "search": 1,
    "strategy": "auto",
    "goal": "minimize",
    "client_count": 4,
    "best_value": 1.2,
    "default_value": 2.0,
    "gain": 1.67,
    "steps": 120,
    "total": 153.2,
    "compared_steps": 120,
    "compared_total": 153.2,
    "default_total": 240.0,
    "saved": 86.8,
    "mine": True,
    "may_change": True,
}


class OnlineSummary(ResponseModel):
    """An on-line session in a list; what was not measured is null."""

    model_config = example(_SUMMARY)

    id: int
    name: str
    author: str
    """The user whose token its clients use; `local` for clients on a unix socket without a token."""
    shared: bool
    created_at: float
    seen_at: float | None
    """When the service that serves it was last alive."""
    phase: Phase
    """`stopped` and `converged`: every client gets the best configuration; `not served`: no service is alive."""
    search: int
    """1 for the first search, one more for every restart after a change of the program."""
    strategy: str
    goal: Literal["minimize", "maximize"]
    client_count: int
    best_value: float | None
    default_value: float | None
    """As it was measured in the present search; null before that."""
    gain: float | None
    """How many times better the best configuration is than the default; null if one of them was not measured."""
    steps: int
    total: float | None
    """The sum over all steps of the value of the slowest client."""
    compared_steps: int
    """The steps that can be compared with the default: it was measured in the same search, with enough clients."""
    compared_total: float | None
    """The sum over these steps."""
    default_total: float | None
    """What they would have taken with the default, estimated from the steps in which all clients ran it."""
    saved: float | None
    """By how much `compared_total` is better than `default_total`; negative if it is worse."""
    mine: bool
    may_change: bool


class OnlinePoint(ResponseModel):
    """A configuration and its estimate."""

    config: Configuration
    value: float | None
    samples: int


class OnlineClient(ResponseModel):
    """A client that is connected."""

    name: str
    config: Configuration | None
    """What it runs now; null before it has asked."""
    since: float
    """Since when it has run this configuration."""
    reports: int
    last: float | None
    """The last value that it reported."""


class OnlineChange(ResponseModel):
    """A restart of the search, because the values of the best configuration changed."""

    at: float
    step: int
    factor: float | None
    """How many times as large the values became."""


class OnlineView(ResponseModel):
    """The state of a session, as its service last wrote it."""

    best: OnlinePoint | None = None
    """Null before the first configuration was measured."""
    default: OnlinePoint | None = None
    clients: list[OnlineClient] = Field(default_factory=list)
    """At most 200."""
    more_clients: int = 0
    points: list[OnlinePoint] = Field(default_factory=list)
    """The best configurations that were measured."""
    default_step: float | None = None
    """The value of one step with the default, in the present search."""
    history: list[tuple[int, float | None]] = Field(default_factory=list)
    """Some of the steps, each with the value of its slowest client."""
    changes: list[OnlineChange] = Field(default_factory=list)


class OnlineDetail(OnlineSummary, OnlineView):
    """An on-line session with its state."""

    model_config = example(
        {
            **_SUMMARY,
            "best": {"config": {"block": 64}, "value": 1.2, "samples": 3},
            "default": {"config": {"block": 8}, "value": 2.0, "samples": 3},
            "clients": [{"name": "node3/4711", "config": {"block": 32}, "since": 1.7e9, "reports": 12, "last": 1.3}],
            "more_clients": 3,
            "points": [{"config": {"block": 64}, "value": 1.2, "samples": 3}],
            "default_step": 2.05,
            "history": [[1, 2.1], [2, 1.9]],
            "changes": [{"at": 1.7e9, "step": 90, "factor": 1.8}],
            "settings": {"strategy": "auto", "samples": "adaptive", "goal": "minimize"},
            "parameters": [{"kind": "integer", "name": "block", "low": 8, "high": 256}],
            "constraints": [],
        }
    )

    settings: dict[str, JsonValue]
    parameters: list[dict[str, JsonValue]]
    constraints: list[str]


class OnlineSample(ResponseModel):
    """One reported value."""

    model_config = example(
        {"number": 1, "search": 1, "client": "node3/4711", "config": {"block": 8}, "value": 2.1, "at": 1.7e9}
    )

    number: int
    search: int
    client: str
    config: Configuration
    value: float | None
    """Null if the run failed."""
    at: float


class ChangedSession(RequestModel):
    """Whether all users may see it."""

    model_config = example({"shared": True})

    shared: bool


_EVENTS: dict[int | str, dict[str, object]] = {
    200: {"content": {STREAM: {"example": 'event: gone\ndata: {"id":1}\n\n'}}}
}


@router.get("/online", summary="List on-line sessions")
def list_online(
    server: Server,
    who: Viewer,
    mine: Annotated[bool, Query(description="Only your own sessions.")] = False,
    before: Before = None,
    limit: Limit = 50,
) -> Page[OnlineSummary]:
    """Your own and the shared sessions, newest first; administrators see all."""
    found: list[OnlineRecord] = []
    author = who.name if mine or who.role != "admin" else None
    while len(found) < limit:
        page = online_of(server).sessions.all(author=author, before=before, limit=limit)
        found += [record for record in page if not mine or record.author == who.name]
        if len(page) < limit:
            break
        before = page[-1].id
    listed = found[:limit]
    following = listed[-1].id if len(listed) == limit else None
    return Page(items=[_summary(record, who) for record in listed], next=following)


@router.get(
    "/online/events", summary="Stream changes of on-line sessions", response_class=EventStream, responses=_EVENTS
)
async def watch_online(request: Request, server: Server, who: Viewer) -> EventStream:
    """`session` contains a session as in the list, `gone` the number of a deleted one.

    A changing session is sent at most once per second. To miss nothing, list the sessions after the first event,
    `watching`.
    """

    def may_go_on() -> bool:
        return current_user(request) == who

    return EventStream(online_of(server).events.stream(who, may_go_on), headers=HEADERS)


@router.get("/online/{session_id}", summary="Get an on-line session")
def get_online(server: Server, who: Viewer, session_id: Id) -> OnlineDetail:
    """With its clients, the best configurations, and its settings."""
    record = online_of(server).operations.visible(who, session_id)
    space = record.settings.get("space")
    known = space if isinstance(space, Mapping) else {}
    return OnlineDetail.model_validate(
        {
            **_view(record).model_dump(),
            **online_summary_of(record, who),
            "settings": {name: value for name, value in record.settings.items() if name != "space"},
            "parameters": known.get("parameters", []),
            "constraints": known.get("constraints", []),
        }
    )


@router.get("/online/{session_id}/samples", summary="List the samples of an on-line session")
def list_samples(
    server: Server, who: Viewer, session_id: Id, after: After = None, limit: Limit = 100
) -> Page[OnlineSample]:
    """All values that clients reported while the session searched, in order."""
    online_of(server).operations.visible(who, session_id)
    found = online_of(server).sessions.samples(session_id, after=after or 0, limit=limit)
    items = [
        OnlineSample(
            number=one.number,
            search=one.search,
            client=one.client,
            config=dict(one.config),
            value=one.value,
            at=one.at,
        )
        for one in found
    ]
    return Page(items=items, next=items[-1].number if len(items) == limit else None)


@router.get(
    "/online/{session_id}/figures/steps",
    summary="Get the figure of an on-line session",
    response_class=SafeJsonResponse,
    responses={200: {"model": FigureResponse}, 204: {"description": "The figure has no content yet."}},
)
def get_online_figure(server: Server, who: Viewer, session_id: Id) -> Response:
    """The slowest value of each step, as data and layout for plotly.js."""
    record = online_of(server).operations.visible(who, session_id)
    view, summary = _view(record), online_summary_of(record, who)
    figure = online_steps(
        [(step, value) for step, value in view.history if value is not None],
        default=view.default_step,
        restarts=[change.step for change in view.changes],
        goal="maximize" if summary["goal"] == "maximize" else "minimize",
    )
    if figure is None:
        return Response(status_code=204)
    text = json_text({**to_plotly(figure), "title": figure.title, "note": figure.note})
    return Response(text.encode("utf-8"), media_type="application/json")


@router.get(
    "/online/{session_id}/events",
    summary="Stream changes of one on-line session",
    response_class=EventStream,
    responses=_EVENTS,
)
async def watch_online_session(request: Request, server: Server, who: Viewer, session_id: Id) -> EventStream:
    """`session` contains the session as in the list; `gone` means that it was deleted.

    To miss nothing, get the session after the first event, `watching`.
    """
    await run_in_threadpool(online_of(server).operations.visible, who, session_id)

    def may_go_on() -> bool:
        return current_user(request) == who and online_of(server).operations.visible(who, session_id) is not None

    return EventStream(online_of(server).events.stream(who, may_go_on, session_id), headers=HEADERS)


@router.post("/online/{session_id}/stop", summary="Stop an on-line session")
def stop_online(server: Server, who: Viewer, session_id: Id) -> OnlineSummary:
    """The search ends; from then on every client gets the best configuration."""
    return _summary(online_of(server).operations.stop(who, session_id), who)


@router.patch("/online/{session_id}", summary="Share an on-line session, or stop sharing it")
def change_online(server: Server, who: Viewer, session_id: Id, given: ChangedSession) -> OnlineSummary:
    """All users can see a shared session."""
    return _summary(online_of(server).operations.share(who, session_id, shared=given.shared), who)


@router.delete("/online/{session_id}", summary="Delete an on-line session", status_code=204)
def delete_online(server: Server, who: Viewer, session_id: Id) -> None:
    """With all its samples. Programs that still run begin a new session with the same name."""
    online_of(server).operations.delete(who, session_id)


def _summary(record: OnlineRecord, who: Principal) -> OnlineSummary:
    return OnlineSummary.model_validate(online_summary_of(record, who))


def _view(record: OnlineRecord) -> OnlineView:
    """The view in a record; empty if it is missing, or was written by another version."""
    try:
        view = OnlineView.model_validate(record.view or {})
    except ValidationError:
        return OnlineView()
    if view.best is not None and not view.best.samples:
        view.best = None
    if not is_served(record, time.time()):
        view.clients, view.more_clients = [], 0
    return view
