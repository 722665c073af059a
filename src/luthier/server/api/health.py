"""Whether the server is well."""

from typing import Literal

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse
from pydantic import ConfigDict

from luthier.errors import LuthierError, UnavailableError
from luthier.server.api.models import ERRORS, Told
from luthier.server.context import Server, Viewer

router = APIRouter(tags=["health"], responses=ERRORS)


class Health(Told):
    """Whether the server can work."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "ok", "store": "ok"}]})

    status: Literal["ok"]
    store: Literal["ok"]


@router.get("/health", summary="Whether the server can work")
def get_health(server: Server) -> Health:
    """For everybody, and it tells nothing else; 503 if the store is away."""
    try:
        server.books.desk.records(limit=1)
    except LuthierError:
        raise UnavailableError("the store is away") from None
    return Health(status="ok", store="ok")


@router.get(
    "/metrics",
    summary="Numbers for Prometheus",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"example": "luthier_streams 2.0\n"}}}},
)
def get_metrics(server: Server, _: Viewer) -> PlainTextResponse:
    """Experiments by status, open streams, how long requests take."""
    streams = server.live.listeners + server.feed.listeners
    return PlainTextResponse(server.metrics.text(server.books, streams), media_type="text/plain; version=0.0.4")
