"""Runs on real Dask clusters: processes that are killed, and executions that are counted."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.runners.dask_site import LONG_S, Site, dask_site, descendants, is_alive, wait_until
from tests.runners.test_command_runner import CommandStage

from luthier.runners.base import Runner
from luthier.runners.contract import RunnerContract, collect
from luthier.runners.dask import DaskRunner, Work, calls, commands
from luthier.runners.dask_cluster import Place, place_of
from luthier.trial import Config, Execution, Failed, Job, Lost, Pruned, TimedOut


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
        runner = DaskRunner(self.work(), Place(self.site.address), self.folder / "runs", slots, grace_s=0.2)
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
        return calls(lambda config: behave(folder, config))


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
