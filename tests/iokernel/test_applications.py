"""The kernels of real applications: they compile as the applications do, and make the same I/O."""

import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import missing

from luthier.iokernel import Options, discover_io
from luthier.launch.io_kernel import sources_from, write_kernel
from luthier.launch.io_profile import profiled
from luthier.measures.io_counts import ProcessCounts

FOLDER = Path(__file__).parents[2] / "testbeds" / "io_apps"
FLAGS = ("-O2", "-Wall", "-Wextra")
TIMES = ("read_s", "write_s", "other_s")
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2")

Io = Counter[tuple[object, ...]]


@dataclass(frozen=True)
class Application:
    name: str
    sources: tuple[str, ...]
    compiler: tuple[str, ...]
    arguments: tuple[str, ...]
    ranks: bool = False


APPLICATIONS = (
    Application("stencil", ("stencil.c",), ("h5pcc", "-shlib"), ("64", "20", "10"), ranks=True),
    Application("particles", ("particles.c",), ("h5cc", "-shlib"), ("2000", "4", "2")),
    Application("restart", ("restart/main.c", "restart/state.c", "restart/files.c"), ("gcc",), ("-n5000", "-s6")),
    Application("columns", ("columns.c",), ("h5cc", "-shlib"), ("100", "32")),
    Application("strided", ("strided.c",), ("mpicc",), ("256", "8"), ranks=True),
    Application("logger", ("logger.c",), ("gcc",), ("300", "100")),
)


def build(application: Application, sources: list[Path], program: Path) -> str:
    """Compile; return what the compiler said."""
    command = [*application.compiler, *FLAGS, *map(str, sources), "-o", str(program), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=program.parent)
    assert done.returncode == 0, done.stderr
    return done.stderr


def io_of(processes: tuple[ProcessCounts, ...], folder: Path) -> Io:
    """All counters but times, by rank, layer and file of the working directory."""
    found: Io = Counter()
    for process in processes:
        for file in process.files:
            if not Path(file.path).is_relative_to(folder):
                continue
            name = str(Path(file.path).relative_to(folder))
            counted = {key: getattr(file.counts, key) for key in file.counts.__slots__ if key not in TIMES}
            found[(process.rank, file.layer, name, tuple(sorted(counted.items())))] += 1
    return found


def run(application: Application, program: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Io:
    folder.mkdir()
    monkeypatch.chdir(folder)
    command = [*(MPIRUN if application.ranks else ()), str(program), *application.arguments]
    with (folder.parent / f"{folder.name}.out").open("w") as output:
        done = profiled(command, "", None, output)
    assert done.exit_code == 0
    return io_of(tuple(done.profile.processes), folder)


def same_content(one: Path, other: Path) -> bool:
    """HDF5 files hold the time of their creation, so h5diff compares them."""
    if one.suffix != ".h5":
        return one.read_bytes() == other.read_bytes()
    return not subprocess.run(["h5diff", str(one), str(other)], capture_output=True, timeout=60, check=False).returncode


@pytest.mark.parametrize("buffers", ["keep", "cut"])
@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda application: application.name)
def test_the_kernel_makes_the_same_io(
    application: Application, buffers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in (application.compiler[0], *(("mpirun",) if application.ranks else ()), "h5diff"):
        if shutil.which(program) is None:
            missing(f"{program} is not installed; as root: sh tests/services.sh")
    sources = [FOLDER / name for name in application.sources]
    found = discover_io(sources_from(sources, application.compiler[:1]), Options(buffer_content=buffers))
    written = write_kernel(found, tmp_path / "kernel")
    assert found.kept < found.total
    assert build(application, written, tmp_path / "small") == build(application, sources, tmp_path / "full")
    expected = run(application, tmp_path / "full", tmp_path / "app", monkeypatch)
    assert expected
    assert run(application, tmp_path / "small", tmp_path / "ker", monkeypatch) == expected
    made = {path.relative_to(tmp_path / "app") for path in (tmp_path / "app").rglob("*") if path.is_file()}
    assert made == {path.relative_to(tmp_path / "ker") for path in (tmp_path / "ker").rglob("*") if path.is_file()}
    assert made
    for name in made:
        one, other = tmp_path / "app" / name, tmp_path / "ker" / name
        assert one.stat().st_size == other.stat().st_size
        assert buffers == "cut" or same_content(one, other), name


def test_cut_removes_the_computing() -> None:
    sources = sources_from([FOLDER / "stencil.c"], ["h5pcc"])
    left = discover_io(sources, Options(buffer_content="cut")).files[0].text
    assert "relax(" not in left
    assert "exchange(" not in left
    assert "memset(u, 63, (size_t)(rows + 2) * n * sizeof *u);" in left
    assert "if (step % every == 0)" in left
    kept = discover_io(sources).files[0].text
    assert "relax(" in kept
    assert "MPI_Allreduce" not in kept
