"""A run that hangs blocks nobody: it can be killed and deleted, by its owner and by administrators."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
from tests.server.server_fixtures import EXPERIMENT, Running, Starter

from luthier.errors import NotFoundError
from luthier.folders import data_directory
from luthier.launch.worker import Worker
from luthier.runners.job_folder import JobFolder, Process
from luthier.server.operations import RUN_TIMEOUT_S

API = "/api/v1"
HANGS = EXPERIMENT.replace("echo $LEVEL", "sleep 100000")
PATIENCE_S = 60.0


@pytest.fixture
def busy(start_server: Starter) -> Iterator[Running]:
    """A server with a worker, on which a run of experiment 1 hangs."""
    server = start_server()
    stopped = threading.Event()
    worker = Worker(server.store, server.store_url)
    thread = threading.Thread(target=worker.run, args=(stopped,))
    thread.start()
    server.launch(HANGS)
    wait_until(lambda: any(len(folder.processes()) == 2 for folder in folders()))
    yield server
    with suppress(NotFoundError):
        server.store.history.request_stop(1, "kill")
    wait_until(lambda: worker.working == 0)
    stopped.set()
    thread.join()


def wait_until(true: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < give_up_at
        time.sleep(0.02)


def folders() -> list[JobFolder]:
    runs = data_directory() / "runs"
    return [JobFolder(path) for path in sorted(runs.iterdir())] if runs.exists() else []


def processes() -> list[Process]:
    return [process for folder in folders() for process in folder.processes()]


def test_stop_now_kills_the_run(busy: Running) -> None:
    hanging = processes()
    assert busy.ask("POST", f"{API}/experiments/1/stop").status == 200
    assert busy.ask("DELETE", f"{API}/experiments/1").status == 409
    assert busy.ask("POST", f"{API}/experiments/1/stop?now=true").status == 200
    wait_until(lambda: busy.store.history.experiment(1).status == "stopped")
    assert not any(process.is_alive() for process in hanging)
    assert [type(run.outcome).__name__ for run in busy.store.history.runs(1)] == ["Lost"]
    actions = [entry.action for entry in busy.store.accounts.entries()]
    assert actions == ["stop now", "stop", "launch"]


def test_delete_stops_first_if_asked_to_and_leaves_no_files(busy: Running) -> None:
    hanging = processes()
    assert busy.ask("DELETE", f"{API}/experiments/1?stop=true").status == 204
    assert busy.ask("GET", f"{API}/experiments/1").status == 404
    assert not any(process.is_alive() for process in hanging)
    assert folders() == []
    assert list((data_directory() / "workers").iterdir()) == []


def test_what_a_dead_tuner_left_running_is_killed_with_its_experiment(server: Running, tmp_path: Path) -> None:
    from luthier.runners.command import Command, CommandRunner
    from luthier.trial import Config, Job

    number = server.launch(HANGS)
    server.play(number, [None], "stopped")
    record, (run,) = server.store.history.experiment(number), server.store.history.runs(number)
    runner = CommandRunner(lambda _: Command(("sleep", "100000")), data_directory() / "runs")
    runner.submit(Job(run.key(record.uid), Config({})))
    wait_until(lambda: len(processes()) == 2)
    hanging = processes()
    assert server.ask("DELETE", f"{API}/experiments/{number}").status == 204
    assert folders() == []
    wait_until(lambda: not hanging[1].is_alive())


def test_others_may_not_stop_it(busy: Running) -> None:
    busy.add_user("root", "admin")
    eve = busy.add_user("eve", "user")
    busy.store.queue.share(1, shared=True)
    assert busy.ask("POST", f"{API}/experiments/1/stop?now=true", token=eve).status == 403
    assert busy.ask("DELETE", f"{API}/experiments/1?stop=true", token=eve).status == 403
    assert busy.store.history.experiment(1).stop_requested is None


def test_unattended_runs_have_a_time_limit(server: Running) -> None:
    server.launch(EXPERIMENT)
    server.launch(EXPERIMENT.replace("budget: 40", "budget: 40, timeout: 90s"))
    limits = [cast("float", server.store.history.experiment(number).settings["timeout_s"]) for number in (1, 2)]
    assert limits == [RUN_TIMEOUT_S, 90.0]
