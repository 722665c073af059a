"""A service that does what a test tells it, and the driver of the C client."""

import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from luthier.trial import Json

WAIT_S = 60.0
PATIENT = {"LUTHIER_TIMEOUT_MS": "30000"}
"""Calls wait for long: a loaded machine may be slow to answer."""
CONFIG: Mapping[str, Json] = {"block": 128, "depth": 1 << 33, "ratio": 0.5, "engine": '"Größe"', "level": "high"}


class Connection:
    """One connection of a client, as the service sees it."""

    def __init__(self, plain: socket.socket) -> None:
        self._socket = plain
        self._file = plain.makefile("rb")

    def request(self) -> dict[str, Json]:
        """The next request; an `EOFError` at the end of the connection."""
        line = self._file.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        request: dict[str, Json] = json.loads(line)
        return request

    def send(self, *answers: Json | bytes) -> None:
        """Send answers, or bytes as they are."""
        for answer in answers:
            self._socket.sendall(answer if isinstance(answer, bytes) else json.dumps(answer).encode() + b"\n")

    def stop_reading(self) -> None:
        """Let the client's next bytes fail, while the connection is open for answers."""
        self._socket.shutdown(socket.SHUT_RD)

    def close(self) -> None:
        """End the connection."""
        self._file.close()
        self._socket.close()


Behaviour = Callable[[Connection, "Peer"], None]


class Peer:
    """Listens on a unix socket; the n-th connection gets the n-th behaviour, the last one all others."""

    def __init__(self, listener: socket.socket, address: str, behaviours: Sequence[Behaviour]) -> None:
        self.address = address
        self.connections = 0
        self.requests: list[dict[str, Json]] = []
        self.stopped = threading.Event()
        self._listener, self._behaviours = listener, behaviours
        self._threads: list[threading.Thread] = []
        self._changed = threading.Condition()
        self._ended = 0

    def accept(self) -> None:
        """Serve connections until the listener is closed."""
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            plain.settimeout(WAIT_S)
            behaviour = self._behaviours[min(self.connections, len(self._behaviours) - 1)]
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(behaviour, Connection(plain)))
            self._threads.append(thread)
            thread.start()

    def record(self, request: dict[str, Json]) -> None:
        """Note a request that was received."""
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()

    def wait_for(self, op: str, count: int = 1) -> list[dict[str, Json]]:
        """The requests of a kind, once there are so many."""
        with self._changed:
            found = self._changed.wait_for(lambda: len(self.of(op)) >= count, WAIT_S)
        assert found, (op, self.requests)
        return self.of(op)

    def wait_for_end(self, count: int = 1) -> None:
        """Wait until so many connections were closed."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._ended >= count, WAIT_S)

    def of(self, op: str) -> list[dict[str, Json]]:
        """The requests of a kind."""
        return [request for request in self.requests if request["op"] == op]

    def join(self) -> None:
        """Wait for all connections to end."""
        self.stopped.set()
        for thread in self._threads:
            thread.join(WAIT_S)
            assert not thread.is_alive()

    def _serve(self, behaviour: Behaviour, connection: Connection) -> None:
        with suppress(EOFError, OSError):
            behaviour(connection, self)
        connection.close()
        with self._changed:
            self._ended += 1
            self._changed.notify_all()


def well_behaved(connection: Connection, peer: Peer, config: Mapping[str, Json] = CONFIG) -> None:
    """Answer every request as the protocol says."""
    while True:
        request = connection.request()
        peer.record(request)
        connection.send(answer_to(request, config))


def answer_to(request: Mapping[str, Json], config: Mapping[str, Json] = CONFIG) -> Json:
    """What a service answers."""
    answers: dict[str, Json] = {
        "hello": {"ok": True, "protocol": 1, "session": request.get("session"), "phase": "searching"},
        "fetch": {"ok": True, "config": dict(config), "phase": "searching"},
        "report": {"ok": True},
        "best": {"ok": True, "config": dict(config), "value": 0.5, "samples": 3, "phase": "converged"},
        "leave": {"ok": True},
    }
    return answers[str(request["op"])]


@contextmanager
def peer(folder: Path, *behaviours: Behaviour, tcp: bool = False) -> Iterator[Peer]:
    """A running service."""
    listener = socket.socket(socket.AF_INET if tcp else socket.AF_UNIX)
    listener.bind(("127.0.0.1", 0) if tcp else str(folder / "peer.sock"))
    listener.listen(64)
    address = f"tcp:localhost:{listener.getsockname()[1]}" if tcp else f"unix:{folder / 'peer.sock'}"
    running = Peer(listener, address, behaviours)
    thread = threading.Thread(target=running.accept)
    thread.start()
    try:
        yield running
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(WAIT_S)
        running.join()


class Driver:
    """The C program that makes the calls a test asks for."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin: IO[str] = process.stdin
        self._stdout: IO[str] = process.stdout

    def do(self, line: str) -> dict[str, Json]:
        """Make a call; its answer."""
        self._stdin.write(line + "\n")
        self._stdin.flush()
        answer: dict[str, Json] = json.loads(self._stdout.readline())
        return answer

    def close(self) -> str:
        """End the program, which must find no fault in itself; what it wrote to stderr."""
        self._stdin.write("close\n")
        self._stdin.flush()
        _, errors = self.process.communicate(timeout=WAIT_S)
        assert self.process.returncode == 0, errors
        return errors


@contextmanager
def driver(program: Path, address: str, *arguments: str, **variables: str) -> Iterator[Driver]:
    """The running program; it ends with the block at the latest."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("LUTHIER_")}
    environment |= {"LUTHIER_ONLINE": address, **variables}
    with subprocess.Popen(
        [program, *arguments], stdin=-1, stdout=-1, stderr=-1, env=environment, text=True, encoding="utf-8"
    ) as process:
        killer = threading.Timer(WAIT_S, process.kill)
        killer.start()
        try:
            yield Driver(process)
        finally:
            killer.cancel()
            process.kill()
