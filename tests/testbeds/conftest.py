"""The real systems to tune, built once."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import missing

from testbeds.real import sbb
from testbeds.real.sro import Programs


@pytest.fixture(scope="session")
def programs(built: Callable[[str], Path]) -> Programs:
    return Programs(built("fakeapp"), built("sro"))


@pytest.fixture(scope="session")
def sbb_programs(built: Callable[[str], Path]) -> sbb.Programs:
    return sbb.Programs(built("sbbd"), built("sbb"), built("burst"))


@pytest.fixture(scope="session")
def collbench(built: Callable[[str], Path]) -> Path:
    for program in ("mpirun", "mpicc"):
        if shutil.which(program) is None:
            missing(f"Open MPI ({program}) is not installed; as root: sh tests/services.sh")
    return built("collbench")


@pytest.fixture
def stats(tmp_path: Path) -> Path:
    """Where SRO_STATS may write."""
    return tmp_path / "stats"
