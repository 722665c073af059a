"""HTTP connections with limits: how long a request may take to arrive, and how many connections are open at once."""

import asyncio
import resource
from collections import Counter
from dataclasses import dataclass, field

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import get_remote_addr

from luthier.server.client_addresses import Proxies, source_of

HEAD_S = 10.0
"""Time limit for the first line and the headers of a request."""

BODY_S = 60.0
"""Time limit for the body of a request."""

STALLED_S = 60.0
"""How long a client may stop reading an answer before the connection is closed."""

MOST_PER_ADDRESS = 256
"""How many connections one address may have open; a browser uses up to six for each of its windows."""

_RESERVED_FILES = 128  # for the store, components, logs and what Python itself opens


def most_connections() -> int:
    """The maximum number of connections, so that the process can still open its own files."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 100_000 if allowed == resource.RLIM_INFINITY else max(allowed - _RESERVED_FILES, allowed // 2)


@dataclass(slots=True)
class Limits:
    """The limits of a server and its open connections. Proxies serve many clients, so only `most` applies to them."""

    proxies: Proxies = field(default_factory=Proxies)
    most: int = field(default_factory=most_connections)
    most_per_address: int = MOST_PER_ADDRESS
    head_s: float = HEAD_S
    body_s: float = BODY_S
    stalled_s: float = STALLED_S
    open: Counter[str] = field(default_factory=Counter)

    def admit(self, address: str) -> bool:
        """Count a new connection; return whether it is accepted. `leave` is called for it in either case."""
        source = source_of(address)
        self.open[source] += 1
        is_one_too_many = self.open[source] > self.most_per_address and address not in self.proxies
        return not is_one_too_many and self.open.total() <= self.most

    def leave(self, address: str) -> None:
        """Stop counting a connection that has ended."""
        source = source_of(address)
        self.open[source] -= 1
        if self.open[source] <= 0:
            del self.open[source]


class LimitedHttp(H11Protocol):
    """One connection: refused if there are too many, closed if the client is too slow."""

    limits = Limits()
    _waits_for: str | None = None
    _timer: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _address = "unknown"

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Start to wait for a request."""
        super().connection_made(transport)
        remote = get_remote_addr(transport)
        self._address = remote[0] if remote is not None else "unknown"
        if self.limits.admit(self._address):
            self._wait_for("head")
        else:
            self._refuse(b"503 Service Unavailable", b"too many connections; try again later")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers and the count of this connection."""
        self._wait_for(None)
        self.resume_writing()
        self.limits.leave(self._address)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle the received data, then start the timer for the next part of the request."""
        super().handle_events()
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            self._wait_for("body")
        elif state is h11.IDLE and (self._waits_for == "head" or self.conn.trailing_data[0]):
            self._wait_for("head")
        else:
            self._wait_for(None)

    def pause_writing(self) -> None:
        """Start the timer for a client that does not read the answer."""
        super().pause_writing()
        self._stalled = self.loop.call_later(self.limits.stalled_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop that timer: the client reads again."""
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _wait_for(self, part: str | None) -> None:
        """Start the timer for a part of the request, unless it is already running for this part."""
        if part == self._waits_for:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._waits_for = part
        if part is not None:
            after_s = self.limits.head_s if part == "head" else self.limits.body_s
            self._timer = self.loop.call_later(after_s, self._time_out)

    def _time_out(self) -> None:
        if self._waits_for == "head":
            self._refuse(b"408 Request Timeout", b"the request did not arrive in time")
        else:
            self.transport.abort()  # an answer may already be partly sent

    def _refuse(self, status: bytes, text: bytes) -> None:
        """Answer without reading the request, and close the connection."""
        head = b"HTTP/1.1 %b\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        self.transport.write(head % (status, len(text)) + text)
        self.transport.close()


def protocol_with(limits: Limits) -> type[LimitedHttp]:
    """The protocol class for a server with these limits; uvicorn creates an instance per connection."""
    return type("LimitedHttp", (LimitedHttp,), {"limits": limits})
