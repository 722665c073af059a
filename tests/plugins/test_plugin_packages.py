"""Parts of other packages, one of each kind, installed with pip and used from end to end."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import pytest

PACKAGES = [path.parent for path in sorted(Path(__file__).parent.glob("*/pyproject.toml"))]
EXPERIMENT = """\
experiment:
  runner: ssh:node7
  script: test -n "$LEVEL"
  measure: wall
  optimizer: hill-climb
  stop: spent:limit=3600
  budget: 4
definitions:
  knob: {command: ':', parameters: {LEVEL: {env_var: true, type: int, default: 4}}}
components:
  knob: {LEVEL: [0, 2, 4]}
"""
PROGRAM = """\
import sys
from pathlib import Path
import luthier as lt
from luthier.runners.command import Command
from luthier_ssh import SshRunner

runner = lambda slots: SshRunner("node7", lambda config: Command(("sleep", str(config["s"]))), Path("runs"), slots)
space = lt.Space(lt.Choice("s", ["0.3", "0", "0.1"]))
store, first, *more = sys.argv[1:]
never = lambda config: sys.exit("the function itself was called")
if first == "tune":
    result = lt.tune(never, space, budget=3, slots=2, store=store, stop=("spent:limit=100",), runner=runner)
else:
    result = lt.resume(never, int(first), store=store, runner=runner(2))
print(len(result.runs), result.best.config["s"])
"""


def wheel(package: Path, folder: Path) -> Path:
    """Pack a package as build tools do."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    label = f"{project['name']}-{project['version']}"
    path = folder / f"{label}-py3-none-any.whl"
    entries = [
        line
        for group, names in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {place}" for name, place in names.items()))
    ]
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "entry_points.txt": "\n".join([*entries, ""]),
        "RECORD": "",
    }
    with ZipFile(path, "w") as archive:
        for module in package.glob("*.py"):
            archive.write(module, module.name)
        for name, text in files.items():
            archive.writestr(f"{label}.dist-info/{name}", text)
    return path


@dataclass(frozen=True)
class User:
    """Runs programs where the plug-ins are installed."""

    folder: Path
    environment: Mapping[str, str]

    def __call__(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stderr if code else done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which pip has installed the plug-ins."""
    folder = tmp_path_factory.mktemp("plugins")
    wheels = [wheel(package, folder) for package in PACKAGES]
    assert len(wheels) == 6
    options = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--target", folder / "site")
    subprocess.run([sys.executable, "-m", "pip", "install", *options, *wheels], check=True)
    return folder / "site"


@pytest.fixture
def user(site: Path, tmp_path: Path) -> User:
    programs = tmp_path / "bin"
    programs.mkdir()
    ssh = programs / "ssh"
    ssh.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    ssh.chmod(0o755)
    changed = {
        "PYTHONPATH": str(site),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }
    rest = {name: value for name, value in os.environ.items() if name != "LUTHIER_STORE"}
    return User(tmp_path, {**rest, **changed})


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_a_plugin_takes_at_most_40_lines(package: Path) -> None:
    assert sum(len(path.read_text().splitlines()) for path in package.glob("*.py")) <= 40


def test_the_contract_suites_hold_for_plugins(user: User) -> None:
    root = Path(__file__).parents[2]
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", str(user.folder / "pytest"))
    told = User(root, user.environment)(*words, "tests/plugins/contracts.py")
    passed = re.search(r"(\d+) passed", told)
    assert passed is not None
    assert int(passed[1]) > 40, told


def test_an_optimizer_a_measure_and_a_stop_rule_on_the_command_line(user: User) -> None:
    words = ("-m", "luthier", "tune", "-p", "n=1..9@5", "--optimizer", "hill-climb", "-m", "lines", "-n", "9")
    told = json.loads(user(*words, "--json", "--", "seq", "{n}"))
    assert told["best"]["config"] == {"n": 1}
    user(*words, "--stop", "spent:limit=0", "--json", "--", "seq", "{n}")
    assert [record["runs"] for record in json.loads(user("-m", "luthier", "list", "--json"))] == [9, 1]
    wrong = user(*words, "--stop", "spent:limits=3", "--", "seq", "{n}", code=2)
    assert "stop: 'spent:limits=3': 'limits=3' is not understood; write limit=NUMBER" in wrong
    assert "limit is missing; write spent:limit=NUMBER" in user(*words, "--stop", "spent", "--", "seq", "{n}", code=2)


def test_a_subset_picker_on_the_command_line(user: User) -> None:
    words = ("-m", "luthier", "tune", "-p", "a=1..9", "-p", "b=1..9", "-p", "c=1..9", "-m", "lines", "-n", "30")
    user(*words, "--impact-first", "in-turns:size=2", "--", "seq", "{a}{b}{c}")
    tuned = json.loads(user("-m", "luthier", "show", "1", "--json"))["impact_first"]
    first, second, *_, last = tuned["steps"][1:]
    assert [first["parameters"], second["parameters"]] == [["c", "a"], ["b", "c"]]
    assert first["reason"] == "it is their turn"
    assert last["parameters"] == ["a", "b", "c"], "the second half of the budget"


def test_a_strategy_of_a_running_program(user: User) -> None:
    program = (
        "import luthier as lt; space = lt.Space(lt.Integer('n', 1, 9, default=5))\n"
        "tuner = lt.OnlineTuner(space, strategy='neighbours')\n"
        "for _ in range(20): tuner.report(tuner.fetch()['n'])\n"
        "print(tuner.best.best['n'], tuner.converged)"
    )
    assert user("-c", program) == "1 True\n"


def test_a_runner_in_an_experiment_file(user: User) -> None:
    (user.folder / "e.yaml").write_text(EXPERIMENT)
    user("-m", "luthier", "run", "e.yaml", "--json")
    runs = json.loads(user("-m", "luthier", "export", "1", "--format", "json"))
    assert {run["outcome"] for run in runs} == {"completed"}
    (user.folder / "e.yaml").write_text(EXPERIMENT.replace("ssh:node7", "ssh"))
    assert "experiment.runner: ssh: the host is missing; write ssh:HOST" in user(
        "-m", "luthier", "validate", "e.yaml", code=2
    )


def test_a_runner_of_ones_own_in_a_program(user: User) -> None:
    assert user("-c", PROGRAM, "history.sqlite", "tune") == "3 0\n"
    assert "experiment 1 is finished" in user("-c", PROGRAM, "history.sqlite", "1", code=1)


def test_an_experiment_whose_plugin_was_removed_is_one_clear_line(user: User) -> None:
    (user.folder / "e.yaml").write_text(EXPERIMENT)
    user("-m", "luthier", "run", "e.yaml", "--json")
    without = User(user.folder, {**user.environment, "PYTHONPATH": ""})
    assert "finished" in without("-m", "luthier", "list")
    told = without("-m", "luthier", "show", "1", code=2)
    assert "stop: 'spent:limit=3600' is not understood" in told
    assert told.count("\n") == 1
