"""Health check and metrics."""

from typing import Literal

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from luthier.errors import LuthierError, UnavailableError
from luthier.server.api.models import ERRORS, ResponseModel, example
from luthier.server.context import Server, Viewer

router = APIRouter(tags=["health"], responses=ERRORS)


class Health(ResponseModel):
    """The state of the server."""

    model_config = example({"status": "ok", "store": "ok"})

    status: Literal["ok"]
    store: Literal["ok"]


@router.get("/health", summary="Check the server and its store")
def get_health(server: Server) -> Health:
    """Requires no login; 503 if the store is not available."""
    try:
        server.store.queue.records(limit=1)
    except LuthierError:
        raise UnavailableError("the store is not available") from None
    return Health(status="ok", store="ok")


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"example": "luthier_streams 2.0\n"}}}},
)
def get_metrics(server: Server, _: Viewer) -> PlainTextResponse:
    """Experiments by status, runs by outcome, open event streams, duration of requests."""
    streams = server.experiment_events.listeners + server.list_events.listeners
    streams += sum(part.listeners for part in server.parts.values())
    return PlainTextResponse(server.metrics.text(server.store, streams), media_type="text/plain; version=0.0.4")
