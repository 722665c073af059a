"""The application: routes, errors, headers."""

import os
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
from luthier.launch.declared import library
from luthier.server.access import AccessError, Doorkeeper, ForbiddenError
from luthier.server.context import Context, known_visitor
from luthier.server.feed import Feed
from luthier.server.live import Live
from luthier.server.login_limits import TooManyError
from luthier.server.metrics import Metrics
from luthier.server.middleware import LimitedBody, SafeHeaders, Timed
from luthier.server.operations import RUN_TIMEOUT_S, NotNowError, Operations
from luthier.server.passwords import PasswordQueue
from luthier.server.plain import Answer
from luthier.server.results import Results
from luthier.server.store_errors import STORE_AWAY, StoreLog, is_about_the_store
from luthier.store import data_directory
from luthier.store.server_store import Books

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
    (NotNowError, 409),
    (InUseError, 409),
    (UnavailableError, 503),
    (LuthierError, 422),
)
"""How each kind of trouble is told; the first that fits."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server is reached: by which port, under which further host names, and whether through HTTPS."""

    port: int
    hosts: tuple[str, ...] = ()
    is_https: bool = False


def create_app(
    books: Books,
    place: Place,
    *,
    folder: Path | None = None,
    provider: "Provider | None" = None,
    run_timeout_s: float | None = RUN_TIMEOUT_S,
) -> FastAPI:
    """The server over one store; runs are made below `folder`, the data directory of this user if there is none.

    People can also come in by way of an OpenID provider: this one, or the one that the environment names.
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
        default_response_class=Answer,
        generate_unique_id_function=_operation_id,
    )
    context = app.state.context = Context(
        books=books,
        library=library(),
        door=Doorkeeper(books.accounts),
        operations=Operations(books, home / "work", run_timeout_s=run_timeout_s),
        results=Results(books),
        live=Live(books),
        feed=Feed(books),
        metrics=Metrics(),
        passwords=PasswordQueue(),
        cookie=f"luthier-session-{place.port}",  # cookies of one host are sent to all its ports
        is_https=place.is_https,
    )
    app.add_exception_handler(LuthierError, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(RecursionError, _too_deep)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _broken)
    app.add_middleware(LimitedBody)
    app.add_middleware(GZipMiddleware, minimum_size=SMALLEST_PACKED_BYTES)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK_NAMES, *place.hosts], www_redirect=False)
    app.add_middleware(SafeHeaders, is_https=place.is_https)
    app.add_middleware(Timed, report=context.metrics.request)
    add_api(app)
    if (provider := provider or provider_in(os.environ)) is not None:
        add_oidc(app, provider)
    add_pages(app)
    return app


def _operation_id(route: APIRoute) -> str:
    return route.name


async def _problem(request: Request, error: Exception) -> Response:
    if is_about_the_store(error):
        return Answer({"error": _said_of_store(request, error)}, 503)
    status = next(status for kind, status in _STATUS if isinstance(error, kind))
    headers = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else {}
    if isinstance(error, TooManyError):
        headers["Retry-After"] = str(int(error.after_s) + 1)
    return Answer({"error": str(error)}, status, headers)


def _said_of_store(request: Request, error: Exception) -> str:
    """For administrators what is wrong; others learn neither where the store is nor who uses it."""
    _store_log.note(error)
    who = known_visitor(request)
    return str(error) if who is not None and who.role == "admin" else STORE_AWAY


async def _too_deep(_: Request, __: Exception) -> Response:
    """What the check at the entrance did not foresee: whatever exhausts the stack was sent so."""
    return Answer({"error": "what was sent is nested too deeply; make it flatter"}, 422)


async def _invalid(_: Request, error: Exception) -> Response:
    """What is wrong with a request, in one line, as everywhere."""
    if not isinstance(error, RequestValidationError):
        raise error
    first = error.errors()[0]
    where = ".".join(str(step) for step in first["loc"])
    return Answer({"error": f"{where}: {first['msg'].removeprefix('Value error, ')}"}, 422)


async def _refused(_: Request, error: Exception) -> Response:
    """A path or method that is not there."""
    if not isinstance(error, HTTPException):
        raise error
    return Answer({"error": str(error.detail)}, error.status_code, error.headers)


async def _broken(_: Request, __: Exception) -> Response:
    """A defect of the server: what it is stands in its log, not in the answer."""
    return Answer({"error": "the server made a mistake; its log says which"}, 500)
