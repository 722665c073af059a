"""Runs on real Dask clusters: processes that are killed, and executions that are counted."""

import ctypes
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.runners.dask_site import Site, dask_site, is_alive, wait_until
from tests.runners.test_command_runner import CommandStage

from luthier.errors import InvalidInputError, UnavailableError
from luthier.runners.base import Runner
from luthier.runners.command import Command
from luthier.runners.contract import RunnerContract, collect, job
from luthier.runners.dask import DaskRunner, Work, calls, commands
from luthier.runners.dask_cluster import DaskPlace, place_of
from luthier.trial import Config, Execution, Failed, Job, Lost, Pruned


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with dask_site(tmp_path_factory.mktemp("dask"), 3) as up:
        yield up


def behave(stage: str, config: Config) -> float:
    """The same as the script of the commands."""
    folder = Path(stage)
    with (folder / f"starts.{config['number']}").open("a") as starts:
        starts.write("run\n")
    if config["behaviour"] == "fail":
        raise RuntimeError("as told")
    if config["behaviour"] == "wait":
        with (folder / "gate").open() as gate:
            gate.readline()
    if config["behaviour"] == "hang":
        time.sleep(3600)
    return 1.0


class DaskStage(CommandStage):
    """Runners on the cluster of the tests."""

    def __init__(self, folder: Path, site: Site) -> None:
        super().__init__(folder)
        self.site = site
        self.runners: list[DaskRunner] = []

    def work(self) -> Work:
        return commands(self.render)

    def runner(self, slots: int) -> Runner:
        runner = DaskRunner(self.work(), DaskPlace(self.site.address), self.folder / "runs", slots, grace_s=0.2)
        self.runners.append(runner)
        return runner

    def close(self) -> None:
        for runner in self.runners:
            runner.close()
        self.let_go()
        os.close(self.gate.descriptor)


class FunctionStage(DaskStage):
    def work(self) -> Work:
        folder = str(self.folder)
        return calls(partial(behave, folder))


@pytest.fixture
def stage(tmp_path: Path, site: Site) -> Iterator[DaskStage]:
    stage = DaskStage(tmp_path, site)
    yield stage
    stage.close()


class TestCommandsOnDask(RunnerContract):
    pass


class TestFunctionsOnDask(RunnerContract):
    @pytest.fixture
    def stage(self, tmp_path: Path, site: Site) -> Iterator[DaskStage]:
        stage = FunctionStage(tmp_path, site)
        yield stage
        stage.close()


def on(stage: DaskStage, argument: str, *argv: str, slots: int = 1) -> DaskRunner:
    """A runner for one command, with an argument as users write it."""
    runner = DaskRunner(commands(lambda _: Command(argv)), place_of(argument), stage.folder / "runs", slots)
    stage.runners.append(runner)
    return runner


def call(stage: DaskStage, function: "object", timeout_s: float | None = None) -> Execution:
    """Call a function once."""
    work = calls(function)  # type: ignore[arg-type]  # some tests pass what is not a function for numbers
    runner = DaskRunner(work, DaskPlace(stage.site.address), stage.folder / "runs")
    stage.runners.append(runner)
    runner.submit(Job("k", Config({"n": 3}), timeout_s))
    return collect(runner, ["k"])["k"]


def output(execution: Execution, name: str = "stdout") -> str:
    assert execution.logs is not None
    return (Path(execution.logs) / name).read_text()


def test_a_later_tuner_finds_running_and_finished_tasks(stage: DaskStage) -> None:
    first = stage.runner(slots=2)
    first.submit(job("going", "wait", number=1))
    first.submit(job("over", "finish", number=2))
    wait_until(lambda: stage.starts(1) == stage.starts(2) == 1, "both began")
    assert isinstance(first, DaskRunner)
    first.close()
    later = stage.runner(slots=2)
    later.submit(job("going", "wait", number=1))
    later.submit(job("over", "finish", number=2))
    assert collect(later, ["over"])["over"].problem is None
    wait_until(lambda: later.started_at("going") is not None, "its start is known")
    stage.let_go()
    assert collect(later, ["going"])["going"].problem is None
    assert [stage.starts(1), stage.starts(2)] == [1, 1]
    wait_until(lambda: not stage.site.known_tasks(), "the scheduler forgets what was reported")


def test_a_run_of_a_dead_worker_is_lost_and_its_processes_end(stage: DaskStage, site: Site) -> None:
    worker = site.add("--resources", "SHORT=1")
    runner = on(stage, f"{site.address}?SHORT=1", "sh", "-c", 'echo $$ >> "$0"; sleep 3600', str(stage.folder / "pids"))
    runner.submit(Job("k", Config({})))
    pids = stage.folder / "pids"
    wait_until(lambda: pids.exists() and bool(pids.read_text()), "the command began")
    site.kill(worker)
    wait_until(lambda: not is_alive(int(pids.read_text())), "the command ends with its worker")
    other = site.add("--resources", "SHORT=1")  # on which Dask executes the task again
    lost = collect(runner, ["k"])["k"]
    site.kill(other)
    assert isinstance(lost.problem, Lost)
    assert "its worker died" in lost.problem.reason
    assert len(pids.read_text().splitlines()) == 1
    runner.submit(Job("k", Config({})))
    assert collect(runner, ["k"])["k"] == lost


