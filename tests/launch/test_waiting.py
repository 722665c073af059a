"""A queued experiment says what it waits for."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.server.test_stop_now import wait_until

from luthier.launch.worker import Worker
from luthier.result.waiting import waiting_for
from luthier.store import open_server_store
from luthier.store.base import Owner, RequestedBy
from luthier.store.ownership import this_process
from luthier.store.server_store import ServerStore


@pytest.fixture
def server_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServerStore:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return open_server_store(str(tmp_path / "s.db"))


def sentence(server_store: ServerStore, number: int, now: float = 100.0) -> str:
    return waiting_for(server_store.queue, server_store.history.experiment(number), now).sentence


def test_what_it_waits_for(server_store: ServerStore) -> None:
    one, two, three = (server_store.history.create("x", {}, 0.0, RequestedBy("ann")).id for _ in range(3))
    assert sentence(server_store, one) == "no worker is running; start one with: luthier worker"
    server_store.queue.note_worker(Owner("elsewhere", 1, "1"), 90.0)
    assert sentence(server_store, one) == "a worker is about to start it"
    assert sentence(server_store, two) == "1 experiment is before it in the queue, and 0 are running"
    server_store.history.claim(one, this_process(), 1.0, None)
    assert sentence(server_store, two) == "it is next in the queue; 1 is running"
    assert sentence(server_store, three) == "1 experiment is before it in the queue, and 1 is running"
    assert sentence(server_store, two, 1000.0).startswith("no worker")  # it was not seen for minutes


def test_a_worker_is_known_while_it_runs(server_store: ServerStore) -> None:
    number = server_store.history.create("x", {}, 0.0, RequestedBy("ann")).id
    stopped = threading.Event()
    thread = threading.Thread(target=Worker(server_store, None, local=0).run, args=(stopped,))
    thread.start()
    wait_until(lambda: bool(server_store.queue.workers()))
    assert sentence(server_store, number) == "a worker is about to start it"
    stopped.set()
    thread.join()
    assert server_store.queue.workers() == []
    dead = replace(this_process(), started="0")  # killed: it could not say good-bye
    server_store.queue.note_worker(dead, 100.0)
    assert sentence(server_store, number).startswith("no worker")
