"""Workers: every queued experiment is worked on by one process, whoever dies."""

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from luthier.errors import LuthierError
from luthier.launch.worker import Worker
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.template import Template
from luthier.store import open_server_store
from luthier.store.base import Owner, Record, RequestedBy
from luthier.store.server_store import Approval, ServerStore
from luthier.store.sql import SqlStore
from luthier.trial import Completed, Json

PATIENCE_S = 120.0
LEAVES_A_TRACE = 'echo {x} >> "$0"; until [ -e "$1" ]; do sleep 0.02; done'


class Scene:
    """A store, a command that leaves a trace and waits to be let go, and workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = str(folder / "x.db")
        self.store: ServerStore = open_server_store(self.url)
        self.clock = itertools.count(0, 1000)
        self.workers: list[Worker] = []

    def worker(self, local: int = 9) -> Worker:
        """A worker that never waits between two tries."""
        self.workers.append(Worker(self.store, self.url, local=local, clock=lambda: float(next(self.clock))))
        return self.workers[-1]

    def settings(self, name: str, budget: int = 3) -> dict[str, Json]:
        command = Template(("sh", "-c", LEAVES_A_TRACE, str(self.folder / name), str(self.folder / "gate")), {})
        return dict(Experiment(space=Space(Integer("x", 0, 9)), command=command, budget=budget).to_json())

    def queue(self, name: str, budget: int = 3) -> int:
        return self.store.history.create(name, self.settings(name, budget), time.time(), RequestedBy("ada")).id

    def executions(self, name: str) -> int:
        path = self.folder / name
        return len(path.read_text().splitlines()) if path.exists() else 0

    def let_go(self) -> None:
        (self.folder / "gate").touch()

    def record(self, number: int) -> Record:
        return self.store.history.experiment(number)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    scene = Scene(tmp_path)
    yield scene
    scene.let_go()
    look_until(lambda: not any(worker.working for worker in scene.workers), *scene.workers)


def look_until(true: Callable[[], bool], *workers: Worker) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < give_up_at
        for worker in workers:
            worker.look()
        time.sleep(0.02)


def test_a_queued_experiment_is_carried_through(scene: Scene) -> None:
    number = scene.queue("one")
    scene.let_go()
    look_until(lambda: scene.record(number).status == "finished", scene.worker())
    record = scene.record(number)
    assert record.owner is None
    assert record.result is not None
    assert record.result["verdict"]
    assert [type(run.outcome) for run in scene.store.history.runs(number)] == [Completed] * 3
    assert scene.executions("one") == 3


def test_a_killed_process_is_replaced_and_nothing_runs_twice(scene: Scene) -> None:
    number, worker = scene.queue("one"), scene.worker()
    look_until(lambda: scene.executions("one") == 1, worker)
    owner = scene.record(number).owner
    assert owner is not None
    os.kill(owner.pid, signal.SIGKILL)
    look_until(lambda: scene.record(number).owner not in (None, owner), worker)
    scene.let_go()
    look_until(lambda: scene.record(number).status == "finished", worker)
    assert scene.executions("one") == scene.record(number).runs == 3


def test_a_worker_that_ends_leaves_its_experiments_going(scene: Scene) -> None:
    number, first, second = scene.queue("one"), scene.worker(), scene.worker()
    look_until(lambda: scene.executions("one") == 1, first)
    owner = scene.record(number).owner
    for _ in range(3):
        second.look()
    assert second.working == 0
    assert scene.record(number).owner == owner
    scene.let_go()
    look_until(lambda: scene.record(number).status == "finished", second)
    assert scene.executions("one") == 3


def test_two_workers_share_a_store(scene: Scene) -> None:
    numbers = [scene.queue(f"experiment {index}", budget=2) for index in range(4)]
    scene.let_go()
    workers = scene.worker(), scene.worker()
    look_until(lambda: all(scene.record(number).status == "finished" for number in numbers), *workers)
    assert [scene.executions(f"experiment {index}") for index in range(4)] == [2] * 4


def test_local_experiments_do_not_disturb_each_other(scene: Scene) -> None:
    first, second, worker = scene.queue("first"), scene.queue("second"), scene.worker(local=1)
    look_until(lambda: scene.executions("first") == 1, worker)
    for _ in range(3):
        worker.look()
    assert (worker.working, scene.record(second).status) == (1, "queued")
    scene.let_go()
    look_until(lambda: scene.record(second).status == "finished", worker)
    assert scene.record(first).status == "finished"


def test_what_cannot_be_started_fails_with_what_its_process_said(scene: Scene) -> None:
    settings = {**scene.settings("one"), "unheard-of": 1}
    number = scene.store.history.create("one", settings, time.time(), RequestedBy("ada")).id
    look_until(lambda: scene.record(number).status == "failed", scene.worker())
    result = scene.record(number).result
    assert result is not None
    assert "unheard-of" in str(result["verdict"])


def test_what_was_stopped_before_it_began_is_left_alone(scene: Scene) -> None:
    number, worker = scene.queue("one"), scene.worker()
    scene.store.history.request_stop(number)
    worker.look()
    assert (worker.working, scene.record(number).status) == (0, "stopped")


def test_experiments_of_the_command_line_are_left_alone(scene: Scene) -> None:
    scene.store.history.create("attended", scene.settings("one"), time.time())
    worker = scene.worker()
    worker.look()
    assert worker.working == 0


@pytest.mark.parametrize("skew_s", [-7200.0, 0.0, 30.0, 7200.0])
def test_owner_on_another_machine_counts_as_dead_when_its_heartbeat_stands_still(scene: Scene, skew_s: float) -> None:
    """Whatever time it is on that machine."""
    number, there, now = scene.queue("one"), Owner("another-machine", 1, "1"), [0.0]
    worker = Worker(scene.store, scene.url, clock=lambda: now[0])
    scene.workers.append(worker)
    assert scene.store.history.claim(number, there, time.time() + skew_s, None)
    for step in range(1, 8):
        now[0] += 50.0
        scene.store.history.heartbeat(number, there, time.time() + skew_s + step)
        worker.look()
        assert worker.working == 0
    now[0] += 55.0
    worker.look()
    assert worker.working == 0
    now[0] += 10.0
    worker.look()
    assert worker.working == 1
    scene.let_go()
    look_until(lambda: scene.record(number).status == "finished", worker)


RIGHTS = """
CREATE ROLE worker LOGIN PASSWORD 'secret';
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO worker;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO worker;
REVOKE INSERT, UPDATE, DELETE ON approvals, components, users, passes FROM worker;
"""


def test_a_worker_needs_no_right_to_approve(postgresql_url: str, tmp_path: Path) -> None:
    """As SECURITY.md says where programs of users must not decide for the jobs of others."""
    import psycopg

    store = open_server_store(postgresql_url)
    store.components.put({"mpi": "text"}, replace=False)
    (tmp_path / "gate").touch()
    scene = Scene(tmp_path)
    number = store.history.create("one", scene.settings("one"), time.time(), RequestedBy("ada")).id
    parts = urlsplit(postgresql_url)
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute(RIGHTS)
        try:
            url = parts._replace(netloc=f"worker:secret@{parts.netloc.rpartition('@')[2]}").geturl()
            limited = open_server_store(url)
            worker = Worker(limited, url, clock=lambda: float(next(scene.clock)))
            look_until(lambda: store.history.experiment(number).status == "finished", worker)
            look_until(lambda: not worker.working, worker)
            with pytest.raises(LuthierError, match="permission denied"):
                limited.components.approve("mpi", "text", [Approval("mpi", "A", "1", "version", "mallory", 1.0)])
            for one in (store, limited):
                assert isinstance(one.history, SqlStore)
                one.history.dispose()
        finally:
            connection.execute("DROP OWNED BY worker; DROP ROLE worker")
