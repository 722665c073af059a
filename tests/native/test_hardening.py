"""What the built libraries and programs are protected with, read from their ELF files."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import missing

from luthier.compiled import parts

ROOT = Path(__file__).resolve().parents[2]
WRAP_CHECKED_CALLS = {"io", "sbb", "sro"}  # they define read and its like themselves


def read_elf(path: Path) -> tuple[str, set[str]]:
    """Program headers and dynamic section as text, and the functions that are taken from other libraries."""
    if shutil.which("readelf") is None:
        missing("readelf (binutils) is not installed; as root: sh tests/services.sh")
    shown = [
        subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True, check=True).stdout
        for option in ("-ld", "--dyn-syms")
    ]
    return shown[0], set(re.findall(r" UND (\w+)", shown[1]))


def is_protected(path: Path, *, fortified: bool) -> None:
    """Check one file."""
    headers, taken = read_elf(path)
    assert "GNU_RELRO" in headers
    assert re.search(r"\(FLAGS_1\).*\bNOW\b", headers)
    assert "__stack_chk_fail" in taken
    assert any(name.endswith("_chk") for name in taken) == fortified


@pytest.mark.parametrize("name", parts())
def test_parts_are_built_with_protection(built: Callable[[str], Path], name: str) -> None:
    if parts()[name].compiler == "mpicc" and shutil.which("mpicc") is None:
        missing("Open MPI (mpicc) is not installed; as root: sh tests/services.sh")
    is_protected(built(name), fortified=name not in WRAP_CHECKED_CALLS)


@pytest.mark.parametrize(
    "folder", ["native/io", "native/slurm", "native/online", "testbeds/native", "testbeds/native/sbb"]
)
def test_makefiles_build_the_same(tmp_path: Path, folder: str) -> None:
    for place in ("native", "testbeds/native"):
        shutil.copytree(ROOT / place, tmp_path / place)
    copy = tmp_path / folder
    goals = {"online": ["all", "latency"], "slurm": []}.get(copy.name, ["all"])
    settings = ["CFLAGS=-O1", f"BUILD={tmp_path}/build"]
    subprocess.run(["make", "-s", "-C", copy, *settings, *goals], check=True)
    files = [path for path in (tmp_path / "build").glob("*") if path.suffix in ("", ".so")]
    for path in [copy / "luthier-ask"] if copy.name == "slurm" else files:
        is_protected(path, fortified=path.name not in ("libluthier_io.so", "libsbb.so", "libsro.so"))
    assert files or copy.name == "slurm"
