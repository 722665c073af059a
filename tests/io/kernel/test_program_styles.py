"""Programs in the styles of real codes: kernels make the same I/O and leave the same files; loops are reduced."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import missing

from luthier.io.kernel import KernelOptions, discover_io
from luthier.io.kernel_reduction import with_reduced_loops
from luthier.io.kernel_runs import sources_from, write_kernel
from luthier.io.kernel_verification import BuiltProgram, build_from, built, run_words, verified

FOLDER = Path(__file__).with_name("programs")


@dataclass(frozen=True)
class Style:
    sources: tuple[str, ...]
    compiler: tuple[str, ...]
    run: str
    reduced: int
    """Loops that are reduced."""


STYLES = {
    "functions in tables, unions, bit fields, writev": Style(("backends.c",), ("cc",), "{program} -s 40 -b vector", 1),
    "a state machine over several files": Style(
        ("machine/main.c", "machine/run.c", "machine/io.c"), ("cc",), "{program} 60", 1
    ),
    "a ring of checkpoints": Style(("ring.c",), ("cc",), "{program} 40 40", 1),
    "a queue of output, places in the source": Style(("queue.c",), ("cc",), "{program} 20", 0),
    "macros that jump, a log": Style(("cleanup.c",), ("h5cc", "-shlib"), "{program} 40", 1),
}


def left_by(program: Path, words: tuple[str, ...], folder: Path) -> Path:
    """The folder with what a run has left there."""
    folder.mkdir()
    command = [word.replace("{program}", str(program)) for word in words]
    subprocess.run(command, cwd=folder, check=True, timeout=60, stdout=subprocess.DEVNULL)
    return folder


def is_same(one: Path, other: Path) -> bool:
    """Whether two files hold the same data; those of HDF5 hold the time as well."""
    if one.suffix == ".h5":
        return subprocess.run(["h5diff", one, other], check=False).returncode == 0
    return one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("name", STYLES)
def test_the_kernel_leaves_the_same_files(name: str, tmp_path: Path) -> None:
    style = STYLES[name]
    if shutil.which(style.compiler[0]) is None:
        missing(f"{style.compiler[0]} is not installed; as root: sh tests/services.sh")
    sources = sources_from([FOLDER / source for source in style.sources], style.compiler[:1])
    how = BuiltProgram(build_from([*style.compiler, "-O1", "-lm"]), run_words(style.run), timeout_s=60)
    found = discover_io(sources, KernelOptions(reduce=0.1))
    verdict = verified(found, how)
    assert verdict.accepted, verdict.reasons

    application = built([Path(file.path) for file in found.files], how.build, tmp_path / "a" / "program").program
    kernel = built(write_kernel(found, tmp_path / "kernel"), how.build, tmp_path / "k" / "program").program
    ours, theirs = left_by(application, how.run, tmp_path / "ours"), left_by(kernel, how.run, tmp_path / "theirs")
    names = sorted(str(path.relative_to(ours)) for path in ours.rglob("*") if path.is_file())
    assert names == sorted(str(path.relative_to(theirs)) for path in theirs.rglob("*") if path.is_file())
    assert names
    assert all(is_same(ours / one, theirs / one) for one in names)

    reduced = with_reduced_loops(found, how, verdict, 0.1)
    assert len(reduced.reduction.loops) == style.reduced, reduced.reduction
    assert all(one.is_good for one in reduced.predictions)
