"""A declared component on a real Slurm."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.slurm.cluster import Cluster

from luthier.__main__ import main

COMPONENT = """\
components:
  knob:
    plugin: comment=tuned --nice=0
    header: sleep 0.3; test -z "$LD_PRELOAD"
    command: ':'
    ld_preload: libm.so.6
    parameters:
      LEVEL: {env_var: True, type: int, default: 4}
      TEXT: {env_var: True, type: str, default: "a,b $(id) 'c'"}
      job-name: {cmd_var: True, type: str, default: x}
      ntasks: {cli_var: True, type: int, default: 1}
"""
APPLICATION = (
    "#!/bin/bash\n"
    + "".join(f"#SBATCH --comment=line{n}\n" for n in range(12))
    + '#SBATCH --ntasks=2\n#SBATCH --chdir=below --output=job-%j.out\n[ "$LEVEL" != 2 ] || exit 7\n'
    + 'echo "$TEXT|$SLURM_NTASKS|$LD_PRELOAD|level=$LEVEL|${PWD##*/}"\n'
)
EXPERIMENT = """\
experiment:
  default_first: True
bbo:
  heuristic: exhaustive_search
components:
  knob:
    LEVEL: {min: 0, max: 4, step: 2}
"""


def at_home(home: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> None:
    """Work in a folder with these files and a store of its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.delenv("LUTHIER_STORE", raising=False)
    monkeypatch.chdir(home)
    for name, text in files.items():
        Path(name).write_text(text)


def _run(
    commands: Sequence[Sequence[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run commands of luthier; what the last one prints is left to be read."""
    for words in commands:
        monkeypatch.setattr(sys, "argv", ["luthier", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0, capsys.readouterr().err


def test_shamans_files_on_slurm(
    slurm: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Zero is passed, a failed job is only that, and neither the queue nor the header is timed."""
    at_home(tmp_path, monkeypatch, {"c.yaml": COMPONENT, "app.sbatch": APPLICATION, "e.yaml": EXPERIMENT})
    Path("below").mkdir()
    commands = [
        ["shaman", "install", "c.yaml"],
        ["run", "e.yaml", "--set", "application=app.sbatch", "--set", "budget=3", "--set", "slots=2", "--json"],
        ["export", "1", "--format", "json"],
    ]
    _run(commands, monkeypatch, capsys)
    runs = json.loads(capsys.readouterr().out)
    assert {run["config"]["LEVEL"]: run["outcome"] for run in runs} == {4: "completed", 0: "completed", 2: "failed"}
    for run in runs:
        if run["outcome"] == "completed":
            assert run["value"] < run["duration_s"] - 0.29
            printed = (Path(run["logs"]) / "stdout").read_text()
            assert printed == f"a,b $(id) 'c'|1|libm.so.6|level={run['config']['LEVEL']}|below\n"
            number = (Path(run["logs"]) / "id").read_text().strip()
            assert Path("below", f"job-{number}.out").read_text() == printed


def test_more_jobs_for_an_experiment_that_has_finished(
    slurm: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = "#!/bin/bash\n#SBATCH --ntasks=1\necho $LEVEL $depth\n"
    at_home(tmp_path, monkeypatch, {"c.yaml": SLEEPER, "app.sbatch": job, "e.yaml": SLEEPS.replace("max: 2", "max: 9")})
    commands = [
        ["shaman", "install", "c.yaml"],
        ["run", "e.yaml", "--set", "application=app.sbatch", "--set", "budget=3", "--json"],
        ["resume", "1", "--budget", "+2", "--json"],
        ["export", "1", "--format", "json"],
    ]
    _run(commands, monkeypatch, capsys)
    runs = json.loads(capsys.readouterr().out)
    assert len(runs) == len({run["config"]["LEVEL"] for run in runs}) == 5
    assert {run["outcome"] for run in runs} == {"completed"}
    assert len({run["batch_job"] for run in runs}) == 5


TIMED = "#!/bin/bash\n#SBATCH --ntasks=1\nsleep 0.3\ntime (\nsleep 0.05\n)\n"
UNTIMED = "#!/bin/bash\n#SBATCH --ntasks=1\nsleep 0.05\n"
SLEEPER = """\
components:
  sleeper:
    command: sleep 0.3; echo
    parameters:
      LEVEL: {env_var: True, type: str, default: /home/}
      depth: {cmd_var: True, type: int, default: 1}
"""
SLEEPS = """\
experiment: {default_first: False}
bbo: {heuristic: exhaustive_search}
components:
  sleeper:
    LEVEL: {min: 1, max: 2, step: 1}
"""


@pytest.mark.parametrize(("script", "note"), [(TIMED, "script's own time"), (UNTIMED, "command is not timed")])
def test_scripts_are_timed_as_shaman_times_them(
    slurm: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    script: str,
    note: str,
) -> None:
    """Neither the component's command nor what the script does before its own `time` is measured."""
    at_home(tmp_path, monkeypatch, {"c.yaml": SLEEPER, "e.yaml": SLEEPS, "app.sbatch": script})
    files = ["--sbatch-file", "app.sbatch", "--configuration-file", "e.yaml"]
    names = ["--component-name", "sleeper", "--experiment-name", "sleeps", "--nbr-iteration", "3"]
    for words in (["shaman", "install", "c.yaml"], ["shaman", "optimize", *files, *names]):
        monkeypatch.setattr(sys, "argv", ["luthier", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0
    said = capsys.readouterr().err
    assert note in said
    assert "default_first: false is ignored" in said
    monkeypatch.setattr(sys, "argv", ["luthier", "export", "1", "--format", "json"])
    with pytest.raises(SystemExit):
        main()
    runs = json.loads(capsys.readouterr().out)
    assert {run["config"]["LEVEL"] for run in runs} == {"/home/", "1", "2"}
    for run in runs:
        assert run["outcome"] == "completed"
        assert 0.05 <= run["value"] < run["duration_s"] - 0.29
