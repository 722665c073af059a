"""Live changes, as server-sent events."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from luthier.server.api.models import ERRORS, LARGEST_NUMBER, Id
from luthier.server.context import Server, Viewer, visitor

router = APIRouter(tags=["events"], responses=ERRORS)

_STREAM = "text/event-stream"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = _STREAM


@router.get(
    "/events",
    summary="Live: which experiments are new, have changed or are gone",
    response_class=EventStream,
    responses={200: {"content": {_STREAM: {"example": 'event: gone\ndata: {"id":1}\n\n'}}}},
)
async def watch_experiments(request: Request, server: Server, who: Viewer) -> EventStream:
    """`experiment` carries an experiment as in the listing, `gone` a number.

    An experiment that changes all the time is told once a second. List the experiments after the stream has opened, and
    nothing is missed.
    """

    def may_go_on() -> bool:
        return visitor(request) == who

    return EventStream(server.feed.stream(who, may_go_on), headers=_HEADERS)


@router.get(
    "/experiments/{experiment_id}/events",
    summary="Live: what happens to one experiment",
    response_class=EventStream,
    responses={200: {"content": {_STREAM: {"example": 'event: status\ndata: {"status":"running"}\n\n'}}}},
)
async def watch_experiment(
    request: Request,
    server: Server,
    who: Viewer,
    experiment_id: Id,
    since: Annotated[
        int | None, Query(ge=0, le=LARGEST_NUMBER, description="Begin with this event; from now on if left out.")
    ] = None,
    last_event_id: Annotated[str | None, Header(description="What a browser sends when it comes back.")] = None,
) -> EventStream:
    """`runs` carries runs that began or ended, with the number of events so far as its id; a run may be told twice.

    `status` says where the experiment stands, `gone` that it was deleted. Whoever comes back with the last id gets what
    was missed.
    """
    await run_in_threadpool(server.operations.seen, who, experiment_id)
    if last_event_id is not None and last_event_id.isascii() and last_event_id.isdigit():
        since = min(int(last_event_id[:10]), LARGEST_NUMBER)

    def may_go_on() -> bool:
        return visitor(request) == who and server.operations.seen(who, experiment_id) is not None

    return EventStream(server.live.stream(experiment_id, since, may_go_on), headers=_HEADERS)
