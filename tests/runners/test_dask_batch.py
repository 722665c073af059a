"""The recipes of docs/dask.md: workers that dask-jobqueue submits to Slurm, and workers that MPI starts."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.runners.dask_site import LONG_S, wait_until
from tests.slurm.cluster import Cluster

import luthier as lt
from luthier.trial import Completed, Config

SPACE = lt.Space(lt.Integer("n", 1, 4, default=4))


def test_workers_of_dask_jobqueue(slurm: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dask_jobqueue.slurm import SLURMCluster

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def where(config: Config) -> float:
        sys.stdout.write(f"{os.environ['SLURM_JOB_ID']}\n")
        return float(config["n"])

    options = {"host": "127.0.0.1", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    with SLURMCluster(
        queue="main",
        cores=1,
        memory="500MB",
        walltime="00:10:00",
        nanny=False,
        python=sys.executable,
        job_directives_skip=["--mem"],
        local_directory=str(tmp_path / "scratch"),
        log_directory=str(tmp_path / "logs"),
        scheduler_options=options,
    ) as cluster:
        cluster.scale(jobs=2)
        cluster.wait_for_workers(2, timeout=LONG_S)
        result = lt.tune(where, SPACE, budget=4, optimizer="exhaustive", runner=f"dask:{cluster.scheduler_address}")
        assert result.best.config == {"n": 1}
        assert result.experiment.slots == 2
        jobs = {(Path(run.logs or "") / "stdout").read_text().strip() for run in result.runs}
        assert len(jobs) == 2, "each worker is a Slurm job"
    assert all(isinstance(run.outcome, Completed) for run in result.runs)


def test_workers_of_dask_mpi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("mpirun") is None:
        missing("Open MPI (mpirun) is not installed; as root: sh tests/services.sh")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    file = tmp_path / "scheduler.json"
    words = ["mpirun", "--oversubscribe", "-n", "3", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
    program = [str(Path(sys.executable).with_name("dask-mpi")), "--scheduler-file", str(file)]
    options = ["--worker-class", "distributed.Worker", "--interface", "lo", "--nthreads", "1", "--no-dashboard"]
    options += ["--local-directory", str(tmp_path)]
    with (tmp_path / "log").open("wb") as log:
        cluster = subprocess.Popen([*words, *program, *options], stdout=log, stderr=log, cwd=tmp_path)
    try:
        wait_until(lambda: file.exists() or cluster.poll() is not None, "the scheduler starts")
        assert cluster.poll() is None, (tmp_path / "log").read_text()
        result = lt.tune(
            lambda config: float(config["n"]),
            SPACE,
            budget=4,
            slots=2,
            optimizer="exhaustive",
            time_limit_s=LONG_S,
            runner=f"dask:{file}",
        )
    finally:
        cluster.terminate()
        cluster.wait(LONG_S)
    assert result.best.config == {"n": 1}
    assert all(isinstance(run.outcome, Completed) for run in result.runs)
