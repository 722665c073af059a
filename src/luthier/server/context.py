"""What every request is served with, and who is asking."""

import hmac
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request, Response
from fastapi.security import HTTPBearer

from luthier.server.access import SESSION_S, AccessError, Doorkeeper, ForbiddenError, Principal
from luthier.server.feed import Feed
from luthier.server.live import Live
from luthier.server.metrics import Metrics
from luthier.server.operations import Operations
from luthier.server.passwords import PasswordQueue
from luthier.server.results import Results
from luthier.spec.library import Library
from luthier.store.server_store import Books, Role

CSRF_HEADER = "X-Luthier-CSRF"
_DEVICE_S = 365 * 24 * 3600.0
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_BEARER = HTTPBearer(auto_error=False, description="A token made on the page of your account, or by POST /me/tokens.")


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of a running server."""

    books: Books
    library: Library
    door: Doorkeeper
    operations: Operations
    results: Results
    live: Live
    feed: Feed
    metrics: Metrics
    passwords: PasswordQueue
    cookie: str
    is_https: bool = False


def context_of(request: Request) -> Context:
    """The server that a request came to."""
    context: Context = request.app.state.context
    return context


def visitor(request: Request) -> Principal | None:
    """Who is asking: by a token in the header, or by the session of a browser; None if nobody is known."""
    context = context_of(request)
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        who = context.door.recognise(secret.strip(), "token")
    else:
        session = request.cookies.get(context.cookie)
        who = None if session is None else context.door.recognise(session, "session")
    request.state.who = who
    return who


def known_visitor(request: Request) -> Principal | None:
    """Who was recognised earlier in this request; the store is not asked again."""
    who: Principal | None = getattr(request.state, "who", None)
    return who


def require_own_page(request: Request, csrf: str | None) -> None:
    """Refuse a change that a page of another site may have sent in somebody's name.

    Another site can make a browser send its cookies, but neither this header nor the right value of it.
    """
    if request.method in _SAFE:
        return
    sent = request.headers.get(CSRF_HEADER, "")
    if not sent or (csrf is not None and not hmac.compare_digest(sent.encode(), csrf.encode())):
        raise ForbiddenError(f"the header {CSRF_HEADER} is missing or stale; reload the page")


def somebody(request: Request, _: Annotated[object, Depends(_BEARER)]) -> Principal:
    """Whoever is asking; nobody else gets any further."""
    who = visitor(request)
    if who is None:
        raise AccessError("log in first, or send a token: Authorization: Bearer TOKEN")
    if who.csrf is not None:
        require_own_page(request, who.csrf)
    return who


def address_of(request: Request) -> str:
    """Where a request came from."""
    return request.client.host if request.client is not None else "unknown"


def set_session(response: Response, context: Context, secret: str) -> None:
    """Let a browser keep its session, out of the reach of scripts and of other sites."""
    response.set_cookie(
        context.cookie,
        secret,
        max_age=int(SESSION_S),
        path="/",
        secure=context.is_https,
        httponly=True,
        samesite="lax",
    )


def device_in(request: Request) -> str:
    """What the browser keeps of an earlier log-in; empty if nothing."""
    return request.cookies.get(_device_cookie(context_of(request)), "")


def set_device(response: Response, context: Context, device: str) -> None:
    """Let a browser show later that somebody has logged in with it; it lets nobody in."""
    response.set_cookie(
        _device_cookie(context),
        device,
        max_age=int(_DEVICE_S),
        path="/api/v1/session",
        secure=context.is_https,
        httponly=True,
        samesite="strict",
    )


def _device_cookie(context: Context) -> str:
    return f"{context.cookie}-device"


def clear_session(response: Response, context: Context) -> None:
    """Let a browser forget its session."""
    response.delete_cookie(context.cookie, path="/", secure=context.is_https, httponly=True, samesite="lax")


class Requires:
    """Lets a request through only if whoever is asking has a role."""

    def __init__(self, role: Role) -> None:
        self.role = role

    async def __call__(self, who: Annotated[Principal, Depends(somebody)]) -> Principal:
        """Whoever is asking."""
        who.require(self.role)
        return who


async def _context(request: Request) -> Context:
    return context_of(request)  # as a coroutine it needs no thread


Server = Annotated[Context, Depends(_context)]
Viewer = Annotated[Principal, Depends(Requires("viewer"))]
Launcher = Annotated[Principal, Depends(Requires("user"))]
Admin = Annotated[Principal, Depends(Requires("admin"))]
