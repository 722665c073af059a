"""Waiting is visible, and what runs can be stopped from elsewhere: the command line and the server on a real Slurm."""

import csv
import io
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from tests.server.server_fixtures import Running, running_server
from tests.slurm.cluster import Cluster, wait_until

from luthier.launch.worker import Worker
from luthier.store import open_store
from luthier.trial import Lost

HANGS = """\
experiment:
  {runner: slurm, budget: 4, slots: 2, script: "#!/bin/sh\\n#SBATCH --nodes=2 --exclusive\\nexec sleep 3600\\n"}
definitions: {knob: {parameters: {LEVEL: {env_var: true, type: int, default: 1}}}}
components: {knob: {LEVEL: {min: 1, max: 99}}}
"""


@pytest.fixture
def home(slurm: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an experiment whose first run hangs on all nodes, so that its second run waits."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("LUTHIER_STORE", raising=False)
    (tmp_path / "e.yaml").write_text(HANGS)
    return tmp_path


def luthier(home: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "luthier", *words], cwd=home, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def active(slurm: Cluster) -> dict[str, str]:
    """The states of the jobs that wait or run, by what people see of their names."""
    listed = slurm.run("squeue", "--noheader", "--states=PENDING,RUNNING,COMPLETING", "--format=%j %T")
    pairs = (line.split() for line in listed.splitlines())
    return {name.partition("-luthier-")[0]: state for name, state in pairs}


def test_a_run_that_waits_is_told_and_stopped_from_another_terminal(slurm: Cluster, home: Path) -> None:
    words = [sys.executable, "-m", "luthier", "run", "e.yaml"]
    with subprocess.Popen(words, cwd=home, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as tuner:
        assert tuner.stderr is not None
        waits = next(line for line in tuner.stderr if line.startswith("waiting: "))
        assert active(slurm) == {"1-run0": "RUNNING", "1-run1": "PENDING"}
        number = slurm.run("squeue", "--noheader", "--states=PENDING", "--format=%A").strip()
        assert f"run 1: job {number} PENDING (Resources), " in waits
        assert waits.rstrip().endswith(" s in the queue")
        store = open_store(None)
        wait_until(lambda: set(store.experiment(1).jobs) == {0, 1}, "the store has the jobs")
        jobs = store.experiment(1).jobs
        assert (jobs[1].number, jobs[1].state, jobs[1].began_at) == (number, "PENDING", None)
        assert jobs[0].state == "RUNNING"
        luthier(home, "stop", "1", "--now")
        tuner.stderr.read()
        assert tuner.wait(60) == 0
    assert active(slurm) == {}
    rows = list(csv.DictReader(io.StringIO(luthier(home, "export", "1"))))
    assert [row["outcome"] for row in rows] == ["lost", "lost"]
    assert [row["batch_job"] for row in rows] == [jobs[0].number, number]


@pytest.fixture
def site(home: Path) -> Iterator[Running]:
    """A server with a worker that can submit to Slurm."""
    with running_server(f"sqlite:///{home / 'site.db'}") as server:
        stopped = threading.Event()
        worker = Worker(server.store, server.store_url)
        thread = threading.Thread(target=worker.run, args=(stopped,))
        thread.start()
        yield server
        for record in server.store.history.experiments():
            server.store.history.request_stop(record.id, "kill")
        wait_until(lambda: worker.working == 0, "nothing runs any more")
        stopped.set()
        thread.join()


def test_rest_has_the_jobs_and_stops_them(slurm: Cluster, site: Running) -> None:
    path = f"/api/v1/experiments/{site.launch(HANGS)}"

    def jobs() -> list[dict[str, object]]:
        detail = cast("dict[str, list[dict[str, object]]]", site.ask("GET", path).json)
        return detail["jobs"]

    wait_until(lambda: [job["state"] for job in jobs()] == ["RUNNING", "PENDING"], "one runs, and one waits")
    wait_until(lambda: jobs()[1]["reason"] == "Resources", "Slurm has said why")
    first, second = jobs()
    assert (first["run"], second["run"], second["began_at"]) == (0, 1, None)
    assert cast("float", first["began_at"]) >= cast("float", first["submitted_at"]) - 0.1
    listed = cast("dict[str, list[dict[str, object]]]", site.ask("GET", f"{path}/runs").json)["items"]
    assert [run["batch_job"] for run in listed] == [first["number"], second["number"]]
    assert active(slurm) == {"1-run0": "RUNNING", "1-run1": "PENDING"}
    assert site.ask("POST", f"{path}/stop?now=true").status == 200
    wait_until(lambda: site.store.history.experiment(1).status == "stopped", "the experiment is stopped")
    assert active(slurm) == {}
    runs = site.store.history.runs(1)
    assert all(isinstance(run.outcome, Lost) for run in runs)
    assert [run.batch_job for run in runs] == [first["number"], second["number"]]
    assert jobs() == []
