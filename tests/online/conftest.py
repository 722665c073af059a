"""A short folder for sockets, whose paths are limited to about 100 bytes, and stores in each kind of database."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.online.serving import Serving, serving


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="lt-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, folder: Path) -> str:
    """A store that does not exist yet, in each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{folder}/x.db"
    return str(request.getfixturevalue("postgresql_url"))


@pytest.fixture
def served(folder: Path) -> Iterator[Serving]:
    """A service on a unix socket and on a tcp port."""
    with serving(f"sqlite:///{folder}/x.db", folder, "tcp:0") as running:
        yield running
