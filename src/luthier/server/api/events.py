"""Live updates, as server-sent events."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from luthier.server.api.models import ERRORS, LARGEST_NUMBER, Id
from luthier.server.context import Server, Viewer, current_user

router = APIRouter(tags=["events"], responses=ERRORS)

STREAM = "text/event-stream"
"""The media type of server-sent events."""

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""The headers of an event stream."""


class EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = STREAM


@router.get(
    "/events",
    summary="Stream new, changed and deleted experiments",
    response_class=EventStream,
    responses={200: {"content": {STREAM: {"example": 'event: gone\ndata: {"id":1}\n\n'}}}},
)
async def watch_experiments(request: Request, server: Server, who: Viewer) -> EventStream:
    """`experiment` contains an experiment as in the list, `gone` the number of a deleted one.

    A changing experiment is sent at most once per second. To miss nothing, list the experiments after the first event,
    `watching`.
    """

    def may_go_on() -> bool:
        return current_user(request) == who

    return EventStream(server.list_events.stream(who, may_go_on), headers=HEADERS)


@router.get(
    "/experiments/{experiment_id}/events",
    summary="Stream the changes of one experiment",
    response_class=EventStream,
    responses={200: {"content": {STREAM: {"example": 'event: status\ndata: {"status":"running"}\n\n'}}}},
)
async def watch_experiment(
    request: Request,
    server: Server,
    who: Viewer,
    experiment_id: Id,
    since: Annotated[
        int | None, Query(ge=0, le=LARGEST_NUMBER, description="Start with this event; by default, only new events.")
    ] = None,
    last_event_id: Annotated[str | None, Header(description="Sent by browsers when they reconnect.")] = None,
) -> EventStream:
    """`runs` contains runs that started or ended, with the number of events so far as its id; a run may be sent twice.

    `status` contains the status of the experiment; `gone` means that it was deleted. A client that reconnects with the
    last id gets the runs it missed, and then the status.
    """
    await run_in_threadpool(server.operations.visible, who, experiment_id)
    if last_event_id is not None and last_event_id.isascii() and last_event_id.isdigit():
        since = min(int(last_event_id[:10]), LARGEST_NUMBER)

    def may_go_on() -> bool:
        return current_user(request) == who and server.operations.visible(who, experiment_id) is not None

    return EventStream(server.experiment_events.stream(experiment_id, since, may_go_on), headers=HEADERS)
