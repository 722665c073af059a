"""The parts of the server that requests need, and the user behind a request."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Depends, Request, Response
from fastapi.security import HTTPBearer

from luthier.server.authentication import SESSION_S, AccessError, Authenticator, ForbiddenError, Principal
from luthier.server.experiment_events import ExperimentEvents
from luthier.server.list_events import ListEvents
from luthier.server.metrics import Metrics
from luthier.server.operations import Operations
from luthier.server.parts import PartState
from luthier.server.passwords import PasswordQueue
from luthier.server.result_cache import ResultCache
from luthier.spec.library import Library
from luthier.store.base import Record
from luthier.store.server_store import Role, ServerStore

CSRF_HEADER = "X-Luthier-CSRF"
_DEVICE_S = 365 * 24 * 3600.0
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_BEARER = HTTPBearer(auto_error=False, description="A token created on your account page, or with POST /me/tokens.")


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of a running server."""

    store: ServerStore
    library: Library
    authenticator: Authenticator
    operations: Operations
    results: ResultCache
    experiment_events: ExperimentEvents
    list_events: ListEvents[Record]
    metrics: Metrics
    passwords: PasswordQueue
    cookie: str
    parts: Mapping[str, PartState]
    is_https: bool = False

    def set_cookie(
        self,
        response: Response,
        name: str,
        value: str,
        *,
        path: str,
        max_age_s: float,
        samesite: Literal["lax", "strict"] = "lax",
    ) -> None:
        """Set a cookie that scripts and other sites cannot read."""
        response.set_cookie(
            name, value, int(max_age_s), path=path, secure=self.is_https, httponly=True, samesite=samesite
        )

    def delete_cookie(self, response: Response, name: str, path: str) -> None:
        """Delete a cookie."""
        response.delete_cookie(name, path=path, secure=self.is_https, httponly=True, samesite="lax")


def context_of(request: Request) -> Context:
    """The server that a request came to."""
    context: Context = request.app.state.context
    return context


def current_user(request: Request) -> Principal | None:
    """The user of a request, by the token in its header or the session of its browser; None if not logged in."""
    context = context_of(request)
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        who = context.authenticator.recognise(secret.strip(), "token")
    else:
        session = request.cookies.get(context.cookie)
        who = None if session is None else context.authenticator.recognise(session, "session")
    request.state.who = who
    return who


def cached_user(request: Request) -> Principal | None:
    """The user that `current_user` found earlier in this request, without asking the store again."""
    who: Principal | None = getattr(request.state, "who", None)
    return who


def check_csrf(request: Request, csrf: str | None) -> None:
    """Raise `ForbiddenError` for a change that may have been sent by a page of another site (CSRF).

    Another site can make a browser send its cookies, but not this header with the right value.
    """
    if request.method in _SAFE:
        return
    sent = request.headers.get(CSRF_HEADER, "")
    if not sent or (csrf is not None and not hmac.compare_digest(sent.encode(), csrf.encode())):
        raise ForbiddenError(f"the header {CSRF_HEADER} is missing or expired; reload the page")


def require_user(request: Request, _: Annotated[object, Depends(_BEARER)]) -> Principal:
    """The user of a request; `AccessError` if not logged in."""
    who = current_user(request)
    if who is None:
        raise AccessError("log in first, or send a token: Authorization: Bearer TOKEN")
    if who.csrf is not None:
        check_csrf(request, who.csrf)
    return who


def address_of(request: Request) -> str:
    """The address of the client."""
    return request.client.host if request.client is not None else "unknown"


def set_session(response: Response, context: Context, secret: str) -> None:
    """Set the session cookie."""
    context.set_cookie(response, context.cookie, secret, path="/", max_age_s=SESSION_S)


def device_in(request: Request) -> str:
    """The device cookie of an earlier login; empty without one."""
    return request.cookies.get(_device_cookie(context_of(request)), "")


def set_device(response: Response, context: Context, device: str) -> None:
    """Set a cookie that proves an earlier login with this browser; it does not replace a login."""
    name = _device_cookie(context)
    context.set_cookie(response, name, device, path="/api/v1/session", max_age_s=_DEVICE_S, samesite="strict")


def _device_cookie(context: Context) -> str:
    return f"{context.cookie}-device"


def clear_session(response: Response, context: Context) -> None:
    """Delete the session cookie."""
    context.delete_cookie(response, context.cookie, "/")


class Requires:
    """A dependency that accepts a request only if its user has a role."""

    def __init__(self, role: Role) -> None:
        self.role = role

    async def __call__(self, who: Annotated[Principal, Depends(require_user)]) -> Principal:
        """The user of the request."""
        who.require(self.role)
        return who


async def _context(request: Request) -> Context:
    return context_of(request)  # a coroutine, so that FastAPI does not start a thread for it


Server = Annotated[Context, Depends(_context)]
Viewer = Annotated[Principal, Depends(Requires("viewer"))]
Launcher = Annotated[Principal, Depends(Requires("user"))]
Admin = Annotated[Principal, Depends(Requires("admin"))]
