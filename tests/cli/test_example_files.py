"""The experiment files in `examples/` run, with the programs they are about."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import missing

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["dd", "compressor", "fio", "postgresql"])
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    programs = {"compressor": "zstd", "postgresql": "initdb"}
    program = programs.get(name, name)
    found = shutil.which(program) or any(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))
    if not found:
        missing(f"{program} is not installed; as root: sh tests/services.sh")
    few = ["--set", "budget=4", "--set", "verify=0"]
    ended = subprocess.run(
        [sys.executable, "-m", "luthier", "run", str(EXAMPLES / f"{name}.yaml"), "-q", "--json", *few],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path)},
        check=False,
    )
    assert ended.returncode in (0, 1), ended.stderr
    answer = json.loads(ended.stdout)
    assert answer["default"]["estimate"]["value"] > 0.0
    assert answer["best"] is not None
