"""A declared component on a real Slurm."""

import json
import sys
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
    + '#SBATCH --ntasks=2\n[ "$LEVEL" != 2 ] || exit 7\n'
    + 'echo "$TEXT|$SLURM_NTASKS|$LD_PRELOAD|level=$LEVEL"\n'
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


def test_shamans_files_on_slurm(
    slurm: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Zero is passed, a failed job is only that, and neither the queue nor the header is timed."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("LUTHIER_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    for name, text in {"c.yaml": COMPONENT, "app.sbatch": APPLICATION, "e.yaml": EXPERIMENT}.items():
        Path(name).write_text(text)
    commands = [
        ["shaman", "install", "c.yaml"],
        ["run", "e.yaml", "--set", "application=app.sbatch", "--set", "budget=3", "--set", "slots=2", "--json"],
        ["export", "1", "--format", "json"],
    ]
    for words in commands:
        monkeypatch.setattr(sys, "argv", ["luthier", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0, capsys.readouterr().err
    runs = json.loads(capsys.readouterr().out)
    assert {run["config"]["LEVEL"]: run["outcome"] for run in runs} == {4: "completed", 0: "completed", 2: "failed"}
    for run in runs:
        if run["outcome"] == "completed":
            assert run["value"] < run["duration_s"] - 0.29
            printed = (Path(run["logs"]) / "stdout").read_text()
            assert printed == f"a,b $(id) 'c'|1|libm.so.6|level={run['config']['LEVEL']}\n"
