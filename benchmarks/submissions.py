"""500 users submit a job once a second for a minute against one server: how long each waits, and whether one is lost.

python -m benchmarks.submissions [--users 500] [--seconds 60] [--records 2000]

The server is a process of its own, `luthier serve` on an SQLite file with so many tuned jobs. The load comes from one
process with aiohttp; each request has a connection of its own, as that of a job has. A request is sent when it is due,
whatever became of the others, and its time is counted from then.
"""

import argparse
import asyncio
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp

from luthier.server.authentication import Authenticator
from luthier.spec.experiment import Experiment
from luthier.spec.library import Library
from luthier.spec.script import JobScript
from luthier.store import open_server_store
from luthier.store.server_store import ServerStore, User
from luthier.submission.matching import job_of_script
from luthier.submission.store import job_records_in, submissions_in
from luthier.submission.store.tuned_jobs import TunedConfiguration
from luthier.trial import Json

GIVE_UP_S = 20.0
LIMIT_MS = 200.0
PROGRAMS = ("stencil", "climate", "fold", "lattice", "render", "reduce", "mesh", "solve")


def script_of(user: int, habit: int, seed: int) -> str:
    """A job script as this user writes them for one of their programs."""
    rng = random.Random(f"{user} {habit}")
    program = f"{rng.choice(PROGRAMS)}{rng.randrange(40)}"
    nodes = 2 ** rng.randrange(6)
    size = random.Random(f"{user} {habit} {seed}").choice((64, 128, 256))
    return (
        f"#!/bin/bash\n#SBATCH --job-name={program}_u{user}\n#SBATCH --nodes={nodes}\nmodule load mpi\ncd $WORK\n"
        f"srun ./bin/{program} --size {size} --steps {1000 * rng.randrange(1, 9)} --out run{habit}.h5\n"
    )


def fill(store: ServerStore, records: int) -> None:
    """Tuned jobs of the users, as many as asked for."""
    tuned = TunedConfiguration(
        component="mpi",
        config={"LEVEL": 42},
        environment={"LEVEL": "42"},
        options=(),
        measure="wall",
        default_value=10.0,
        best_value=5.0,
        speedup=2.0,
    )
    settings = experiment_settings(store)
    approve(store, settings)
    now = datetime.now(UTC)
    for number in range(records):
        user, habit = number // 4, number % 4
        experiment = store.history.create("tuned", settings, time.time()).id
        job = job_of_script(script_of(user, habit, 0), f"user{user}", now - timedelta(hours=number % 500))
        job_records_in(store).put(experiment, job, tuned, time.time())


def approve(store: ServerStore, settings: Mapping[str, Json]) -> None:
    """Let the jobs of all users have what was found."""
    command, library = Experiment.from_json(settings).command, Library(store.components)
    assert isinstance(command, JobScript)
    library.add({"mpi": command.component}, replace=True)
    library.approve("mpi", {"LEVEL": "1..99"}, library.review("mpi").version, "benchmark", time.time())


def experiment_settings(store: ServerStore) -> dict[str, Json]:
    """The settings of an experiment on Slurm."""
    from luthier.launch.declared import declared_by
    from luthier.server.operations import parsed

    text = (
        "experiment: {name: tuned, budget: 20, runner: slurm, script: srun ./x}\n"
        "definitions: {mpi: {parameters: {LEVEL: {env_var: true, type: int, default: 1}}}}\n"
        "components: {mpi: {LEVEL: {min: 1, max: 99}}}\n"
    )
    get = Library(store.components).get
    return declared_by(parsed(text, "x"), Path("/"), None, get).experiment.to_json()


@contextmanager
def serving(folder: Path, url: str) -> Iterator[tuple[str, int]]:
    """A server on this store; its address and its process."""
    argv = [sys.executable, "-m", "luthier", "serve", "--port", "0", "--no-worker", "--online", "none", "--store", url]
    environment = {**os.environ, "XDG_DATA_HOME": str(folder)}
    with subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            address = next(found[0] for line in process.stderr if (found := re.search(r"http://[\d.:]+", line)))
            yield address, process.pid
        finally:
            process.terminate()


