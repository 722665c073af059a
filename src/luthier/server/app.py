"""The application: routes, errors, headers."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from luthier import __version__
from luthier.errors import InUseError, LuthierError, NotFoundError, UnavailableError
from luthier.folders import data_directory
from luthier.server.authentication import AccessError, Authenticator, ForbiddenError
from luthier.server.context import Context, cached_user
from luthier.server.experiment_events import ExperimentEvents
from luthier.server.json_response import SafeJsonResponse
from luthier.server.list_events import ExperimentList, ListEvents
from luthier.server.login_limits import TooManyError
from luthier.server.metrics import Metrics
from luthier.server.middleware import HeadRequests, LimitedBody, SafeHeaders, TimedRequests
from luthier.server.operations import RUN_TIMEOUT_S, ConflictError, Operations
from luthier.server.parts import PartState, parts
from luthier.server.passwords import PasswordQueue
from luthier.server.result_cache import ResultCache
from luthier.server.store_errors import STORE_UNAVAILABLE, StoreLog, is_store_error
from luthier.spec.library import Library
from luthier.store.server_store import ServerStore

if TYPE_CHECKING:
    from luthier.server.oidc import Provider

_store_log = StoreLog()

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
SMALLEST_PACKED_BYTES = 1024

_STATUS: tuple[tuple[type[LuthierError], int], ...] = (
    (AccessError, 401),
    (ForbiddenError, 403),
    (TooManyError, 429),
    (NotFoundError, 404),
    (ConflictError, 409),
    (InUseError, 409),
    (UnavailableError, 503),
    (LuthierError, 422),
)
"""The HTTP status of each kind of error; the first match is used."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """How clients reach the server: the port, additional host names, and whether HTTPS is used."""

    port: int
    hosts: tuple[str, ...] = ()
    is_https: bool = False


def create_app(  # noqa: PLR0913 - the parts of a server
    server_store: ServerStore,
    place: ServerAddress,
    *,
    folder: Path | None = None,
    provider: "Provider | None" = None,
    run_timeout_s: float | None = RUN_TIMEOUT_S,
    has_worker: bool = True,
    states: Mapping[str, PartState] | None = None,
    options: Mapping[str, object] | None = None,
) -> FastAPI:
    """The web application for one store; runs are executed below `folder`, by default this user's data directory.

    Without a worker on this machine they are executed elsewhere. `states` are those of wings whose services run beside
    the server; those of the others are made with their `options`.

    Users can also log in with an OpenID provider: `provider`, or the one that is configured in the environment.
    """
    from luthier.server.api import add_api
    from luthier.server.oidc import add_oidc, provider_in
    from luthier.server.pages import add_pages

    home = folder or data_directory()
    app = FastAPI(
        title="luthier",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        default_response_class=SafeJsonResponse,
        generate_unique_id_function=_operation_id,
    )
    context = app.state.context = Context(
        store=server_store,
        library=Library(server_store.components),
        authenticator=Authenticator(server_store.accounts),
        operations=Operations(server_store, home / "work", has_worker, run_timeout_s=run_timeout_s),
        results=ResultCache(server_store),
        experiment_events=ExperimentEvents(server_store),
        list_events=ListEvents(ExperimentList(server_store)),
        metrics=Metrics(),
        passwords=PasswordQueue(),
        cookie=f"luthier-session-{place.port}",  # cookies of one host are sent to all its ports
        parts=_states(server_store, states or {}, options or {}),
        is_https=place.is_https,
    )
    app.add_exception_handler(LuthierError, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(RecursionError, _too_deep)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _broken)
    app.add_middleware(LimitedBody)
    app.add_middleware(GZipMiddleware, minimum_size=SMALLEST_PACKED_BYTES)
    app.add_middleware(HeadRequests)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK_NAMES, *place.hosts], www_redirect=False)
    app.add_middleware(SafeHeaders, is_https=place.is_https)
    app.add_middleware(TimedRequests, report=context.metrics.request)
    add_api(app)
    if (provider := provider or provider_in(os.environ)) is not None:
        add_oidc(app, provider)
    add_pages(app)
    return app


def _states(
    store: ServerStore, given: Mapping[str, PartState], options: Mapping[str, object]
) -> Mapping[str, PartState]:
    """What each wing keeps in the server."""
    return {name: given.get(name) or part.state(store, options.get(name)) for name, part in parts().items()}


def _operation_id(route: APIRoute) -> str:
    return route.name


async def _problem(request: Request, error: Exception) -> Response:
    if is_store_error(error):
        return SafeJsonResponse({"error": _store_error_text(request, error)}, 503)
    status = next(status for kind, status in _STATUS if isinstance(error, kind))
    headers = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else {}
    if isinstance(error, TooManyError):
        headers["Retry-After"] = str(int(error.after_s) + 1)
    return SafeJsonResponse({"error": str(error)}, status, headers)


def _store_error_text(request: Request, error: Exception) -> str:
    """The reason for administrators; other users must not learn where the store is or who uses it."""
    _store_log.note(error)
    who = cached_user(request)
    return str(error) if who is not None and who.role == "admin" else STORE_UNAVAILABLE


async def _too_deep(_: Request, __: Exception) -> Response:
    """Requests whose nesting exhausts the stack although `check_body` accepted them."""
    return SafeJsonResponse({"error": "the request is nested too deeply; use fewer levels"}, 422)


async def _invalid(_: Request, error: Exception) -> Response:
    """An invalid request, as an error of one line like all others."""
    if not isinstance(error, RequestValidationError):
        raise error
    first = error.errors()[0]
    where = ".".join(str(step) for step in first["loc"])
    return SafeJsonResponse({"error": f"{where}: {first['msg'].removeprefix('Value error, ')}"}, 422)


async def _refused(_: Request, error: Exception) -> Response:
    """An unknown path, or a method that is not supported."""
    if not isinstance(error, HTTPException):
        raise error
    return SafeJsonResponse({"error": str(error.detail)}, error.status_code, error.headers)


async def _broken(_: Request, __: Exception) -> Response:
    """A defect of the server: the details are in its log, not in the answer."""
    return SafeJsonResponse({"error": "internal server error; see the log of the server"}, 500)
