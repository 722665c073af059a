"""The C programs, built once."""

import shutil
from pathlib import Path

import pytest
from tests.conftest import missing

from testbeds.real.sro import Programs, build


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    if shutil.which("make") is None or shutil.which("cc") is None:
        missing("make or a C compiler (cc) is not installed; as root: sh tests/services.sh")
    return build(tmp_path_factory.mktemp("native"))


@pytest.fixture
def stats(tmp_path: Path) -> Path:
    """Where SRO_STATS may write."""
    return tmp_path / "stats"
