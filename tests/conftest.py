"""Services that tests share."""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import hypothesis
import pytest
from tests.slurm.cluster import Cluster, cluster, missing_program

from luthier.__main__ import join_wings

join_wings()  # as the command does

# The fixtures of a room, which tests of wings use too.
pytest_plugins = [
    "tests.server.server_fixtures",  # before those of the browser, which import it
    "tests.browser.browser_fixtures",
    "tests.native.native_fixtures",
    "tests.store.store_fixtures",
]

hypothesis.settings.register_profile("tests", deadline=None)  # other work on the machine must not make a test fail
hypothesis.settings.load_profile("tests")


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL, without a database, of a throw-away PostgreSQL server that asks for a password."""
    programs = _postgresql_programs()
    if programs is None:
        missing("PostgreSQL (initdb, pg_ctl) is not installed; as root: sh tests/services.sh")
    folder = Path(tempfile.mkdtemp(prefix="luthier-postgresql-"))
    try:
        yield from _serve(programs, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgresql_url(postgresql_server: str) -> Iterator[str]:
    """An empty database of its own for one test."""
    import psycopg

    with psycopg.connect(f"{postgresql_server}/postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE one_test")
        yield f"{postgresql_server}/one_test"
        connection.execute("DROP DATABASE one_test WITH (FORCE)")


@pytest.fixture(scope="module")
def slurm_cluster() -> Iterator[Cluster]:
    """A throw-away Slurm with two emulated nodes of four processors."""
    if (program := missing_program()) is not None:
        missing(f"Slurm ({program}) is not installed; as root: sh tests/services.sh")
    with cluster() as up:
        yield up


@pytest.fixture
def slurm(slurm_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The cluster, idle, with this process as one of its users."""
    for name, value in slurm_cluster.environment.items():
        monkeypatch.setenv(name, value)
    slurm_cluster.run("scancel", f"--user={os.geteuid()}")
    slurm_cluster.wait_idle()
    return slurm_cluster


def missing(service: str) -> NoReturn:
    """Skip a test whose service is missing; where everything must be there, fail it."""
    if os.environ.get("CI"):
        pytest.fail(service)
    pytest.skip(service)


def _postgresql_programs() -> Path | None:
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: float(place.parent.name), reverse=True)
    if (found := shutil.which("initdb")) is not None:
        places.append(Path(found).resolve().parent)
    return next((place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)


def _serve(programs: Path, folder: Path) -> Iterator[str]:
    user = "postgres" if os.geteuid() == 0 else None  # the server refuses to run as root
    if user is not None:
        shutil.chown(folder, user)
    data, password = folder / "data", secrets.token_hex(8)
    word = folder / "password"
    word.write_text(password)
    word.chmod(0o644)

    def run(program: str, *arguments: str, check: bool = True) -> bool:
        done = subprocess.run(
            [programs / program, "-D", data, *arguments],
            user=user,
            cwd=folder,
            env={"LC_ALL": "C.UTF-8", "PATH": os.defpath, "HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            capture_output=check,
            check=False,
        )
        if check and done.returncode != 0:
            raise RuntimeError(f"{program}: {done.stderr.decode(errors='replace')}")
        return done.returncode == 0

    run("initdb", "-U", "luthier", "-A", "scram-sha-256", f"--pwfile={word}", "-E", "UTF8", "--no-sync")
    for _ in range(5):  # a port that is free now may be taken a moment later
        port = _free_port()
        options = (
            f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off "
            "-c full_page_writes=off -c shared_buffers=16MB -c max_connections=50"
        )
        if run("pg_ctl", "start", "-w", "-s", "-l", str(folder / "log"), "-o", options, check=False):
            break
    else:
        raise RuntimeError((folder / "log").read_text())
    try:
        yield f"postgresql://luthier:{password}@127.0.0.1:{port}"
    finally:
        run("pg_ctl", "stop", "-m", "immediate", "-s")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
