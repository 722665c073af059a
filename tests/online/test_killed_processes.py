"""Real processes killed with -9: clients at random times, and the service in the middle."""

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from benchmarks.online_clients import OPTIMUM, SPACE
from tests.online.serving import PATIENCE_S, ServiceProcess

from luthier.online.records import OnlineRecord
from luthier.online.service import protocol
from luthier.online.service.address import parse_address
from luthier.online.service.client_connection import ClientConnection
from luthier.online.service.protocol import Hello
from luthier.online.store import online_sessions_in
from luthier.store import open_server_store
from luthier.store.sql import SqlStore
from luthier.trial import Sample

ROOT = Path(__file__).parents[2]
BASELINE = 10_000


@pytest.fixture(params=["sqlite"])
def url(request: pytest.FixtureRequest, folder: Path) -> str:
    """A store; in each kind of database only where a test asks for it."""
    if request.param == "sqlite":
        return f"sqlite:///{folder}/x.db"
    return str(request.getfixturevalue("postgresql_url"))


@pytest.fixture
def process(folder: Path, url: str) -> Iterator[ServiceProcess]:
    started = ServiceProcess(folder, url)
    started.start()
    yield started
    started.end()


def clients(address: str, *options: str) -> dict[str, Any]:
    words = [sys.executable, "-m", "benchmarks.online_clients", address, "--limit", str(PATIENCE_S), *options]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def stored(url: str, name: str) -> tuple[OnlineRecord, list[Sample]]:
    """A session and its samples, as the store has them."""
    store = open_server_store(url)
    record = online_sessions_in(store).find("local", name)
    assert record is not None
    samples = list(online_sessions_in(store).samples(record.id))
    assert isinstance(store.history, SqlStore)
    store.history.dispose()
    return record, samples


def test_clients_that_are_killed_change_no_winner(process: ServiceProcess, url: str) -> None:
    usual = ("--processes", "16", "--iterations", "150", "--pause", "0.002")
    alone = clients(process.address, "--session", "whole", *usual)
    assert alone["finished"] == 16
    killed = clients(process.address, "--session", "killed", *usual, "--kill", "6", "--within", "0.3", "--seed", "3")
    assert killed["killed"] >= 3  # the others were quicker
    assert killed["finished"] + killed["killed"] == 16
    for run in (alone, killed):
        assert {json.dumps(one["config"]) for one in run["clients"]} == {json.dumps(dict(OPTIMUM))}
        assert {one["phase"] for one in run["clients"]} == {"converged"}
    assert "Traceback" not in process.end()
    process.start()
    for name in ("whole", "killed"):
        record, _ = stored(url, name)
        assert record.view is not None
        assert record.view["clients"] == []
        assert record.view["best"]["config"] == dict(OPTIMUM)  # type: ignore[call-overload, index]


class Acknowledged:
    """A client that remembers which of its reports were acknowledged; the value tells them apart."""

    def __init__(self, address: str, number: int, ended: threading.Event) -> None:
        self.values: list[float] = []
        self.fetched = self.connections = 0
        self._address, self._number, self._ended = parse_address(address), number, ended
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            with suppress(OSError):
                self._work(ClientConnection(self._address, time.monotonic() + PATIENCE_S))
            time.sleep(0.01)

    def _work(self, connection: ClientConnection) -> None:
        hello = Hello("s", f"client {self._number}", None, SPACE.to_json(), {"baseline": BASELINE})
        try:
            self._exchange(connection, protocol.hello_line(hello))
            self.connections += 1
            while not self._ended.is_set():
                self._exchange(connection, protocol.FETCH_LINE)
                self.fetched += 1
                time.sleep(0.002)  # fewer samples than `baseline` in all: then every one of them must be kept
                value = self._number + self.fetched / 1e6
                self._exchange(connection, protocol.report_line(value))
                self.values.append(value)
        finally:
            connection.close()

    def _exchange(self, connection: ClientConnection, line: bytes) -> None:
        deadline = time.monotonic() + PATIENCE_S
        connection.send("fetch", line, deadline)
        for _, answer in connection.answers(deadline):
            assert json.loads(answer)["ok"], answer


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_nothing_acknowledged_is_lost_when_the_service_is_killed(process: ServiceProcess, url: str) -> None:
    rng, ended = random.Random(7), threading.Event()
    running = [Acknowledged(process.address, number, ended) for number in range(1, 5)]
    try:
        for kill in range(1, 5):
            end = time.monotonic() + PATIENCE_S
            while any(one.connections < kill for one in running):
                assert time.monotonic() < end
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 0.6))  # any moment: before, during and after writes to the store
            process.kill()
            process.start()
    finally:
        ended.set()
        for one in running:
            one.thread.join(PATIENCE_S)
    process.kill()
    process.start()
    record, samples = stored(url, "s")
    kept = [sample.value for sample in samples]
    acknowledged = [value for one in running for value in one.values]
    assert 100 < len(acknowledged) < BASELINE
    assert set(acknowledged) <= set(kept)
    assert len(kept) == len(set(kept))
    assert len(kept) - len(acknowledged) <= len(running) * 5  # at most one of each client was on its way at a kill
    assert [sample.number for sample in samples] == list(range(1, len(samples) + 1))
    assert record.status == "running"


def test_a_killed_service_restores_a_session_to_the_same_best(process: ServiceProcess, url: str) -> None:
    first = clients(process.address, "--processes", "4", "--iterations", "12")
    before = _best(process)
    process.kill()
    process.start()
    assert _best(process) == before
    assert first["finished"] == 4
    later = clients(process.address, "--processes", "4", "--iterations", "200")
    assert {json.dumps(one["config"]) for one in later["clients"]} == {json.dumps(dict(OPTIMUM))}


def test_clients_go_on_while_the_service_is_killed_and_restarted(process: ServiceProcess) -> None:
    words = [sys.executable, "-m", "benchmarks.online_clients", process.address, "--processes", "8"]
    words += ["--iterations", "1500", "--pause", "0.004", "--limit", str(PATIENCE_S)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        for _ in range(2):
            time.sleep(0.7)  # somewhere in the middle
            process.kill()
            process.start()
        said, _ = running.communicate(timeout=2 * PATIENCE_S)
    assert json.loads(said)["finished"] == 8
    expected = {json.dumps(dict(OPTIMUM))}
    for _ in range(3):
        winners = {json.dumps(one["config"]) for one in json.loads(said)["clients"]}
        if winners == expected:
            break  # else the machine is busy, and the program has ended before its search: the next one goes on with it
        said = subprocess.run(
            words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=2 * PATIENCE_S
        ).stdout
    assert winners == expected


def _best(process: ServiceProcess) -> object:
    deadline = time.monotonic() + PATIENCE_S
    connection = ClientConnection(parse_address(process.address), deadline)
    try:
        connection.send("hello", protocol.hello_line(Hello("clients", "looking")), deadline)
        connection.send("best", protocol.BEST_LINE, deadline)
        *_, (_, answer) = connection.answers(deadline)
        return json.loads(answer)
    finally:
        connection.close()
