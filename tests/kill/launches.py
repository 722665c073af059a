"""Launches experiments through REST, with one key each, until the server has answered."""

import json
import secrets
import threading
import time
import urllib.request
from collections.abc import Callable
from queue import Empty, Queue

from tests.kill.site import Site

from luthier import Client
from luthier.errors import UnavailableError

_USER = "robot"
_RETRY_S = 0.1
_TIMEOUT_S = 20.0


class Launches:
    """A thread that launches what is asked for; a launch whose answer did not arrive is repeated with the same key.

    `address` tells where the server is at the moment, or None while there is none. `takes_s` is how long the last
    launch took; `repeated` counts the launches that were in the store already when they were repeated.
    """

    def __init__(self, site: Site, address: Callable[[], str | None]) -> None:
        self.names: list[str] = []
        self.takes_s = 0.05
        self.repeated = 0
        self.problem: BaseException | None = None
        self._site = site
        self._address = address
        self._password = secrets.token_hex(16)
        self._token: str | None = None
        self._wanted: Queue[tuple[str, int]] = Queue()
        self._open = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="launches")

    def start(self) -> None:
        """Make the account that launches, and begin."""
        self._site.run("user", "add", _USER, "--role", "admin", "--password-stdin", text=f"{self._password}\n")
        self._thread.start()

    def ask(self, name: str, seed: int) -> None:
        """Launch an experiment soon."""
        self.names.append(name)
        self._open += 1
        self._wanted.put((name, seed))

    @property
    def open(self) -> int:
        """How many have not been answered yet."""
        if self.problem is not None:
            raise self.problem
        return self._open

    def end(self) -> None:
        """Launch nothing more."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        try:
            while not self._ended.is_set():
                try:
                    name, seed = self._wanted.get(timeout=_RETRY_S)
                except Empty:
                    continue
                self._launch(name, seed)
                self._open -= 1
        except BaseException as error:  # noqa: BLE001 it is raised in the thread that asks
            self.problem = error

    def _launch(self, name: str, seed: int) -> None:
        was_stored = False
        while not self._ended.is_set():
            address = self._address()
            if address is not None:
                began = time.monotonic()
                try:
                    self._create(address, name, seed)
                except (UnavailableError, OSError):
                    # Killed meanwhile: it does not know whether the experiment was launched, and asks for it again.
                    was_stored = any(record.name == name for record in self._site.records())
                else:
                    self.takes_s = time.monotonic() - began
                    self.repeated += was_stored
                    return
            self._ended.wait(_RETRY_S)

    def _create(self, address: str, name: str, seed: int) -> None:
        if self._token is None:
            self._token = _token(address, self._password)
        Client(address, self._token, timeout_s=_TIMEOUT_S).create(self._site.document(name, seed), key=name)


def _token(address: str, password: str) -> str:
    """A token for programs, made by logging in."""
    headers = {"X-Luthier-CSRF": "log in", "Content-Type": "application/json"}
    answer, cookie = _post(f"{address}/api/v1/session", {"name": _USER, "password": password}, headers)
    user = answer["user"]
    assert isinstance(user, dict)
    headers |= {"X-Luthier-CSRF": str(user["csrf"]), "Cookie": cookie}
    return str(_post(f"{address}/api/v1/me/tokens", {"label": "kill benchmark"}, headers)[0]["token"])


def _post(url: str, given: dict[str, str], headers: dict[str, str]) -> tuple[dict[str, object], str]:
    request = urllib.request.Request(url, json.dumps(given).encode(), headers, method="POST")
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
        cookie = str(answer.headers.get("set-cookie", "")).partition(";")[0]
        return json.load(answer), cookie
