"""The folder in which runs start: of `luthier tune`, of an experiment file, and after it was removed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.template import Template
from luthier.store import open_store

PWD = ["-n", "2", "-m", "regex:(\\d+)", "-p", "x=1,2", "--", "sh", "-c", "pwd > where; echo {x}"]
FILE = """\
experiment: {folder: FOLDER, budget: 2, script: "pwd > where; echo $X", measure: "regex:(.+)"}
definitions: {knob: {parameters: {X: {env_var: true, type: int, default: 1}}}}
components: {knob: {X: [1, 2]}}
"""


def luthier(home: Path, *arguments: str, code: int = 0) -> str:
    environment = {**os.environ, "XDG_DATA_HOME": str(home / "data"), "LUTHIER_STORE": str(home / "s.db")}
    argv = [sys.executable, "-m", "luthier", *arguments]
    done = subprocess.run(argv, env=environment, cwd=home, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == code, done.stderr
    assert not code or len(done.stderr.splitlines()) == 1
    return done.stderr if code else done.stdout


def test_a_command_runs_in_the_folder_of_the_option(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    luthier(tmp_path, "tune", "-q", "--folder", "there", *PWD)
    assert (tmp_path / "there" / "where").read_text().strip() == str(tmp_path / "there")
    assert "--folder nowhere: does not exist" in luthier(tmp_path, "tune", "-q", "--folder", "nowhere", *PWD, code=2)


@pytest.mark.parametrize("is_absolute", [False, True])
def test_a_folder_in_a_file_is_relative_to_the_file(tmp_path: Path, is_absolute: bool) -> None:
    there = tmp_path / "files" / "there"
    there.mkdir(parents=True)
    file = tmp_path / "files" / "e.yaml"
    file.write_text(FILE.replace("FOLDER", str(there) if is_absolute else "there"))
    luthier(tmp_path, "run", "-q", str(file))
    assert (there / "where").read_text().strip() == str(there)
    file.write_text(FILE.replace("FOLDER", "nowhere"))
    assert "e.yaml:1: experiment.folder: '" in luthier(tmp_path, "validate", str(file), code=2)
    assert "folder: '" in luthier(tmp_path, "run", "-q", str(file), code=2)
    assert len(json.loads(luthier(tmp_path, "list", "--json"))) == 1


def test_a_folder_that_was_removed_is_one_line(tmp_path: Path) -> None:
    space = Space(Integer("x", 1, 2))
    experiment = Experiment(space=space, command=Template(("echo", "{x}")), cwd=str(tmp_path / "gone"))
    open_store(str(tmp_path / "s.db")).create("x", experiment.to_json(), 0.0)
    answer = luthier(tmp_path, "resume", "1", "-q", code=2)
    assert answer.startswith(f"luthier: folder: {tmp_path / 'gone'} does not exist on ")
    assert open_store(str(tmp_path / "s.db")).runs(1) == []
