"""A store that was restored from a backup numbers runs anew; what earlier ones left behind belongs to others."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

from luthier.engine.session import carry_on
from luthier.runners.command import Command, CommandRunner
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.spec.template import Template
from luthier.store import open_store
from luthier.store.sql import SqlStore
from luthier.trial import Completed, Config, Run

SPACE = Space(Integer("x", 1, 999))
EXPERIMENT = Experiment(
    space=SPACE,
    command=Template(("echo", "{x}")),
    objectives=(Objective(r"regex:^(\d+)$"),),
    optimizer="random",
    budget=8,
    verify_pairs=0,
    resample="once",
)


def runs_of(path: Path, experiment: Experiment, folder: Path) -> list[Run]:
    """Work on the first experiment of the store in this file."""
    store = open_store(str(path))
    assert isinstance(store, SqlStore)

    def render(config: Config) -> Command:
        argv, environment = EXPERIMENT.command.render(SPACE, config)  # type: ignore[union-attr]  # it has one
        return Command(argv, environment)

    _, result = carry_on(store, store.experiment(1), experiment, CommandRunner(render, folder))
    store.dispose()
    return list(result.runs)


def test_no_value_belongs_to_another_configuration(tmp_path: Path) -> None:
    path, backup, folder = tmp_path / "x.db", tmp_path / "backup.db", tmp_path / "runs"
    store = open_store(str(path))
    assert isinstance(store, SqlStore)
    store.create("x", EXPERIMENT.to_json(), 0.0)
    store.dispose()
    shutil.copy(path, backup)
    before = runs_of(path, EXPERIMENT, folder)
    after = runs_of(backup, replace(EXPERIMENT, seed=1), folder)  # chance takes another course
    assert [run.number for run in before] == [run.number for run in after]
    assert [run.config for run in before] != [run.config for run in after]
    for run in (*before, *after):
        assert isinstance(run.outcome, Completed)
        assert run.outcome.value == run.config["x"]
    assert len(list(folder.iterdir())) == len(before) + len(after)
    assert all(re.fullmatch(r"[0-9a-f]{32}-\d+-[0-9a-f]{12}", one.name) for one in folder.iterdir())
