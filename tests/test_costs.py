"""What commands and runs cost, counted so that it does not depend on the machine."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

STARTED = set(
    subprocess.run(
        [sys.executable, "-c", "import sys; print(*{name.partition('.')[0] for name in sys.modules})"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split()
)
"""What Python itself imports here, with the files of its installation that name modules."""

HEAVY = {"alembic", "fastapi", "numpy", "pydantic", "scipy", "sqlalchemy", "uvicorn", "yaml"}


def counted(folder: Path, *words: str, **variables: str) -> dict[str, Any]:
    """What a command of luthier did: processes, files written, statements, and the modules it imported."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.counted", *words],
        env={**os.environ, "XDG_DATA_HOME": str(folder), "LUTHIER_STORE": str(folder / "store.db"), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a store of one experiment."""
    path = tmp_path_factory.mktemp("costs")
    tuned(path, 4)
    return path


def tuned(path: Path, budget: int) -> dict[str, Any]:
    options = ["-q", "-o", "random", "--seed", "1", "--verify", "0", "-n", str(budget)]
    return counted(path, "--with-statements", "tune", *options, "-p", "x=1..100", "--", "true", "{x}")


def own(found: dict[str, Any]) -> int:
    return sum(name.partition(".")[0] == "luthier" for name in found["modules"])


def top(found: dict[str, Any]) -> set[str]:
    return {name.partition(".")[0] for name in found["modules"]}


def test_help_imports_little(folder: Path) -> None:
    found = counted(folder, "--help")
    assert not top(found) & {*HEAVY, "rich"}
    assert own(found) <= 50


def test_list_imports_what_a_store_needs_and_no_models(folder: Path) -> None:
    found = counted(folder, "list")
    assert not top(found) & {"scipy", "alembic", "fastapi", "uvicorn", "yaml"}
    assert own(found) <= 134


def test_submit_stays_on_the_standard_library(folder: Path) -> None:
    (folder / "job.sh").write_text("#!/bin/sh\n")
    # Without sbatch it fails after all its own work.
    found = counted(folder, "submit", str(folder / "job.sh"), PATH="")
    assert top(found) - {"tests", "luthier", "__main__", *STARTED} <= {*sys.stdlib_module_names}
    assert own(found) <= 8
    assert len(found["modules"]) <= 130


def test_asking_about_a_job_starts_nothing_and_imports_little_more(folder: Path) -> None:
    (folder / "job.sh").write_text("#!/bin/sh\n")
    (folder / "luthier-submit.conf").write_text(f"url http://127.0.0.1:1\ntoken t\nkey {'a' * 64}\nlimit_ms 2000\n")
    found = counted(folder, "submit", str(folder / "job.sh"), PATH="", SLURM_CONF=str(folder / "slurm.conf"))
    assert "ctypes" in found["modules"]  # it was ready to check an answer
    assert top(found) - {"tests", "luthier", "__main__", *STARTED} <= {*sys.stdlib_module_names}
    assert found["processes"] == 1  # sbatch itself
    assert own(found) <= 8
    assert len(found["modules"]) <= 130


def test_a_run_costs_one_process_one_file_and_few_statements(folder: Path) -> None:
    few, many = tuned(folder, 4), tuned(folder, 12)
    per_run = {name: (many[name] - few[name]) / 8 for name in ("processes", "files", "statements")}
    assert per_run["processes"] == 1
    assert per_run["files"] == 1
    assert per_run["statements"] <= 9  # seven, and those of the heartbeat of a slow machine