def test_a_finished_run_whose_result_died_with_its_worker_is_not_made_again(stage: DaskStage, site: Site) -> None:
    worker = site.add("--resources", "BRIEF=1")
    starts = stage.folder / "starts"
    runner = on(stage, f"{site.address}?BRIEF=1", "sh", "-c", 'echo run >> "$0"', str(starts))
    runner.submit(Job("k", Config({})))
    wait_until(lambda: site.has_finished("luthier-k-"), "Dask has the result")
    site.kill(worker)
    other = site.add("--resources", "BRIEF=1")
    assert isinstance(collect(runner, ["k"])["k"].problem, Lost)
    site.kill(other)
    assert starts.read_text() == "run\n"


def test_a_worker_makes_one_run_at_a_time(stage: DaskStage, site: Site) -> None:
    worker = site.add("--resources", "WIDE=8", threads=4)
    script = 'echo run >> "$0"; read -r go < "$1"'
    words = ("sh", "-c", script, str(stage.folder / "starts"), str(stage.gate.path))
    runner = on(stage, f"{site.address}?WIDE=2", *words, slots=2)
    for key in "ab":
        runner.submit(Job(key, Config({})))
    wait_until((stage.folder / "starts").exists, "one begins")
    assert not runner.poll("ab", 0.5)
    assert (stage.folder / "starts").read_text() == "run\n"
    assert [runner.started_at(key) is None for key in "ab"].count(True) == 1
    stage.let_go()
    assert all(ended.problem is None for ended in collect(runner, list("ab")).values())
    site.kill(worker)


