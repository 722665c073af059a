"""Whole experiments on Dask: from the command line and from Python, with processes killed at random moments."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.runners.dask_site import LONG_S, Site, dask_site, descendants, is_alive, listening, parents, wait_until

from luthier.store import open_store
from luthier.trial import Json

PROGRAM = """
id=$(cat /proc/sys/kernel/random/uuid)
echo "begin $id" >> "$1/log"; sleep 0.2; echo "end $id" >> "$1/log"; echo "$id"
"""
SCRIPT = """
import json, sys, time, uuid
from pathlib import Path
import luthier as lt
from luthier.trial import outcome_name

folder, address, step = sys.argv[1:]

def measure(config):
    with Path(folder, "log").open("a", buffering=1) as log:
        one = uuid.uuid4()
        log.write(f"begin {one}\\n")
        time.sleep(0.2)
        log.write(f"end {one}\\n")
    print(one)
    return config["n"]

store = f"{folder}/history.sqlite"
if step == "tune":
    space = lt.Space(lt.Integer("n", 1, 50, default=9))
    result = lt.tune(measure, space, budget=24, store=store, runner=f"dask:{address}", optimizer="random")
else:
    result = lt.resume(measure, 1, store=store, runner=f"dask:{address}")
runs = [{"outcome": outcome_name(run.outcome), "logs": run.logs} for run in result.runs]
Path(folder, "runs.json").write_text(json.dumps(runs))
"""


class Tuner:
    """Starts luthier in a folder of its own, as a process that can be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.environment = {**os.environ, "XDG_DATA_HOME": str(folder / "data"), "LUTHIER_STORE": f"{folder}/s.sqlite"}

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        with (self.folder / "tuner.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *words], cwd=self.folder, env=self.environment, stdout=log, stderr=log
            )
        self.processes.append(process)
        return process

    def luthier(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "luthier", *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=2 * LONG_S,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stderr if code else done.stdout

    def runs(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = json.loads(self.luthier("export", "1", "--format", "json"))
        return found

    def settings(self) -> Mapping[str, Json]:
        return open_store(str(self.folder / "s.sqlite")).experiment(1).settings

    def said(self) -> str:
        return (self.folder / "tuner.log").read_text()


@pytest.fixture
def tuner(tmp_path: Path) -> Iterator[Tuner]:
    tuner = Tuner(tmp_path)
    yield tuner
    for process in tuner.processes:
        process.kill()
        process.wait()


def begins(folder: Path) -> int:
    log = folder / "log"
    return log.read_text().count("begin") if log.exists() else 0


def has_come(folder: Path, goal: int, process: "subprocess.Popen[bytes]") -> bool:
    return begins(folder) >= goal or process.poll() is not None


def torment(tuner: Tuner, site: Site, first: Sequence[str], again: Sequence[str], seed: int) -> Counter[str]:
    """Kill workers and the tuner, each after some more runs have begun, until the experiment ends."""
    rng, killed = random.Random(seed), Counter[str]()
    process = tuner.start(*first)
    for victim in ("worker", "tuner", "worker", "worker", "tuner"):
        goal = begins(tuner.folder) + rng.randint(2, 4)
        wait_until(partial(has_come, tuner.folder, goal, process), "runs begin")
        try:
            process.wait(rng.uniform(0.0, 0.25))
            break
        except subprocess.TimeoutExpired:
            killed[victim] += 1
        if victim == "tuner":
            process.kill()
            process.wait()
            process = tuner.start(*again)
        else:
            site.kill(rng.choice(site.workers))
            site.add()
    assert process.wait(2 * LONG_S) == 0, tuner.said()
    return killed


def check(folder: Path, runs: Sequence[Mapping[str, str]], budget: int) -> None:
    """Every completed run was executed once, to its end, and no run was executed twice."""
    lines = Counter((folder / "log").read_text().splitlines())
    outcomes = Counter(run["outcome"] for run in runs)
    assert set(outcomes) <= {"completed", "lost"}, outcomes
    assert outcomes["completed"] >= budget - 2  # a configuration that is lost three times is given up
    names = [(Path(run["logs"]) / "stdout").read_text().strip() for run in runs if run["outcome"] == "completed"]
    assert len(set(names)) == len(names)
    assert all(lines[f"begin {name}"] == lines[f"end {name}"] == 1 for name in names)
    assert sum(count for line, count in lines.items() if line.startswith("begin")) <= len(runs)


def test_commands_while_workers_and_the_tuner_are_killed(tuner: Tuner, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1000)
    with dask_site(tmp_path / "dask", 3) as site:
        words = ["-p", "n=1..50@9", "-n", "24", "-o", "random", "--runner", f"dask:{site.address}"]
        command = ["--", "sh", "-c", PROGRAM, "{n}", str(tmp_path)]
        killed = torment(
            tuner, site, ["-m", "luthier", "tune", *words, *command], ["-m", "luthier", "resume", "1"], seed
        )
        assert killed["tuner"] >= 1, seed
        assert killed["worker"] >= 2, seed
        check(tmp_path, tuner.runs(), 24)
        wait_until(lambda: not site.known_tasks(), "nothing is left on the scheduler")
    assert tuner.settings()["slots"] == 3
    assert "distributed" not in tuner.said()


def test_functions_while_workers_and_the_tuner_are_killed(tuner: Tuner, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1000)
    (tmp_path / "script.py").write_text(SCRIPT)
    with dask_site(tmp_path / "dask", 3) as site:
        words = ["script.py", str(tmp_path), site.address]
        killed = torment(tuner, site, [*words, "tune"], [*words, "resume"], seed)
        assert killed["tuner"] >= 1, seed
        assert killed["worker"] >= 2, seed
        check(tmp_path, json.loads((tmp_path / "runs.json").read_text()), 24)


LOCAL = ("-p", "n=1,2,3,4@4", "-n", "6", "-o", "exhaustive", "--verify", "0", "--runner", "dask")
PATIENT = 'echo $$ >> pids; env > "env.$$"; until [ -e go ]; do sleep 0.05; done'


def pids(folder: Path) -> list[int]:
    path = folder / "pids"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def test_a_cluster_on_this_machine_ends_with_luthier(tuner: Tuner, tmp_path: Path) -> None:
    words = [*LOCAL, "-j", "2", "--", "sh", "-c", PATIENT, "{n}"]
    process = tuner.start("-m", "luthier", "tune", *words)
    wait_until(lambda: len(pids(tmp_path)) == 2, "two runs begin")
    below = descendants(process.pid)
    assert set(pids(tmp_path)) < set(below)
    assert listening([process.pid, *below]) == {"0100007F"}  # 127.0.0.1
    assert (
        "OMP_NUM_THREADS" in os.environ or "OMP_NUM_THREADS" not in (tmp_path / f"env.{pids(tmp_path)[0]}").read_text()
    )
    process.kill()
    process.wait()
    wait_until(lambda: not any(map(is_alive, below)), "all processes end")
    (tmp_path / "go").touch()
    tuner.luthier("resume", "1", "--quiet")
    outcomes = Counter(run["outcome"] for run in tuner.runs())
    assert outcomes == {"completed": 6, "lost": 2}
    assert len(pids(tmp_path)) == 8


def test_a_dead_worker_of_a_cluster_on_this_machine_is_replaced(tuner: Tuner, tmp_path: Path) -> None:
    process = tuner.start("-m", "luthier", "tune", *LOCAL, "--", "sh", "-c", PATIENT, "{n}")
    wait_until(lambda: len(pids(tmp_path)) == 1, "a run begins")
    command, parent = pids(tmp_path)[0], parents()
    os.kill(parent[parent[command]], signal.SIGKILL)  # the worker: between them is the supervisor
    wait_until(lambda: not is_alive(command), "the command ends with its worker")
    (tmp_path / "go").touch()
    assert process.wait(2 * LONG_S) == 0, tuner.said()
    runs = tuner.runs()
    assert Counter(run["outcome"] for run in runs) == {"completed": 6, "lost": 1}
    assert len(pids(tmp_path)) == 7
    assert "distributed" not in tuner.said()


EXPERIMENT = """\
experiment:
  runner: "dask:ADDRESS"
  script: echo "level $LEVEL"; [ "$LEVEL" != 2 ]
  optimizer: exhaustive
  budget: 3
definitions:
  knob: {command: ':', parameters: {LEVEL: {env_var: true, type: int, default: 4}}}
components:
  knob: {LEVEL: [0, 2, 4]}
"""


def test_an_experiment_file_and_errors_of_the_command_line(tuner: Tuner, tmp_path: Path) -> None:
    with dask_site(tmp_path / "dask", 1) as site:
        (tmp_path / "e.yaml").write_text(EXPERIMENT.replace("ADDRESS", f"{site.address}?GPU=1"))
        site.add("--resources", "GPU=1")
        wait_until(lambda: site.count() == 2, "the second worker joins")
        tuner.luthier("run", "e.yaml", "--quiet")
        runs = tuner.runs()
        assert Counter(run["outcome"] for run in runs) == {"completed": 2, "failed": 1}
        assert all((Path(run["logs"]) / "stdout").read_text().startswith("level ") for run in runs)
        assert tuner.settings()["slots"] == site.count()
    tune = ("tune", "-p", "n=1,2", "-q")
    for runner, message in {
        "dask:host": "--runner: dask: 'host' is not an address; write tcp://HOST:PORT",
        "slurm": "--runner slurm: it needs a batch script; write an experiment file, and use luthier run",
        "dusk": "--runner: unknown runner 'dusk'; did you mean 'dask'?",
    }.items():
        said = tuner.luthier(*tune, "--runner", runner, "--", "echo", "{n}", code=2)
        assert said.startswith(f"luthier: {message}"), said
        assert said.count("\n") == 1


def test_a_scheduler_that_dies_stops_the_tuner_with_one_line(tuner: Tuner, tmp_path: Path) -> None:
    with dask_site(tmp_path / "dask", 1) as site:
        words = [*LOCAL[:-1], f"dask:{site.address}", "--quiet", "--", "sh", "-c", PATIENT, "{n}"]
        process = tuner.start("-m", "luthier", "tune", *words)
        wait_until(lambda: len(pids(tmp_path)) == 1, "a run begins")
        site.scheduler.kill()
        assert process.wait(LONG_S) == 2, tuner.said()
        wait_until(lambda: not is_alive(pids(tmp_path)[0]), "the command ends with the cluster")
    assert "the scheduler cannot be reached" in tuner.said()
    assert tuner.said().count("\n") == 1, tuner.said()


def test_tls_with_the_configuration_of_dask(tuner: Tuner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import Security

    made = Security.temporary()
    (tmp_path / "ca").write_text(made.tls_ca_file)
    (tmp_path / "pair").write_text(made.tls_client_key + made.tls_client_cert)
    (tmp_path / "pair").chmod(0o600)
    settings = {"CA_FILE": "ca", **{f"{role}__{half}": "pair" for role in ROLES for half in ("CERT", "KEY")}}
    for name, file in settings.items():
        monkeypatch.setenv(f"DASK_DISTRIBUTED__COMM__TLS__{name}", str(tmp_path / file))
        tuner.environment[f"DASK_DISTRIBUTED__COMM__TLS__{name}"] = str(tmp_path / file)
    with plain_site(tmp_path / "dask") as address:
        assert address.startswith("tls://127.0.0.1:")
        tuner.luthier("tune", *LOCAL[:-1], f"dask:{address}", "-j", "1", "--quiet", "--", "true", "{n}")
    assert Counter(run["outcome"] for run in tuner.runs()) == {"completed": 6}


ROLES = ("SCHEDULER", "WORKER", "CLIENT")


@contextmanager
def plain_site(folder: Path) -> Iterator[str]:
    """A scheduler and a worker with the protocol tls, configured by the environment; its address."""
    folder.mkdir()
    file = folder / "scheduler.json"
    options = ("--protocol", "tls", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file))
    with (folder / "log").open("wb") as log:
        start = partial(subprocess.Popen[bytes], stdout=log, stderr=log, cwd=folder)
        command = [sys.executable, "-m"]
        processes = [start([*command, "distributed.cli.dask_scheduler", "--port", "0", *options])]
        try:
            wait_until(file.exists, "the scheduler starts")
            processes.append(
                start([*command, "distributed.cli.dask_worker", "--no-nanny", "--nthreads", "1", *options])
            )
            yield str(json.loads(file.read_text())["address"])
        finally:
            for process in processes:
                process.kill()
                process.wait()
