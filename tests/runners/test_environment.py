"""What a tuned program sees of the environment in which luthier runs."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.slurm.cluster import Cluster, wait_until

from luthier.runners.base import Runner
from luthier.runners.command import Command, CommandRunner
from luthier.runners.contract import collect
from luthier.runners.psij import Allocation, PsijRunner
from luthier.runners.slurm import Batch, SlurmRunner
from luthier.runners.supervisor import inherited
from luthier.trial import Config, Job

SECRET = "f3a9c1"
SERVER = {
    "LUTHIER_STORE": f"postgresql://luthier:{SECRET}@127.0.0.1/luthier",
    "LUTHIER_OIDC_CLIENT_SECRET": SECRET,
    "LUTHIER_WHATEVER_COMES": SECRET,
    "PGPASSWORD": SECRET,
    "PGPASSFILE": f"/{SECRET}",
    "PGSERVICEFILE": f"/{SECRET}",
}
EXPLICIT = {"LUTHIER_STORE": "of the program itself"}
SHOW = 'env -0; tr "\\0" "\\n" <"/proc/$PPID/environ"'
"""Shows the program's own variables and those of the process that started it."""


def local(folder: Path, environment: Mapping[str, str]) -> Runner:
    return CommandRunner(lambda config: Command(("sh", "-c", SHOW), environment), folder)


def batch(folder: Path, environment: Mapping[str, str]) -> Runner:
    script = Batch(f"#!/bin/sh\n{SHOW}\n", environment)
    return SlurmRunner(lambda config: script, folder, ask_every_s=0.2, settle_s=1.0)


def psij(folder: Path, environment: Mapping[str, str]) -> Runner:
    command, allocation = Command(("env", "-0"), environment), Allocation(walltime_s=3600.0)
    return PsijRunner(lambda config: command, "local", folder, allocation=allocation, ask_every_s=1)


def seen(runner: Runner, folder: Path) -> str:
    runner.submit(Job("k", Config({})))
    assert collect(runner, ["k"])["k"].problem is None
    return (folder / "k" / "stdout").read_text()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process with the secrets of a server."""
    for name, value in {**SERVER, "OF_THE_USER": "kept"}.items():
        monkeypatch.setenv(name, value)


def check(make: Callable[[Path, Mapping[str, str]], Runner], folder: Path) -> None:
    found = seen(make(folder / "plain", {}), folder / "plain")
    assert SECRET not in found
    assert "LUTHIER_" not in found
    assert "OF_THE_USER=kept" in found
    assert "LUTHIER_STORE=of the program itself" in seen(make(folder / "explicit", EXPLICIT), folder / "explicit")


@pytest.mark.usefixtures("server")
def test_a_local_program_sees_no_secret_of_the_server(tmp_path: Path) -> None:
    check(local, tmp_path)


@pytest.mark.usefixtures("server")
def test_a_slurm_job_sees_no_secret_of_the_server(slurm: Cluster, tmp_path: Path) -> None:
    check(batch, tmp_path)


@pytest.mark.usefixtures("server")
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_a_job_through_psij_sees_no_secret_of_the_server(tmp_path: Path) -> None:
    check(psij, tmp_path)
    from psij.executors.local import _ProcessReaper

    wait_until(lambda: not _ProcessReaper.get_instance()._jobs, "PSI/J has let go of all processes")


@pytest.mark.parametrize("store", [None, "", "runs.db", "sqlite:///runs.db", "memory:"])
def test_a_password_for_postgresql_is_the_users_where_the_store_is_elsewhere(store: str | None) -> None:
    named = {} if store is None else {"LUTHIER_STORE": store}
    assert inherited({**named, "PGPASSWORD": "x", "A": "b"}) == {"PGPASSWORD": "x", "A": "b"}


def test_nothing_is_changed_in_luthiers_own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUTHIER_STORE", "a.db")
    inherited(os.environ)
    assert os.environ["LUTHIER_STORE"] == "a.db"