def test_a_run_that_no_worker_can_make_waits_and_can_be_cancelled(
    stage: DaskStage, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    runner = on(stage, f"{site.address}?GPU=2", "touch", str(stage.folder / "made"))
    with caplog.at_level(logging.WARNING):
        runner.submit(Job("k", Config({})))
    assert "no worker has GPU=2; runs wait until one joins" in caplog.text
    assert not runner.poll(["k"], 0.3)
    assert runner.started_at("k") is None
    runner.cancel(["k"])
    assert isinstance(collect(runner, ["k"])["k"].problem, Pruned)
    worker = site.add("--resources", "GPU=2")
    wait_until(lambda: site.count() == 4, "a worker joins that could make it")
    runner.submit(Job("other", Config({})))
    assert collect(runner, ["other"])["other"].problem is None
    runner.submit(Job("k", Config({})))
    assert isinstance(collect(runner, ["k"])["k"].problem, Pruned)
    site.kill(worker)


def test_a_cancelled_command_is_really_stopped(stage: DaskStage, site: Site) -> None:
    pids = stage.folder / "pids"
    runner = on(stage, site.address, "sh", "-c", 'trap "" TERM; sleep 3600 & echo $! $$ > "$0"; wait', str(pids))
    runner.submit(Job("k", Config({})))
    wait_until(lambda: runner.started_at("k") is not None and pids.exists(), "it began")
    runner.cancel(["k"])
    assert isinstance(collect(runner, ["k"])["k"].problem, Pruned)
    assert not any(is_alive(int(pid)) for pid in pids.read_text().split())


def test_output_is_kept_but_not_without_end(stage: DaskStage, site: Site) -> None:
    text = "echo begin; head -c 17000000 /dev/zero; echo end; echo trouble >&2; pwd >&2"
    runner = on(stage, site.address, "sh", "-c", text)
    runner.submit(Job("k", Config({})))
    ended = collect(runner, ["k"])["k"]
    assert len(output(ended)) == 16 * 1024 * 1024
    assert output(ended).endswith("\0end\n")
    assert output(ended, "stderr") == f"trouble\n{Path.cwd()}\n"
    assert {"wall_s", "user_s", "peak_memory_bytes"} <= ended.metrics.keys()


def test_a_function_returns_numbers_and_keeps_its_output(stage: DaskStage) -> None:
    def measure(config: Config) -> tuple[float, float]:
        sys.stdout.write(f"hello {config['n']}\n")
        return 0.1 + float(config["n"]), 2.0

    ended = call(stage, measure)
    assert (ended.value, ended.others, ended.problem) == (3.1, (2.0,), None)
    assert output(ended) == "hello 3\n"
    assert ended.metrics["wall_s"] < ended.duration_s


def test_a_function_that_crashes_leaves_its_worker_alone(stage: DaskStage, site: Site) -> None:
    before = site.names()
    ended = call(stage, lambda config: ctypes.string_at(0))
    assert ended.problem == Failed("killed by SIGSEGV")
    assert site.names() == before


def test_a_function_that_fails_or_returns_no_number(stage: DaskStage) -> None:
    ended = call(stage, lambda config: config["missing"])
    assert ended.problem == Failed("KeyError: 'missing'")
    assert "Traceback" in output(ended, "stderr")
    stage.folder = stage.folder / "second"
    stage.folder.mkdir()
    assert call(stage, lambda config: "fast").problem == Failed("returned 'fast' (str), expected a number")


def test_a_function_of_a_module_that_only_the_tuner_finds(
    stage: DaskStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "only_here.py").write_text("def measure(config):\n    return 2.5 * config['n']\n")
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    import only_here  # type: ignore[import-not-found]  # written above

    assert call(stage, only_here.measure).value == 7.5


def test_a_function_that_cannot_be_sent_is_refused() -> None:
    lock = threading.Lock()
    with pytest.raises(InvalidInputError, match=r"the function cannot be sent to a worker: .*lock") as error:
        calls(lambda config: float(lock.locked()))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("10.0.0.1", "is not an address; write tcp://HOST:PORT"),
        ("tcp://host", "is not an address"),
        ("http://host:1", "is not an address"),
        ("tcp://host:1?GPU=none", "needs a number above 0"),
        ("tcp://host:1?GPU", "needs a number above 0"),
        ("?GPU=1", "a cluster on this machine has no resources"),
    ],
)
def test_addresses_that_are_none(argument: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        place_of(argument)


def test_addresses() -> None:
    assert place_of("") == DaskPlace()
    assert place_of("tls://[::1]:8786?GPU=1&MEM=2.5e9") == DaskPlace("tls://[::1]:8786", {"GPU": 1, "MEM": 2.5e9})
    assert place_of("/shared/scheduler.json") == DaskPlace("/shared/scheduler.json")


def test_a_scheduler_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    runner = DaskRunner(commands(lambda _: Command(("true",))), DaskPlace(str(tmp_path / "none.json")), tmp_path)
    with pytest.raises(UnavailableError, match=r"none.json: the scheduler cannot be reached: ") as error:
        runner.submit(Job("k", Config({})))
    assert "\n" not in str(error.value)


def test_a_run_of_a_scheduler_that_is_gone_is_lost(tmp_path: Path) -> None:
    def runner(site: Site) -> DaskRunner:
        words = ("sh", "-c", 'echo $$ >> "$0"; sleep 3600', str(tmp_path / "pids"))
        return DaskRunner(commands(lambda _: Command(words)), DaskPlace(site.address), tmp_path / "runs")

    pids = tmp_path / "pids"
    with dask_site(tmp_path / "first", 1) as site:
        first = runner(site)
        first.submit(Job("k", Config({})))
        wait_until(lambda: pids.exists() and bool(pids.read_text()), "it began")
        site.scheduler.kill()
        wait_until(lambda: not is_alive(int(pids.read_text())), "the command ends with the cluster")
        first.close()
    with dask_site(tmp_path / "second", 1) as site:
        later = runner(site)
        later.submit(Job("k", Config({})))
        lost = collect(later, ["k"])["k"]
        later.close()
    assert lost.problem == Lost("the Dask scheduler that had this run is gone")
    assert len(pids.read_text().splitlines()) == 1


def test_a_run_whose_folder_was_removed_is_lost(stage: DaskStage) -> None:
    runner = stage.runner(slots=1)
    runner.submit(job("k", "wait", number=1))
    wait_until(lambda: stage.starts(1) == 1, "it began")
    shutil.rmtree(stage.folder / "runs" / "k")
    stage.let_go()
    problem = collect(runner, ["k"])["k"].problem
    assert isinstance(problem, Lost)
    assert "the folder of this run is gone" in problem.reason


def test_only_workers_need_luthier_and_one_without_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "luthier.py").write_text("raise ImportError('no luthier here')")
    with dask_site(tmp_path / "dask", 1, PYTHONPATH=str(tmp_path)) as site:
        site.add("--resources", "EMPTY=1", PYTHONPATH=str(tmp_path))
        wait_until(lambda: site.count() == 2, "the worker without luthier joins")
        problems = []
        for address in (f"{site.address}?EMPTY=1", site.address):
            runner = DaskRunner(commands(lambda _: Command(("true",))), place_of(address), tmp_path / address[-3:])
            runner.submit(Job("k", Config({})))
            problems.append(collect(runner, ["k"])["k"].problem)
            if problems[-1] is not None:
                assert site.count() == 2
                site.kill(site.workers[-1])
            runner.close()
    assert problems == [Failed("the worker cannot make this run: no luthier here"), None]


def test_dask_is_imported_only_when_it_is_used() -> None:
    text = "import sys, luthier.runners.dask, luthier.__main__; sys.exit('distributed' in sys.modules)"
    subprocess.run([sys.executable, "-c", text], check=True)
