"""The on-line client, built once."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.conftest import missing

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "native" / "online"
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-O1"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]


def need(*programs: str) -> None:
    """Skip a test where one of the programs is missing."""
    for program in programs:
        if shutil.which(program) is None:
            missing(f"{program} is not installed; as root: sh tests/services.sh")


def compiled(target: Path, *words: str | Path, compiler: str = "cc") -> Path:
    """Compile a program; warnings are errors."""
    made = subprocess.run([compiler, *words, "-o", target], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return target


def mpi_environment() -> dict[str, str]:
    """Four ranks on any number of processors, also as root."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("OMPI_", "LUTHIER_"))}
    return kept | {
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    }


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver with the client inside, under the sanitizers."""
    need("cc")
    target = tmp_path_factory.mktemp("driver") / "driver"
    return compiled(
        target, *STRICT, *SANITIZERS, f"-I{SOURCES}", Path(__file__).parent / "driver.c", SOURCES / "luthier_online.c"
    )
