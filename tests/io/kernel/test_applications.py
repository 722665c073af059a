"""The kernels of real applications are verified: they compile as the applications do, and make the same I/O."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.io.io_runs import MPI_ENVIRONMENT

from luthier.io.kernel import KernelOptions, discover_io
from luthier.io.kernel_runs import sources_from, write_kernel
from luthier.io.kernel_verification import BuiltProgram, build_from, built, run_words, verified

FOLDER = Path(__file__).parents[3] / "testbeds" / "io_apps"
FLAGS = ("-O2", "-Wall", "-Wextra", "-lm")


@dataclass(frozen=True)
class Application:
    name: str
    sources: tuple[str, ...]
    compiler: tuple[str, ...]
    run: str
    operations: int

    def program(self) -> BuiltProgram:
        return BuiltProgram(build_from([*self.compiler, *FLAGS]), run_words(self.run), timeout_s=60)

    def paths(self) -> list[Path]:
        for program in (self.compiler[0], *(("mpirun",) if self.run.startswith("mpirun") else ()), "h5diff"):
            if shutil.which(program) is None:
                missing(f"{program} is not installed; as root: sh tests/services.sh")
        return [FOLDER / name for name in self.sources]


RESTART = ("restart/main.c", "restart/state.c", "restart/files.c")
APPLICATIONS = (
    Application("stencil", ("stencil.c",), ("h5pcc", "-shlib"), "mpirun -n 2 {program} 64 20 10", 8),
    Application("particles", ("particles.c",), ("h5cc", "-shlib"), "{program} 2000 4 2", 2 * (1 + 4)),
    Application("restart", RESTART, ("gcc",), "{program} -n5000 -s6", 4),
    Application("columns", ("columns.c",), ("h5cc", "-shlib"), "{program} 100 32", 1 + 100 + 100),
    Application("strided", ("strided.c",), ("mpicc",), "mpirun -n 2 {program} 256 8", 18),
    Application("logger", ("logger.c",), ("gcc",), "{program} 300 100", 308),
)


@pytest.fixture(autouse=True)
def _mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in MPI_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("buffers", ["keep", "cut"])
@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda application: application.name)
def test_the_kernel_is_accepted(application: Application, buffers: str) -> None:
    sources = sources_from(application.paths(), application.compiler[:1])
    found = discover_io(sources, KernelOptions(buffer_content=buffers))
    assert found.kept < found.total
    verdict = verified(found, application.program())
    assert verdict.accepted, verdict.reasons
    assert verdict.operations == application.operations
    assert verdict.ranks == (2 if application.run.startswith("mpirun") else 1)
    count = "2 inputs" if application.run.startswith("mpirun") else "one input"
    start = f"verified on {count}: same I/O as the application ({application.operations} operations, "
    assert verdict.text.startswith(start)


def same_content(one: Path, other: Path) -> bool:
    """HDF5 files hold the time of their creation, so h5diff compares them."""
    if one.suffix != ".h5":
        return one.read_bytes() == other.read_bytes()
    return not subprocess.run(["h5diff", str(one), str(other)], capture_output=True, timeout=60, check=False).returncode


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda application: application.name)
def test_with_keep_the_kernel_writes_the_same_content(application: Application, tmp_path: Path) -> None:
    found = discover_io(sources_from(application.paths(), application.compiler[:1]))
    build = application.program().build
    programs = {
        "app": built(application.paths(), build, tmp_path / "full"),
        "ker": built(write_kernel(found, tmp_path / "kernel"), build, tmp_path / "small"),
    }
    for name, made in programs.items():
        (tmp_path / name).mkdir()
        words = [word.replace("{program}", str(made.program)) for word in run_words(application.run)]
        subprocess.run(words, cwd=tmp_path / name, capture_output=True, timeout=60, check=True)
    left = sorted(path.relative_to(tmp_path / "app") for path in (tmp_path / "app").rglob("*") if path.is_file())
    assert left
    for path in left:
        assert same_content(tmp_path / "app" / path, tmp_path / "ker" / path), path


def test_cut_removes_the_computing() -> None:
    sources = sources_from([FOLDER / "stencil.c"], ["h5pcc"])
    left = discover_io(sources, KernelOptions(buffer_content="cut")).files[0].text
    assert "relax(" not in left
    assert "exchange(" not in left
    assert "memset(u, 63, (size_t)(rows + 2) * n * sizeof *u);" in left
    assert "if (step % every == 0)" in left
    kept = discover_io(sources).files[0].text
    assert "relax(" in kept
    assert "MPI_Allreduce" not in kept
