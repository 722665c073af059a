"""A real on-line service for tests: in a thread of this process, or a process of its own that can be killed."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from luthier.online.service.access import Access
from luthier.online.service.address import Address, UnixAddress
from luthier.online.service.service import OnlineService
from luthier.online.session import OnlineSession
from luthier.online.session_view import SessionView
from luthier.space import Choice, Integer, Space
from luthier.store import open_server_store
from luthier.store.server_store import ServerStore
from luthier.store.sql import SqlStore
from luthier.trial import Config, Value

PATIENCE_S = 60.0
SECRET = "a-token-that-only-tests-know"
SPACE = Space(Integer("block", 1, 64, default=1), Integer("depth", 1, 8, default=1), Choice("mode", ["plain", "fused"]))
BEST: Mapping[str, Value] = {"block": 20, "depth": 3, "mode": "plain"}


def cost(config: Mapping[str, Value]) -> float:
    """What an iteration takes: convex, best at `BEST`."""
    block, depth = config["block"], config["depth"]
    assert isinstance(block, int)
    assert isinstance(depth, int)
    return 1.0 + abs(block - 20) / 20 + abs(depth - 3) + (config["mode"] == "fused")


def until(true: Callable[[], object]) -> None:
    """Wait until something holds, with a bound."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


class Wire:
    """A connection that sends raw bytes and reads answers."""

    def __init__(self, address: Address) -> None:
        if isinstance(address, UnixAddress):
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(PATIENCE_S)
            self._socket.connect(address.path)
        else:
            self._socket = socket.create_connection((address.host, address.port), timeout=PATIENCE_S)
        self._lines = self._socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def line(self) -> bytes:
        """The next line; empty if the connection was closed."""
        try:
            return self._lines.readline()
        except ConnectionResetError:
            return b""

    def ask(self, **request: object) -> dict[str, Any]:
        self.send(json.dumps(request).encode() + b"\n")
        answer = json.loads(self.line())
        assert isinstance(answer, dict)
        return answer

    def hello(self, session: str = "s", client: str = "c", **more: object) -> dict[str, Any]:
        given = {"space": SPACE.to_json(), "settings": {"strategy": "pro", "samples": 1}, **more}
        return self.ask(op="hello", protocol=1, session=session, client=client, **given)

    def run(self, steps: int) -> dict[str, Any]:
        """Fetch, compute and report, and return the last answer to fetch."""
        fetched: dict[str, Any] = {}
        for _ in range(steps):
            fetched = self.ask(op="fetch")
            assert fetched["ok"], fetched
            assert self.ask(op="report", value=cost(fetched["config"])) == {"ok": True}
        return fetched

    def is_closed(self) -> bool:
        """Whether the service has closed the connection (waits for it)."""
        return self.line() == b""

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Serving:
    """A service in a thread."""

    def __init__(self, url: str, folder: Path, listen: Sequence[str]) -> None:
        self.store: ServerStore = open_server_store(url)
        self.service = OnlineService(self.store, listen, Access(self.store.accounts, SECRET), folder=folder)
        self.addresses: Sequence[Address] = ()
        self.error: Exception | None = None
        self._stopped, self._ready = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)
        if self.error is not None:
            self.end()
            raise self.error

    @property
    def unix(self) -> Address:
        return self.addresses[0]

    def wire(self, address: Address | None = None) -> Wire:
        return Wire(address or self.unix)

    def session(self, name: str, author: str = "local") -> OnlineSession:
        """A session in the memory of the service."""
        return self.service._sessions._served[author, name].session

    def view(self, name: str) -> SessionView:
        """What a session looks like; it may change in the thread of the service at the same time."""
        while True:
            try:
                return self.session(name).view()
            except RuntimeError:  # a dictionary has changed
                continue

    def end(self) -> None:
        self._stopped.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        assert isinstance(self.store.history, SqlStore)
        self.store.history.dispose()

    def _run(self) -> None:
        try:
            self.service.run(self._stopped, self._note)
        except Exception as error:  # noqa: BLE001 - raised again by the test's own thread
            self.error = error
            self._ready.set()

    def _note(self, addresses: Sequence[Address]) -> None:
        self.addresses = addresses
        self._ready.set()


@contextmanager
def serving(url: str, folder: Path, *more: str) -> Iterator[Serving]:
    """A service in a thread, on a unix socket and on further addresses."""
    running = Serving(url, folder, [f"unix:{folder}/s", *more])
    try:
        yield running
    finally:
        running.end()
    assert running.error is None


class ServiceProcess:
    """`luthier online` as people start it, on a unix socket."""

    def __init__(self, folder: Path, url: str) -> None:
        self.address = f"unix:{folder}/p"
        self._environment = {**os.environ, "XDG_DATA_HOME": str(folder / "data"), "LUTHIER_STORE": url}
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        words = [sys.executable, "-m", "luthier", "online", "--listen", self.address]
        self._process = subprocess.Popen(words, env=self._environment, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        lines = []
        for line in self._process.stderr:
            lines.append(line)
            if "Ctrl-C" in line:
                return
        raise RuntimeError("".join(lines))

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """With -9; nothing is written any more."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE_S)
        assert self._process.stderr is not None
        self._process.stderr.close()

    def end(self) -> str:
        """Ctrl-C; what it wrote after its start."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)
        self._process.send_signal(signal.SIGINT)
        _, said = self._process.communicate(timeout=PATIENCE_S)
        assert self._process.returncode == 0, said
        return said


def optimum() -> Config:
    """The best configuration."""
    return SPACE.check(BEST)
