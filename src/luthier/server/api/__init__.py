"""The REST API."""

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from luthier.errors import NotFoundError
from luthier.online.server import api as online
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
from luthier.submission.server import api as submissions
from luthier.submission.server import gains_api as submission_gains

BASE = "/api/v1"

_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_GROUPS = (
    submissions,  # first: routes are tried in turn, and nothing else is asked for so often
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
    online,
    submission_gains,
)


def add_api(app: FastAPI) -> None:
    """Add the API, its interactive pages and the metrics to an application."""
    for group in _GROUPS:
        app.include_router(group.router, prefix=BASE)
    app.include_router(docs.router)
    app.add_api_route("/metrics", health.get_metrics, methods=["GET"], include_in_schema=False)
    app.add_api_route("/api/{path:path}", _not_found, methods=_METHODS, include_in_schema=False)


async def _not_found(request: Request) -> Response:
    """An unknown path, or a path that does not support the method."""
    path = request.url.path.removeprefix(BASE)
    routes = [route for group in _GROUPS for route in group.router.routes if isinstance(route, APIRoute)]
    allowed = {method for route in routes if route.path_regex.match(path) for method in route.methods or ()}
    if allowed:
        raise HTTPException(
            405, f"{request.method} is not supported for this path", {"Allow": ", ".join(sorted(allowed))}
        )
    raise NotFoundError(f"{request.url.path} does not exist; see {BASE}/openapi.json")
