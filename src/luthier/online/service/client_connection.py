"""A connection to the on-line service in which every call has a deadline."""

import ipaddress
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal, TypeAlias

from luthier.online.service import protocol
from luthier.online.service.address import Address, TcpAddress, UnixAddress

Asked: TypeAlias = Literal["hello", "fetch", "report", "best"]

_CHUNK = 1 << 16
_SHORTEST_S = 1e-4  # a time-out of 0 would mean: do not wait at all
_LONGEST_READ_S = 2e-3  # after a deadline, what has already come is read; more may come all the time


class ClientConnection:
    """Sends requests and reads their answers, in order. Any trouble is an `OSError`, after which it must be closed.

    Deadlines are in terms of `time.monotonic`.
    """

    def __init__(self, address: Address, deadline: float) -> None:
        self._buffer = bytearray()
        self._searched = 0  # bytes of the buffer that contain no line end
        self._longest = protocol.LONGEST_LINE
        self._expected: deque[Asked] = deque()
        self._heard = time.monotonic()
        place, family = _place(address, deadline)
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(_left(deadline))
            self._socket.connect(place)
            if family != socket.AF_UNIX:
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException:
            self._socket.close()
            raise

    def send(self, asked: Asked, line: bytes, deadline: float) -> None:
        """Send a request; its answer is among the next ones."""
        if not self._expected:
            self._heard = time.monotonic()
        self._expected.append(asked)
        if asked == "hello":  # it lists the parameters: no configuration is longer
            self._longest = protocol.LONGEST_LINE + len(line)
        self._socket.settimeout(_left(deadline))
        try:
            self._socket.sendall(line)
        except BrokenPipeError:  # a service that takes no more connections closes them at once; `answers` reads why
            if asked != "hello":
                raise

    def answers(self, deadline: float) -> Iterator[tuple[Asked, bytes]]:
        """The answers to all requests, with their kind; fewer if the deadline passes before."""
        last = max(deadline, time.monotonic() + _LONGEST_READ_S)
        while self._expected:
            line = self._next_line()
            if line is None:
                if time.monotonic() > last:
                    return
                self._socket.settimeout(_left(deadline))
                try:
                    data = self._socket.recv(_CHUNK)
                except TimeoutError:
                    return
                if not data:
                    raise ConnectionResetError("the service has closed the connection")
                self._buffer += data
            else:
                self._heard = time.monotonic()
                yield self._expected.popleft(), line
        if self._buffer:
            raise ConnectionError("the service sent an answer without a request")

    @property
    def owed(self) -> int:
        """How many answers have not come yet."""
        return len(self._expected)

    @property
    def silent_s(self) -> float:
        """For how long the service has owed an answer."""
        return time.monotonic() - self._heard if self._expected else 0.0

    def close(self, *, leave: bool = True) -> None:
        """Close the connection; with `leave`, the service is told before, without waiting."""
        if leave:
            with suppress(OSError):  # it is gone, or does not read
                self._socket.settimeout(0.0)
                self._socket.send(protocol.LEAVE_LINE)
        self._socket.close()

    def _next_line(self) -> bytes | None:
        end = self._buffer.find(b"\n", self._searched)
        if end > self._longest or (end < 0 and len(self._buffer) > self._longest):
            raise ConnectionError("an answer of the service is too long")
        if end < 0:
            self._searched = len(self._buffer)
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        return line


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), _SHORTEST_S)


def _place(address: Address, deadline: float) -> tuple[str | tuple[str, int], int]:
    if isinstance(address, UnixAddress):
        return address.path, socket.AF_UNIX
    host = _resolved(address, deadline)
    return (host, address.port), socket.AF_INET6 if ":" in host else socket.AF_INET


def _resolved(address: TcpAddress, deadline: float) -> str:
    """The number of a host; a name server that does not answer is not waited for."""
    try:
        return str(ipaddress.ip_address(address.host))
    except ValueError:
        pass
    found: list[str] = []

    def look_up() -> None:
        with suppress(OSError, UnicodeError):
            answers = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
            found.extend(str(answer[4][0]) for answer in answers)

    looking = threading.Thread(target=look_up, daemon=True)
    looking.start()
    looking.join(_left(deadline))
    if not found:
        raise ConnectionError(f"the host {address.host} is unknown")
    return found[0]
