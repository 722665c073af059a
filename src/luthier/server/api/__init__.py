"""The REST API."""

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from luthier.errors import NotFoundError
from luthier.server.api import (
    components,
    detail,
    docs,
    drafts,
    events,
    experiments,
    figures,
    health,
    insight,
    options,
    runs,
    session,
    users,
)
from luthier.server.parts import parts

BASE = "/api/v1"

_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_GROUPS = (
    health,
    session,
    users,
    components,
    drafts,
    options,
    experiments,
    detail,
    runs,
    insight,
    figures,
    events,
)


def add_api(app: FastAPI) -> None:
    """Add the API, its interactive pages and the metrics to an application."""
    for router in _routers():
        app.include_router(router, prefix=BASE)
    app.include_router(docs.router)
    app.add_api_route("/metrics", health.get_metrics, methods=["GET"], include_in_schema=False)
    app.add_api_route("/api/{path:path}", _not_found, methods=_METHODS, include_in_schema=False)


def _routers() -> list[APIRouter]:
    """Those of wings first: routes are tried in turn, and nothing is asked for as often as jobs at submission."""
    return [*(router for part in parts().values() for router in part.api), *(group.router for group in _GROUPS)]


async def _not_found(request: Request) -> Response:
    """An unknown path, or a path that does not support the method."""
    path = request.url.path.removeprefix(BASE)
    routes = [route for router in _routers() for route in router.routes if isinstance(route, APIRoute)]
    allowed = {method for route in routes if route.path_regex.match(path) for method in route.methods or ()}
    if allowed:
        raise HTTPException(
            405, f"{request.method} is not supported for this path", {"Allow": ", ".join(sorted(allowed))}
        )
    raise NotFoundError(f"{request.url.path} does not exist; see {BASE}/openapi.json")
