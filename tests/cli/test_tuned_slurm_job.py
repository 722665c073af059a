"""An experiment on a real Slurm becomes a record that the next job is matched with."""

import getpass
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest
from tests.slurm.cluster import Cluster

from luthier.__main__ import main
from luthier.store import open_server_store
from luthier.submission.matching import job_of_script
from luthier.submission.store import job_records_in
from luthier.submission.tuned_jobs import Matcher

COMPONENT = "components:\n  cache:\n    parameters:\n      LEVEL: {env_var: True, type: int, default: 4}\n"
EXPERIMENT = """\
experiment:
  application: app.sbatch
  runner: slurm
  budget: 14
  seed: 1
components:
  cache:
    LEVEL: {min: 1, max: 4, step: 1}
"""
APPLICATION = """#!/bin/bash
#SBATCH --job-name=angry_ant --ntasks=1
cd "$SLURM_SUBMIT_DIR"
./solver --size=4 input.dat
"""


def test_a_tuned_job_is_found_again(slurm: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("LUTHIER_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    for name, text in {"c.yaml": COMPONENT, "e.yaml": EXPERIMENT, "app.sbatch": APPLICATION}.items():
        Path(name).write_text(text)
    Path("solver").write_text('#!/bin/sh\nsleep "0.$((LEVEL * 2 - 1))"\n')
    Path("solver").chmod(0o755)
    for words in (["component", "add", "c.yaml"], ["run", "e.yaml"]):
        monkeypatch.setattr(sys, "argv", ["luthier", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0
    store = open_server_store()
    matcher = Matcher(store, getpass.getuser(), time.time)
    matcher.refresh()
    new = APPLICATION.replace("angry_ant", "calm_ant").replace("./solver", "LEVEL=4 ./solver")
    (match,) = matcher.match(job_of_script(new, getpass.getuser(), datetime.now().astimezone()))
    record = job_records_in(store).get(match.record)
    assert record.job.name == "angry_ant"
    assert record.tuned.environment == {"LEVEL": str(record.tuned.config["LEVEL"])}
    assert not record.tuned.keeps_default
    assert record.tuned.speedup > 1.0  # of times on a machine that others may load
