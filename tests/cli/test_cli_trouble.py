"""The command line on a full disk, over PostgreSQL, and killed at the worst moments."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

LUTHIER = [sys.executable, "-m", "luthier"]


def luthier(home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_DATA_HOME": str(home), **more}
    return subprocess.run(
        [*LUTHIER, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with hardly any room."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "none", str(disk)]
    mounted = subprocess.run(mount, check=False, capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no small file system to be had: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_full_disk_is_one_line_and_resume_goes_on_when_there_is_room(small_disk: Path) -> None:
    fill = ["sh", "-c", "head -c 40000 /dev/zero; echo {x} >&2"]
    full = luthier(small_disk, "tune", "-q", "-p", "x=1..50", "-n", "20", "--verify", "0", "--", *fill)
    assert full.returncode == 2, full.stdout
    assert len(full.stderr.splitlines()) == 1, full.stderr
    assert "Traceback" not in full.stderr
    subprocess.run(["mount", "-o", "remount,size=20M", str(small_disk)], check=True)
    before = json.loads(luthier(small_disk, "export", "1", "-f", "json").stdout)
    again = luthier(small_disk, "resume", "1", "--json")
    assert again.returncode == 0, again.stderr
    result = json.loads(again.stdout)
    assert result["runs"] - result["lost"] == 20
    after = json.loads(luthier(small_disk, "export", "1", "-f", "json").stdout)
    completed = [run for run in before if run["outcome"] == "completed"]
    assert completed
    assert all(run in after for run in completed)


def test_everything_works_over_postgresql(tmp_path: Path, postgresql_server: str) -> None:
    store = f"{postgresql_server}/postgres"
    tuned = luthier(
        tmp_path,
        "tune",
        "-q",
        "-p",
        "x=1..9@9",
        "-m",
        "regex:\\d+",
        "-n",
        "14",
        "--json",
        "--",
        "echo",
        "{x}",
        LUTHIER_STORE=store,
    )
    assert tuned.returncode == 0, tuned.stderr
    number = str(json.loads(tuned.stdout)["number"])
    assert json.loads(tuned.stdout)["best"]["config"] == {"x": 1}
    assert json.loads(luthier(tmp_path, "apply", number, "--json", "--store", store).stdout) == {"x": 1}
    assert not (tmp_path / "luthier" / "luthier.db").exists()
