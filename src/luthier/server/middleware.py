"""Middleware for every request: headers, size limit, timing."""

import time
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from luthier.server.json_response import SafeJsonResponse

MOST_BYTES = 2_000_000
"""The maximum size of a request body."""

_MOST_DISCARDED_BYTES = 20_000_000
_HEALTH = "/api/v1/health"
_MOST_DIGITS = 15
_MOST_SIGNS = 150_000
_TOO_MANY = f"the request has more than {_MOST_SIGNS} commas and brackets"
_TOO_LONG = f"the request is longer than {MOST_BYTES} bytes"

_POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_ONLY_HTTPS = "max-age=31536000"  # a year


class SafeHeaders:
    """Adds security headers to every answer; with HTTPS, browsers are told to use only HTTPS from then on."""

    def __init__(self, app: ASGIApp, *, is_https: bool = False) -> None:
        self._app = app
        self._headers = {**_HEADERS, **({"Strict-Transport-Security": _ONLY_HTTPS} if is_https else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                if scope["path"].startswith("/api/"):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, with_headers)


class HeadRequests:
    """Answers HEAD like GET without the body, for pages, their files and the health of the server.

    A route for HEAD would be a second operation in the OpenAPI document.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path = scope.get("path", "")
        is_known = path == _HEALTH or not path.startswith(("/api/", "/oidc/"))  # streams there never end
        if scope["type"] != "http" or scope["method"] != "HEAD" or not is_known:
            await self._app(scope, receive, send)
            return

        async def without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self._app({**scope, "method": "GET"}, receive, without_body)


class LimitedBody:
    """Rejects bodies that are too long, with or without a Content-Length header.

    Also those with many commas or brackets: reading 2 MB of `[],` as JSON would stop all other requests for 0.1 s.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, unless it is too long."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = Headers(scope=scope).get("content-length", "")
        if said.isascii() and said.isdigit() and (len(said) > _MOST_DIGITS or int(said) > MOST_BYTES):
            await _discard_body(receive, await receive())
            await SafeJsonResponse({"error": _TOO_LONG}, 413, {"Connection": "close"})(scope, receive, send)
            return
        seen = signs = 0

        async def limited() -> Message:
            nonlocal seen, signs
            message = await receive()
            body = message.get("body", b"")
            seen, signs = seen + len(body), signs + sum(map(body.count, (b",", b"[", b"{")))
            if seen > MOST_BYTES or signs > _MOST_SIGNS:
                await _discard_body(receive, message)
                said = _TOO_LONG if seen > MOST_BYTES else _TOO_MANY
                raise HTTPException(413, said, {"Connection": "close"})  # the only error that FastAPI passes on
            return message

        await self._app(scope, limited, send)


async def _discard_body(receive: Receive, message: Message) -> None:
    """Discard the rest of a body, up to a limit: a client reads the answer only after it has sent everything."""
    left = _MOST_DISCARDED_BYTES
    while message.get("more_body", False) and left > 0:
        message = await receive()
        left -= len(message.get("body", b"")) + 1


class TimedRequests:
    """Reports the duration of each request: method, operation, status, seconds. Event streams are left out."""

    def __init__(self, app: ASGIApp, report: Callable[[str, str, int, float], None]) -> None:
        self._app = app
        self._report = report

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request and report its duration."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, is_stream = 500, False

        async def watched(message: Message) -> None:
            nonlocal status, is_stream
            if message["type"] == "http.response.start":
                status = message["status"]
                is_stream = Headers(raw=message["headers"]).get("content-type", "").startswith("text/event-stream")
            await send(message)

        began = time.perf_counter()
        try:
            await self._app(scope, receive, watched)
        finally:
            if not is_stream:
                route = getattr(scope.get("route"), "name", "nothing")
                self._report(scope["method"], route, status, time.perf_counter() - began)
