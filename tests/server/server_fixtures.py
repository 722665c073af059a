"""A real server on loopback, in a thread of the test's own process."""

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from email.message import Message
from http.client import HTTPResponse
from pathlib import Path
from typing import cast

import pytest
from fastapi import FastAPI

from luthier.launch.worker import Worker
from luthier.server.app import ServerAddress, create_app
from luthier.server.authentication import LOCAL
from luthier.server.connections import Limits
from luthier.server.context import CSRF_HEADER, Context
from luthier.server.oidc import Provider
from luthier.server.serve import server_of
from luthier.store import open_server_store
from luthier.store.base import Status
from luthier.store.ownership import claim
from luthier.store.server_store import Role, ServerStore
from luthier.store.sql import SqlStore
from luthier.trial import Completed, Config, Failed, Lost, Outcome, Pruned, Purpose, Run, TimedOut

PASSWORD = "correct horse battery"
EXPERIMENT = """
experiment: {name: first try, budget: 40, script: "echo $LEVEL"}
definitions:
  knob: {parameters: {LEVEL: {env_var: true, type: int, default: 1}}}
components:
  knob: {LEVEL: {min: 1, max: 99}}
"""


@dataclass(frozen=True)
class Reply:
    """What a server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> object:
        """The body, read as JSON; numbers that JSON does not know are refused."""
        return json.loads(self.body, parse_constant=_refuse)


@dataclass(frozen=True)
class Running:
    """A server that runs: `token` is an administrator's."""

    url: str
    store: ServerStore
    context: Context
    store_url: str
    token: str
    app: FastAPI = field(repr=False)
    stop: Callable[[], None] = field(repr=False)

    def ask(
        self,
        method: str,
        path: str,
        given: object = None,
        *,
        token: str | None = "",
        headers: dict[str, str] | None = None,
        raw: bytes | None = None,
    ) -> Reply:
        """Send one request to the API, as the administrator unless another token or none is named."""
        body = raw if raw is not None else None if given is None else json.dumps(given).encode()
        sent = {"Content-Type": "application/json"} if body is not None else {}
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.token}"
        request = urllib.request.Request(f"{self.url}{path}", body, {**sent, **(headers or {})}, method=method)
        try:
            with _direct().open(request, timeout=60) as answer:
                return _reply(answer)
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, _headers(error.headers), error.read())

    def launch(self, text: str = EXPERIMENT, *, token: str = "") -> int:
        """Queue an experiment, and return its number."""
        reply = self.ask("POST", "/api/v1/experiments", {"yaml": text}, token=token)
        assert reply.status == 201, reply.body
        return int(cast("dict[str, int]", reply.json)["id"])

    def play(self, number: int, outcomes: Sequence[Outcome | None], status: Status | None = "finished") -> None:
        """Write runs that ended so (None: still running) into the store; then give it up, unless it is to go on."""
        history = self.store.history
        record = history.experiment(number)
        owner = claim(history, record)
        known = self.store.queue.changes(number).events
        for place, outcome in enumerate(outcomes, start=record.runs):
            config = Config({"LEVEL": place % 99 + 1})
            purpose: Purpose = "search" if place else "default"
            run = Run(place, place % 99, purpose, config, 100.0 + place, known + 2 * (place - record.runs))
            history.append(number, run)
            if outcome is not None:
                ended = replace(run, finish_order=run.submit_order + 1, started_at=run.submitted_at, duration_s=0.5)
                history.finish(number, replace(ended, outcome=outcome, metrics={"wall": 0.5}))
        if status is not None:
            history.close(number, owner, status, {"verdict": "played", "improved": False})

    def add_user(self, name: str, role: Role) -> str:
        """Add an account with `PASSWORD`, and give a token of it."""
        self.context.authenticator.add_user(name, role, PASSWORD)
        return self.context.authenticator.issue_token(name, "test", None)[0]

    def session(self, name: str) -> dict[str, str]:
        """The headers of a browser of this user."""
        secret = self.context.authenticator.open_session(name)
        who = self.context.authenticator.recognise(secret, "session")
        assert who is not None
        assert who.csrf is not None
        return {"Cookie": f"{self.context.cookie}={secret}", CSRF_HEADER: who.csrf}


