"""The libraries in C, built once, and the command line that uses them."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.io.io_runs import NATIVE, SOURCES, Libraries, compile_c, pkg_config
from tests.native.command_line import Luthier

from luthier.compiled import library


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Builds a part by name, in a folder of the tests and with warnings as errors."""
    if shutil.which("make") is None or shutil.which("cc") is None:
        missing("make or a C compiler (cc) is not installed; as root: sh tests/services.sh")
    folder = tmp_path_factory.mktemp("native")

    def build(name: str) -> Path:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_DATA_HOME", str(folder))
            patch.setenv("CFLAGS", "-Werror")
            return library(name)

    return build


@pytest.fixture
def home(built: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a data directory of its own, in which the libraries for I/O are built already."""
    library_path = built("io")
    if shutil.which("mpicc") is not None:
        built("io-mpi")
    (tmp_path / "luthier").mkdir()
    (tmp_path / "luthier" / "native").symlink_to(library_path.parents[1])
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("CFLAGS", "-Werror")  # as they were built
    monkeypatch.delenv("LUTHIER_STORE", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("OMPI_MCA_mpi_yield_when_idle", "1")
    return tmp_path


@pytest.fixture
def luthier(home: Path) -> Luthier:
    return Luthier(home)


@pytest.fixture(scope="session")
def io(tmp_path_factory: pytest.TempPathFactory) -> Libraries:
    """The preload libraries of native/io, built with warnings as errors."""
    for program in ("make", "cc", "mpicc", "mpirun"):
        if shutil.which(program) is None:
            missing(f"{program} is not installed; as root: sh tests/services.sh")
    build_folder = tmp_path_factory.mktemp("io-build")
    subprocess.run(["make", "-s", "-C", NATIVE / "io", f"BUILD={build_folder}"], check=True)
    return Libraries(build_folder / "libluthier_io.so", build_folder / "libluthier_io_mpi.so")


@pytest.fixture(scope="session")
def hdf5_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`io/hdf5_program.c` with the serial HDF5 of the distribution."""
    return compile_c(
        SOURCES / "hdf5_program.c", tmp_path_factory.mktemp("io") / "hdf5_program", *hdf5_options("serial")
    )


@pytest.fixture(scope="session")
def rows_columns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`examples/io/rows_columns.c`."""
    source = NATIVE.parent / "examples" / "io" / "rows_columns.c"
    return compile_c(source, tmp_path_factory.mktemp("io") / "rows_columns", *hdf5_options("serial"))


@pytest.fixture(scope="session")
def parallel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`io/parallel.c` with the parallel HDF5 of the distribution."""
    program = tmp_path_factory.mktemp("io") / "parallel"
    return compile_c(SOURCES / "parallel.c", program, *hdf5_options("openmpi"), compiler="mpicc")


def hdf5_options(kind: str) -> list[str]:
    """What a compiler needs for HDF5, `serial` or `openmpi`."""
    options = pkg_config(f"hdf5-{kind}") if shutil.which("pkg-config") else None
    if options is None or shutil.which("h5dump") is None:
        missing(f"HDF5 ({kind}, with h5dump and pkg-config) is not installed; as root: sh tests/services.sh")
    return options
