"""The process that answers requests."""

import gc
import socket

import uvicorn
from fastapi import FastAPI

from luthier.server.connections import Limits, protocol_with
from luthier.server.context import Context

GRACE_S = 10
"""How long requests under way may take when the server ends."""

_COLLECT = (50_000, 20, 100)
"""How rarely to look for garbage in cycles: the runs kept for results are many and have none, and whenever they are
searched, which usually is several times a second, everybody waits for a tenth of it."""


class LuthierServer(uvicorn.Server):
    """A server that ends although streams are open: their listeners are told first, and come back to the next one."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all streams, then everything else."""
        context: Context = self.config.app.state.context  # type: ignore[union-attr]  # it is made below
        context.live.close()
        context.feed.close()
        await super().shutdown(sockets)


def server_of(app: FastAPI, limits: Limits | None = None) -> LuthierServer:
    """The server of an application; its method `run` takes the sockets to listen on.

    What a request says about where it came from is believed only if it comes from one of the proxies of `limits`.
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
    """Answer requests until SIGINT or SIGTERM; a second SIGINT waits for nothing."""
    gc.freeze()
    gc.set_threshold(*_COLLECT)
    server_of(app, limits).run(sockets=[listening])
