"""The cost of live pages: 50 browsers show one running experiment of 10,000 trials.

    python -m benchmarks.live_pages [--seconds 30] [--browsers 50]

A real server process; every browser holds a stream of events open, and fetches what a page shows once and the
trajectory anew every two seconds, as the page does while things change. Meanwhile runs end at a steady pace. It prints
the CPU of the server in cores, and the delay between storing the end of a run and sending it.
"""

import argparse
import http.client
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

import luthier as lt
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.store import open_server_store
from luthier.store.base import Owner, RequestedBy
from luthier.store.ownership import claim
from luthier.store.server_store import ServerStore
from luthier.trial import Completed, Config, Run

TRIALS = 10_000
RUN_EVERY_S = 0.2
FETCH_EVERY_S = 2.0
SHOWN_ONCE = ("", "/trials", "/figures/trials", "/figures/importance", "/figures/parallel")
SHOWN_LIVE = ("", "/figures/trajectory")


@dataclass
class Feeder:
    """An experiment whose runs end while others watch; `told_at` is when each was stored."""

    store: ServerStore
    number: int
    owner: Owner
    space: lt.Space
    runs: int = 0
    told_at: dict[int, float] = field(default_factory=dict)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def add(self) -> None:
        """One more run, from its submission to its end."""
        config = self.space.sample(1, self.rng)[0]
        run = Run(self.runs, self.runs, "search", Config(config), time.time(), 2 * self.runs)
        value = Completed(1.0 + float(config["a"]) / 100 + float(self.rng.exponential(0.1)))
        self.store.history.append(self.number, run)
        ended = replace(run, finish_order=run.submit_order + 1, started_at=time.time(), duration_s=0.1, outcome=value)
        self.store.history.finish(self.number, ended)
        self.told_at[run.number] = time.monotonic()
        self.runs += 1


@dataclass
class Site:
    """The address of the server, and the headers of a user."""

    netloc: str
    headers: dict[str, str]

    def get(self, path: str) -> http.client.HTTPResponse:
        """The answer to one request, unread."""
        connection = http.client.HTTPConnection(self.netloc, timeout=60)
        connection.request("GET", path, headers={**self.headers, "Accept-Encoding": "identity"})
        answer = connection.getresponse()
        if answer.status >= 400:
            sys.exit(f"{path}: {answer.status} {answer.read()[:300]!r}")
        return answer


def feeder_of(store: str) -> Feeder:
    """A running experiment with 10,000 trials behind it."""
    space = lt.Space(*(lt.Integer(name, 1, 100) for name in "abcd"), lt.Choice("e", ["x", "y", "z"]))
    server_store = open_server_store(store)
    settings = Experiment(space=space, objectives=(Objective("returned"),), budget=2 * TRIALS, verify_pairs=0).to_json()
    record = server_store.history.create("watched", settings, time.time(), RequestedBy("local"))
    feeder = Feeder(server_store, record.id, claim(server_store.history, record), space)
    for _ in range(TRIALS):
        feeder.add()
    return feeder


def served(store: str) -> tuple["subprocess.Popen[str]", Site]:
    """A server process, and access to it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "luthier", "serve", "--port", "0", "--no-worker", "--store", store],
        stderr=subprocess.PIPE,
        text=True,
    )
    found = re.search(r"http://\S+", process.stderr.readline() if process.stderr else "")
    if found is None:
        sys.exit("the server did not start")
    link = urlsplit(found[0])
    entered = Site(link.netloc, {}).get(f"{link.path}?{link.query}")
    cookie = str(entered.getheader("set-cookie")).partition(";")[0]
    return process, Site(link.netloc, {"Cookie": cookie})


def watch(site: Site, feeder: Feeder, delays: list[float], over: threading.Event) -> None:
    """Keep one stream open; record the delay of each run."""
    answer = site.get(f"/api/v1/experiments/{feeder.number}/events?since={2 * feeder.runs}")
    while not over.is_set() and (line := _line_of(answer)):
        if not line.startswith(b"data: [") or over.is_set():
            continue
        now = time.monotonic()
        ended = [run["run"] for run in json.loads(line[6:]) if run["outcome"] == "completed"]
        delays.extend(now - feeder.told_at[number] for number in ended if number in feeder.told_at)


def _line_of(answer: http.client.HTTPResponse) -> bytes:
    with suppress(http.client.HTTPException, OSError):
        return answer.readline()
    return b""


def browse(site: Site, number: int, over: threading.Event, looked: threading.Semaphore) -> None:
    """Fetch the contents of a page, then its updates; errors at the end of the server are ignored."""
    with suppress(http.client.HTTPException, OSError):
        for path in SHOWN_ONCE:
            site.get(f"/api/v1/experiments/{number}{path}").read()
        looked.release()
        over.wait(FETCH_EVERY_S * random.random())  # users arrive at random times
        while not over.wait(FETCH_EVERY_S):
            for path in SHOWN_LIVE:
                site.get(f"/api/v1/experiments/{number}{path}").read()


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--browsers", type=int, default=50)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "live.db")
        feeder = feeder_of(store)
        process, site = served(store)
        over, looked, delays = threading.Event(), threading.Semaphore(0), list[float]()
        works = (lambda: watch(site, feeder, delays, over), lambda: browse(site, feeder.number, over, looked))
        try:
            for _ in range(given.browsers):
                for work in works:
                    threading.Thread(target=work, daemon=True).start()
            began = time.monotonic()
            for _ in range(given.browsers):
                looked.acquire()
            print(f"first look of all {given.browsers}: {time.monotonic() - began:.1f} s", flush=True)
            delays.clear()
            before, began = cpu_s(process.pid), time.monotonic()
            while time.monotonic() - began < given.seconds:
                feeder.add()
                time.sleep(RUN_EVERY_S)
            share = (cpu_s(process.pid) - before) / (time.monotonic() - began)
        finally:
            over.set()
            process.kill()
            process.communicate()
    late = sorted(delays)
    print(f"{given.browsers} browsers, {TRIALS} trials, a run every {RUN_EVERY_S} s for {given.seconds:.0f} s")
    print(f"server: {share:.2f} cores")
    print(
        f"updates: {len(late)} told; after {statistics.median(late):.2f} s (median), "
        f"{late[int(0.99 * len(late))]:.2f} s (99 %), {late[-1]:.2f} s (latest)"
    )


if __name__ == "__main__":
    main()
