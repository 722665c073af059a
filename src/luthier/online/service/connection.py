"""One connection of a client to the on-line service."""

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable
from typing import Protocol, cast

from luthier.errors import InvalidInputError, LuthierError, UnavailableError
from luthier.online.service import protocol
from luthier.online.service.protocol import Best, Fetch, Hello, Leave, ReportMessage, Request
from luthier.online.service.sessions import ServedSession
from luthier.server.client_addresses import source_of
from luthier.trial import Config, Value

HELLO_S = 10.0
"""A connection that has not said hello after this time is closed."""

_MOST_ANSWERS, _MOST_BYTES = 256, 1 << 18  # at a time for one client
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
_STARTED_AT = time.time() - time.monotonic()
_log = logging.getLogger(__name__)


class Host(Protocol):
    """What a connection needs of its service."""

    def admit(self, connection: "ServedConnection") -> str | None:
        """Take a new connection; the reason if it is refused."""
        ...

    def joined(self, connection: "ServedConnection") -> None:
        """Note that a connection has joined a session."""
        ...

    def forget(self, connection: "ServedConnection") -> None:
        """Note that a connection has ended."""
        ...

    def open(self, hello: Hello, *, needs_token: bool) -> Awaitable[ServedSession]:
        """Check the token and find the session."""
        ...


