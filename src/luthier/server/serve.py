"""The process that answers requests."""

import gc
import socket

import uvicorn
from fastapi import FastAPI

from luthier.server.connections import Limits, protocol_with
from luthier.server.context import Context

GRACE_S = 10
"""How long active requests may take when the server stops."""

_COLLECT = (50_000, 20, 100)
"""Thresholds of the garbage collector. The cached runs are many and contain no cycles; with the default thresholds,
searching them stops all requests for about 0.1 s, several times per second."""


class LuthierServer(uvicorn.Server):
    """A server that can stop while event streams are open: it closes them first, and browsers reconnect later."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start what must be ready before the first request, then accept connections."""
        context: Context = self.config.app.state.context  # type: ignore[union-attr]  # it is set below
        for part in context.parts.values():
            part.start()
        await _build_routes(self.config.app)  # type: ignore[arg-type]  # the same
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all event streams, then stop."""
        context: Context = self.config.app.state.context  # type: ignore[union-attr]  # it is set below
        context.experiment_events.close()
        context.list_events.close()
        for part in context.parts.values():
            part.close()
        await super().shutdown(sockets)


async def _build_routes(app: FastAPI) -> None:
    """Answer a request of the server itself: FastAPI builds its routes then, too slowly for a job that waits."""
    path, host = "/api/v1/health", [(b"host", b"localhost")]
    about = {"type": "http", "http_version": "1.1", "scheme": "http", "client": None, "root_path": ""}
    scope = {**about, "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": host}

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b""}

    async def send(_: object) -> None:
        pass

    await app(scope, receive, send)


def server_of(app: FastAPI, limits: Limits | None = None) -> LuthierServer:
    """The server for an application; its method `run` takes the sockets to listen on.

    X-Forwarded-For headers are used only if they come from one of the proxies in `limits`.
    """
    limits = limits or Limits()
    return LuthierServer(
        uvicorn.Config(
            app,
            http=protocol_with(limits),
            ws="none",
            log_level="warning",
            access_log=False,
            proxy_headers=bool(limits.proxies.networks),
            forwarded_allow_ips=limits.proxies.texts,
            timeout_graceful_shutdown=GRACE_S,
            server_header=False,
        )
    )


def serve(app: FastAPI, listening: socket.socket, limits: Limits | None = None) -> None:
    """Answer requests until SIGINT or SIGTERM; a second SIGINT stops immediately."""
    gc.freeze()
    gc.set_threshold(*_COLLECT)
    server_of(app, limits).run(sockets=[listening])