Starter = Callable[..., Running]


@pytest.fixture
def start_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Starter]:
    """Starts servers, over a scratch SQLite store unless a URL is given; what users keep is in the test's folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LUTHIER_STORE", raising=False)
    with ExitStack() as stack:
        yield lambda url=None, **options: stack.enter_context(
            running_server(url or f"sqlite:///{tmp_path / 'server.db'}", **options)
        )


@pytest.fixture
def server(start_server: Starter) -> Running:
    """A server without accounts."""
    return start_server()


@pytest.fixture
def worked(start_server: Starter) -> Iterator[Running]:
    """A server with a worker."""
    server = start_server()
    stopped = threading.Event()
    worker = Worker(server.store, server.store_url)
    thread = threading.Thread(target=worker.run, args=(stopped,))
    thread.start()
    yield server
    for record in server.store.queue.waiting():
        server.store.history.request_stop(record.id, "kill")
    stopped.set()
    thread.join()
    while worker.working:
        worker.look()
        time.sleep(0.05)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with an experiment of 120 runs, some of which went wrong; for tests that change nothing."""
    folder = tmp_path_factory.mktemp("played")
    bad: dict[int, Outcome] = {3: Failed("bad \udcff"), 5: TimedOut("slow", 9.0), 7: Pruned("no"), 11: Lost("?")}
    with server_of_its_own(folder) as running:
        number = running.launch(EXPERIMENT.replace("budget: 40", "budget: 200"))
        ended = [bad.get(place, Completed(50.0 + abs(place % 99 - 30))) for place in range(119)]
        running.play(number, [*ended, None], "stopped")
        yield running


@contextmanager
def server_of_its_own(folder: Path) -> Iterator[Running]:
    """A server that keeps everything in this folder, for several tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_DATA_HOME", str(folder))
        patched.delenv("LUTHIER_STORE", raising=False)
        with running_server(f"sqlite:///{folder / 'server.db'}") as running:
            yield running


@contextmanager
def running_server(
    store_url: str,
    *,
    port: int = 0,
    place: Callable[[int], ServerAddress] = ServerAddress,
    provider: Provider | None = None,
    limits: Limits | None = None,
    options: Mapping[str, object] | None = None,
) -> Iterator[Running]:
    """A server over this store, until the block ends; `options` are those of wings, by their names."""
    server_store = open_server_store(store_url)
    with socket.create_server(("127.0.0.1", port), backlog=256) as listening:
        port = listening.getsockname()[1]
        app = create_app(server_store, place(port), provider=provider, options=options)
        uvicorn = server_of(app, limits)
        thread = threading.Thread(target=uvicorn.run, args=([listening],), name="server")
        thread.start()

        def stop() -> None:
            uvicorn.should_exit = True
            thread.join()

        context: Context = app.state.context
        token = context.authenticator.issue_token(LOCAL, "test", None)[0]
        try:
            yield Running(f"http://127.0.0.1:{port}", server_store, context, store_url, token, app, stop)
        finally:
            stop()
            if isinstance(server_store.history, SqlStore):
                server_store.history.dispose()


def _direct() -> urllib.request.OpenerDirector:
    """Past any proxy, and without following redirects."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), _Stay())


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def _reply(answer: HTTPResponse) -> Reply:
    return Reply(answer.status, _headers(answer.headers), answer.read())


def _headers(message: Message) -> dict[str, str]:
    """By name in small letters; several of one name are joined, cookies so that `SimpleCookie` reads them."""
    return {
        name.lower(): ("; " if name.lower() == "set-cookie" else ", ").join(message.get_all(name, []))
        for name in message
    }


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")