class ServedConnection(asyncio.Protocol):
    """Reads lines, answers each with one line, in order."""

    def __init__(self, host: Host, *, needs_token: bool) -> None:
        self._host = host
        self.needs_token = needs_token
        self.source = ""
        self._transport: asyncio.Transport
        self._buffer = bytearray()
        self._searched = 0  # bytes of the buffer that contain no line end
        self._limit = protocol.LONGEST_HELLO
        self._served: ServedSession | None = None
        self._clients: list[str] = []
        self._is_single = True
        self._has_fetched = False
        self._opening: asyncio.Task[None] | None = None
        self._is_closing = False
        self._is_full = False  # the client does not read its answers
        self._is_held = False  # its fetch waits for a decision of the strategy
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for hello."""
        self._transport = cast("asyncio.Transport", transport)
        own = transport.get_extra_info("socket")
        peer = transport.get_extra_info("peername")
        self.source = source_of(str(peer[0])) if isinstance(peer, tuple) else ""
        if own is not None and own.family != socket.AF_UNIX:
            _keep_alive(own)
        refused = self._host.admit(self)
        if refused is not None:
            self._transport.write(self._refuse(refused, retry=True))
            return
        self._timer = asyncio.get_running_loop().call_later(HELLO_S, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Answer the complete lines."""
        if self._is_closing:
            return
        if (
            self._served is not None
            and not (self._buffer or self._is_full or self._is_held)
            and data.find(b"\n") == len(data) - 1 <= self._limit
        ):
            self._transport.write(self._answer(self._served, data))  # the usual case: exactly one line
            return
        self._buffer += data
        self._read_buffer()

    def pause_writing(self) -> None:
        """Do nothing more for a client that does not read its answers."""
        self._is_full = True
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on."""
        self._is_full = False
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 the reason makes no difference
        """Give the configurations of the clients to others."""
        self._is_closing = True
        if self._timer is not None:
            self._timer.cancel()
        if self._opening is not None:
            self._opening.cancel()
        self._leave(lost=True)
        self._host.forget(self)

    @property
    def is_opening(self) -> bool:
        """Whether it has said hello, and is being answered."""
        return self._opening is not None

    def turn_away(self, reason: str) -> None:
        """Close it to make room; its client may come back."""
        if not self._is_closing:
            self._transport.write(self._refuse(reason, retry=True))

    @property
    def _is_paused(self) -> bool:
        return self._is_full or self._is_held or self._opening is not None

    def abandon(self) -> None:
        """Close because the service ends: the clients keep what they have."""
        self._served = None
        self._is_closing = True
        self._transport.close()

    def _read_buffer(self) -> None:
        """Answer some lines; after many of them it is the turn of other clients."""
        answers: list[bytes] = []
        size = 0
        while not (self._is_closing or self._is_paused):
            if len(answers) >= _MOST_ANSWERS or size > _MOST_BYTES:
                self._transport.pause_reading()
                asyncio.get_running_loop().call_soon(self._go_on)
                break
            line = self._next_line()
            if line is None:
                break
            if len(line) > self._limit:
                answers.append(self._refuse(f"the line is longer than {self._limit} bytes"))
            elif self._served is not None:
                answers.append(self._answer(self._served, line))
            else:
                answers.append(self._begin(line))
            size += len(answers[-1])
        self._transport.write(b"".join(answers))

    def _next_line(self) -> bytes | None:
        """The next line of the buffer; all of the buffer if that is too long already, None if it is not complete."""
        end = self._buffer.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._buffer)
            return bytes(self._buffer) if self._searched > self._limit else None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        return line

    def _go_on(self) -> None:
        """Read again after a pause, unless there is another reason for it."""
        if not (self._is_closing or self._is_paused):
            self._transport.resume_reading()
            self._read_buffer()

    def _begin(self, line: bytes) -> bytes:
        """Handle the first line, which must be hello; its answer comes later."""
        try:
            request = protocol.read_request(line)
            if not isinstance(request, Hello):
                return self._refuse("the first line must be hello")
        except LuthierError as error:
            return self._refuse(str(error))
        self._transport.pause_reading()
        self._opening = asyncio.get_running_loop().create_task(self._open(request))
        return b""

    async def _open(self, hello: Hello) -> None:
        answer: bytes
        try:
            served = await self._host.open(hello, needs_token=self.needs_token)
            if self._is_closing:
                return
            self._is_single = hello.clients is None
            name, self._clients = served.join(hello.client, hello.clients)
            self._served, self._limit = served, protocol.longest_line(hello.clients)
            self._host.joined(self)
            answer = protocol.hello_answer(hello.session, name, served.session.phase)
        except LuthierError as error:
            answer = self._refuse(str(error), retry=isinstance(error, UnavailableError))
        except Exception:  # noqa: BLE001 - a strategy may be a plug-in, whose code may fail in any way
            _log.exception("hello of session %r failed", hello.session)
            answer = self._refuse("the service failed; see its log", retry=True)
        self._opening = None
        if self._timer is not None:
            self._timer.cancel()
        self._transport.write(answer)
        self._go_on()

    def _answer(self, served: ServedSession, line: bytes, *, may_hold: bool = True) -> bytes:
        """The answer to one request of a client that has joined."""
        try:
            if served.is_deleted:
                return self._refuse(f"session {served.record.name!r} was deleted")
            request = protocol.FETCH if line == protocol.FETCH_LINE else protocol.read_request(line)
            if may_hold and request is protocol.FETCH and (wait_s := served.wait_s) > 0.0:
                return self._hold(served, wait_s)
            return self._handle(served, request)
        except protocol.NotJsonError as error:
            return self._refuse(str(error))
        except LuthierError as error:
            return protocol.error_answer(str(error))
        except Exception:  # noqa: BLE001 - a strategy may be a plug-in, whose code may fail in any way
            _log.exception("session %r: a request failed", served.record.name)
            return protocol.error_answer("the service failed; see its log")

    def _handle(self, served: ServedSession, request: Request) -> bytes:
        match request:
            case Fetch():
                return self._fetch(served)
            case ReportMessage():
                return self._report(served, request)
            case Best():
                best = served.session.best
                return protocol.best_answer(served.text(best.best), best.value, best.samples, served.session.phase)
            case Leave():
                self._leave(lost=False)
                self._close_soon()
                return protocol.OK_LINE
            case Hello():
                raise InvalidInputError("hello was already sent on this connection; open another one")

    def _hold(self, served: ServedSession, wait_s: float) -> bytes:
        """Answer a fetch when the strategy has decided, or after a while, whatever comes first."""

        def answer() -> None:
            timer.cancel()
            if self._is_held and not self._is_closing:
                self._is_held = False
                self._transport.write(self._answer(served, protocol.FETCH_LINE, may_hold=False))
                self._go_on()

        self._is_held = True
        self._transport.pause_reading()
        timer = asyncio.get_running_loop().call_later(wait_s, answer)
        served.call_when_decided(answer)
        return b""

    def _fetch(self, served: ServedSession) -> bytes:
        now = _now()
        self._has_fetched = True
        if self._is_single:
            return protocol.fetch_answer(served.fetch(self._clients[0], now), served.session.phase)
        texts = [served.fetch(client, now) for client in self._clients]
        return protocol.fetch_many_answer(texts, served.session.phase)

    def _report(self, served: ServedSession, request: ReportMessage) -> bytes:
        if len(request.values) != len(self._clients):
            raise InvalidInputError(
                f"report: has {len(request.values)} values for {len(self._clients)} clients; give one for each client"
            )
        given = request.configs or (None,) * len(request.values)
        if not self._has_fetched and None in given:
            raise InvalidInputError("report: nothing was fetched before; fetch first, or report what was run")
        configs: list[Config | None] = [
            None if config is None else served.space.check(cast("dict[str, Value]", config)) for config in given
        ]
        self._has_fetched = False
        served.report(self._clients, request.values, configs, _now())
        return protocol.OK_LINE

    def _leave(self, *, lost: bool) -> None:
        served, self._served = self._served, None
        if served is None:
            return
        try:
            served.leave(self._clients, _now(), lost=lost)
        except Exception:  # noqa: BLE001 - the same; nobody is there to be told
            _log.exception("session %r: a client could not leave", served.record.name)

    def _refuse(self, message: str, *, retry: bool = False) -> bytes:
        self._close_soon()
        return protocol.error_answer(message, retry=retry)

    def _close_soon(self) -> None:
        """Close when the answer has been written; read nothing more."""
        self._is_closing = True
        asyncio.get_running_loop().call_soon(self._transport.close)

    def _give_up(self) -> None:
        if self._served is None and self._opening is None:
            self._transport.write(self._refuse(f"no hello within {HELLO_S:g} s"))


def _now() -> float:
    """The time of day, without the jumps of a clock that is set: sessions measure by it how long iterations take."""
    return _STARTED_AT + time.monotonic()


def _keep_alive(own: socket.socket) -> None:
    """Notice a machine that has vanished within about a minute."""
    own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            own.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