async def load(address: str, token: str, users: int, seconds: int) -> tuple[list[float], Counter[str]]:
    """The waiting times of the jobs that were answered, in milliseconds, and how many had which outcome."""
    waits: list[float] = []
    outcomes: Counter[str] = Counter()
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    limit = aiohttp.ClientTimeout(total=GIVE_UP_S)
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(connector=connector, timeout=limit, headers=headers) as session:

        async def submit(user: int, turn: int, due: float) -> None:
            try:
                async with session.post(f"{address}/api/v1/submissions?form=lines", json=job_of(user, turn)) as answer:
                    said = await answer.text()
                    is_set = "\nset " in said
                    outcome = f"status {answer.status}" if answer.status != 201 else "set" if is_set else "not set"
            except (aiohttp.ClientError, TimeoutError) as error:
                outcome = type(error).__name__
            outcomes[outcome] += 1
            if outcome in ("set", "not set"):
                waits.append(1000.0 * (time.monotonic() - due))

        rng = random.Random(1)
        began = time.monotonic() + 0.5
        due = sorted((began + turn + rng.random(), user, turn) for user in range(users) for turn in range(seconds))
        async with asyncio.TaskGroup() as group:
            for at, user, turn in due:
                if (pause := at - time.monotonic()) > 0:
                    await asyncio.sleep(pause)
                group.create_task(submit(user, turn, at))
    return waits, outcomes


def job_of(user: int, turn: int) -> dict[str, object]:
    """A job of this user: three of four are like one that was tuned."""
    habit = turn % 4 if turn % 4 else 9
    return {"user": f"user{user}", "script": script_of(user, habit, turn), "variables": ["PATH", "HOME"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--records", type=int, default=2000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as path:
        url = f"sqlite:///{path}/store.db"
        store = open_server_store(url)
        fill(store, options.records)
        store.accounts.put_user(admin())
        token = Authenticator(store.accounts).issue_token("root", "benchmark", None)[0]
        with serving(Path(path), url) as (address, server):
            before = os.getloadavg()[0]
            asyncio.run(load(address, token, 1, 3))  # not measured: the first requests of a process
            warm_up = sum(1 for _ in all_of(store))
            used = [-cpu_s(pid) for pid in (server, os.getpid())]
            waits, outcomes = asyncio.run(load(address, token, options.users, options.seconds))
            used = [spent + cpu_s(pid) for spent, pid in zip(used, (server, os.getpid()), strict=True)]
        stored = sum(1 for _ in all_of(store)) - warm_up
    asked = options.users * options.seconds
    waits.sort()
    print(
        f"{asked} jobs of {options.users} users in {options.seconds} s, {options.records} tuned jobs, load {before:.1f}"
    )
    print(f"answered {len(waits)}, stored {stored}, lost {asked - len(waits)}; {dict(outcomes)}")
    server_ms, load_ms = (1000.0 * spent / asked for spent in used)
    print(f"CPU for each job: server {server_ms:.2f} ms, load generator {load_ms:.2f} ms")
    if waits:
        shares = ((share, waits[min(int(share * len(waits)), len(waits) - 1)]) for share in (0.5, 0.9, 0.99, 0.999))
        print(", ".join(f"p{100 * share:g} {wait:.1f} ms" for share, wait in shares) + f", longest {waits[-1]:.1f} ms")
        late = sum(wait > LIMIT_MS for wait in waits) / asked
        print(f"later than {LIMIT_MS:g} ms, so without a configuration: {100 * late:.2f} %")


def cpu_s(pid: int) -> float:
    """The CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def admin() -> User:
    """An account, so that the token is one of a server with accounts."""
    return User("root", "admin", time.time())


def all_of(store: ServerStore) -> Iterator[int]:
    before = None
    while page := submissions_in(store).all(before=before, limit=5000):
        yield from (one.id for one in page)
        before = page[-1].id


if __name__ == "__main__":
    main()
