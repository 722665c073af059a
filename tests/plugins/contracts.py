"""The shipped contract suites over the plug-ins, as their authors would run them; see `test_plugin_packages.py`."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runners.test_command_runner import CommandStage

from luthier.online.contract import StrategyContract
from luthier.optimizers.contract import OptimizerContract
from luthier.policies.contract import SubsetPickerContract
from luthier.runners.base import Runner, RunnerSetup
from luthier.runners.contract import RunnerContract
from luthier.runners.registry import make_runner


class TestHillClimb(OptimizerContract):
    optimizers = ("hill-climb",)


class TestNeighbours(StrategyContract):
    strategies = ("neighbours",)


class TestInTurns(SubsetPickerContract):
    pickers = ("in-turns",)


class SshStage(CommandStage):
    def runner(self, slots: int) -> Runner:
        setup = RunnerSetup(self.render, lambda _: pytest.fail("no batch system"), self.folder / "runs", slots)
        return make_runner("ssh:here", setup)


class TestSsh(RunnerContract):
    @pytest.fixture
    def stage(self, tmp_path: Path) -> Iterator[SshStage]:
        stage = SshStage(tmp_path)
        yield stage
        stage.let_go()
        os.close(stage.gate.descriptor)
