"""Experiment files whose jobs PSI/J submits."""

import json
import sys
from pathlib import Path

import pytest
from tests.slurm.cluster import Cluster

from luthier.__main__ import main
from luthier.launch.declared import declared_in
from luthier.runners.psij import Allocation
from luthier.spec.experiment import Experiment
from luthier.spec.script import JobScript

EXPERIMENT = """\
experiment:
  runner: psij:slurm
  allocation: {queue: main, nodes: 2, walltime: 5m}
  script: |
    #PBS -l select=9
    [ "$LEVEL" != 2 ] || exit 7
    echo "$TEXT|$SLURM_NNODES|level=$LEVEL"
  optimizer: exhaustive
  budget: 3
  slots: 2
definitions:
  knob:
    header: sleep 0.3
    command: ':'
    parameters:
      LEVEL: {env_var: true, type: int, default: 4}
      TEXT: {env_var: true, type: str, default: "a,b $(id) 'c'"}
components:
  knob:
    LEVEL: [0, 2, 4]
"""


class User:
    """Types commands in a folder of their own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *words: str, code: int = 0) -> str:
        self._monkeypatch.setattr(sys, "argv", ["luthier", *words])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = self._capsys.readouterr()
        assert ended.value.code == code, printed.err
        return printed.err if code else printed.out


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> User:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("LUTHIER_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("e.yaml").write_text(EXPERIMENT)
    return User(monkeypatch, capsys)


def test_an_experiment_through_psij(slurm: Cluster, user: User) -> None:
    """A failed job is only that, the header is not timed, and values arrive as they are."""
    user("run", "e.yaml", "--json")
    runs = json.loads(user("export", "1", "--format", "json"))
    assert {run["config"]["LEVEL"]: run["outcome"] for run in runs} == {4: "completed", 0: "completed", 2: "failed"}
    for run in runs:
        if run["outcome"] == "completed":
            assert run["value"] < run["duration_s"] - 0.29
            assert (Path(run["logs"]) / "stdout").read_text() == f"a,b $(id) 'c'|2|level={run['config']['LEVEL']}\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("psij:slurm", "psij:pbspro2", "e.yaml:2: experiment.runner: psij:pbspro2: PSI/J has no such executor; known"),
        ("psij:slurm", "psij:local", "e.yaml:2: experiment.runner: psij:local cannot find runs again"),
        (
            "psij:slurm",
            "psij",
            "e.yaml:2: experiment.runner: psij: the executor is missing; write for example psij:pbs",
        ),
        ("psij:slurm", "local", "e.yaml:3: experiment.allocation: is for runner: psij:EXECUTOR"),
        (", walltime: 5m", "", "e.yaml:3: experiment.allocation: walltime: a batch system ends jobs after some time"),
        ("nodes: 2", "nodes: 0", "e.yaml:3: experiment.allocation: nodes: 0 is below 1; give 1 or more"),
        ("nodes: 2", "node: 2", "e.yaml:3: experiment.allocation.node: is unknown; did you mean 'nodes'?"),
        ("command: ':'", "plugin: nice=1", "its plugin --nice=1 is an option of sbatch, and this would run without it"),
    ],
)
def test_what_cannot_run_is_one_line(user: User, old: str, new: str, message: str) -> None:
    Path("e.yaml").write_text(EXPERIMENT.replace(old, new))
    for command in ("validate", "run"):
        told = user(command, "e.yaml", code=2)
        assert message in told
        assert told.count("\n") == 1
    assert not Path("data", "luthier", "runs").exists()


def test_a_timeout_is_limit_enough(user: User) -> None:
    Path("e.yaml").write_text(EXPERIMENT.replace(", walltime: 5m", "").replace("  budget", "  timeout: 90s\n  budget"))
    assert "3 configurations" in user("validate", "e.yaml")


def test_what_the_jobs_ask_for_is_stored(user: User) -> None:
    experiment = declared_in(Path("e.yaml")).experiment
    again = Experiment.from_json(json.loads(json.dumps(experiment.to_json())))
    assert isinstance(again.command, JobScript)
    assert again.command.where == "psij:slurm"
    assert again.command.allocation == Allocation("main", nodes=2, walltime_s=300.0)


def test_psij_is_not_installed(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psij", None)
    assert "experiment.runner: psij: the package is not installed; pip install" in user("run", "e.yaml", code=2)
