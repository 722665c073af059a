"""The on-line service: latency of one fetch with its report, throughput, and processes that are killed.

Clients wait between two iterations, as programs do that compute on other processors; so this machine's processors
are free when they ask. `searching` measures many samples of each configuration, so that every report is kept;
`converged` is what a long program sees nearly all of the time.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.online.serving import ServiceProcess

from benchmarks.online_clients import OPTIMUM, SPACE, cost
from luthier.online.tuner import OnlineTuner

PROCESSES = 64
KILLED = 8
ITERATIONS = 5000
SAMPLES = 100
"""Samples of each configuration while processes are killed: the search takes many steps, so kills disturb it."""

PAUSE_S = 0.02
MANY = 10_000
"""Samples of each configuration that keep a search going."""

_NATIVE = Path(__file__).parents[1] / "native" / "online"
_LIMIT_S = 1200.0
_KILL_EVERY_S = 2.0


@contextmanager
def service() -> Iterator[ServiceProcess]:
    """`luthier online` with an SQLite store, in a process of its own."""
    folder = Path(tempfile.mkdtemp(prefix="lt-"))
    process = ServiceProcess(folder, f"sqlite:///{folder}/x.db")
    process.start()
    try:
        yield process
    finally:
        process.end()
        shutil.rmtree(folder)


def clients(address: str, *options: object) -> dict[str, Any]:
    """What came out of client processes."""
    words = [sys.executable, "-m", "benchmarks.online_clients", address, "--limit", str(_LIMIT_S), *map(str, options)]
    found = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)
    assert isinstance(found, dict)
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """A percentile in microseconds."""
    return 1e6 * sorted(values)[int(share * len(values))]


def row(name: str, phase: str, median_us: float, p95_us: float, goal_us: float) -> str:
    """A row of the table of latencies."""
    reached = "yes" if median_us <= goal_us else "**missed**"
    return f"| {name} | {phase} | {median_us:.1f} | {p95_us:.1f} | {goal_us:g} | {reached} |"


def in_process(strategy: str, samples: int, iterations: int = 20_000) -> tuple[str, float, float]:
    """The phase at the end, median and 95th percentile of fetch and report without a network."""
    tuner = OnlineTuner(SPACE, strategy=strategy, samples=samples)
    latencies = []
    for _ in range(iterations):
        begin = time.perf_counter()
        config = tuner.fetch()
        middle = time.perf_counter()
        value = cost(config)
        end = time.perf_counter()
        tuner.report(value)
        latencies.append(middle - begin + time.perf_counter() - end)
    known = latencies[iterations // 10 :]
    return tuner.phase, percentile(known, 0.5), percentile(known, 0.95)


def by_c_clients(address: str, iterations: int) -> tuple[float, float] | None:
    """The same over a socket, from C programs; None without a compiler."""
    if shutil.which("cc") is None or shutil.which("make") is None:
        return None
    with tempfile.TemporaryDirectory(prefix="lt-") as folder:
        subprocess.run(
            ["make", "-s", "-C", _NATIVE, f"BUILD={folder}", "latency"], check=True, stdout=subprocess.DEVNULL
        )
        environment = {**os.environ, "LUTHIER_ONLINE": address, "LUTHIER_SESSION": "c"}
        words = [f"{folder}/latency", str(iterations), str(int(1e6 * PAUSE_S))]
        running = [
            subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)
        ]
        said = [json.loads(one.communicate(timeout=_LIMIT_S)[0]) for one in running]
    medians = sorted(one["median_us"] for one in said)
    tails = sorted(one["p95_us"] for one in said)
    return medians[len(medians) // 2], tails[len(tails) // 2]


def latencies() -> None:
    """Print the table of latencies."""
    print("| client | phase at the end | median us | 95th percentile us | goal us | reached |")
    print("| --- | --- | --- | --- | --- | --- |")
    for strategy, samples in (("pro", MANY), ("pro", 1), ("auto", 1)):
        phase, median_us, p95_us = in_process(strategy, samples)
        print(row(f"in process, {strategy}", phase, median_us, p95_us, 20.0), flush=True)
    for strategy, samples, iterations in (("pro", MANY, 500), ("pro", 1, 500), ("auto", 1, 500), ("auto", 1, 20)):
        options = ("--iterations", iterations, "--pause", PAUSE_S, "--samples", samples, "--strategy", strategy)
        with service() as process:
            found = clients(process.address, *options)
        phase = ", ".join(sorted({one["phase"] for one in found["clients"]}))
        name = f"{PROCESSES} Python processes, {strategy}, {iterations} iterations"
        print(row(name, phase, found["median_us"], found["p95_us"], 150.0), flush=True)
    with service() as process:
        by_c = by_c_clients(process.address, 500)
    if by_c is not None:
        print(row(f"{PROCESSES} C processes", "all", *by_c, 150.0), flush=True)


def throughput() -> None:
    """Print how many iterations the service takes when clients never wait."""
    print("\n| processes without a pause | phase | iterations a second | median us |")
    print("| --- | --- | --- | --- |")
    for processes in (4, PROCESSES):
        for phase, samples in (("searching", MANY), ("converged", 1)):
            iterations = 40_000 // processes
            with service() as process:
                found = clients(
                    process.address, "--processes", processes, "--iterations", iterations, "--samples", samples
                )
            rate = processes * iterations / found["seconds"]
            print(f"| {processes} | {phase} | {rate:,.0f} | {found['median_us']:.0f} |", flush=True)


def kills() -> int:
    """Kill clients, then the service, and compare the winners; the number of failures."""
    print("\n| what | ended | killed | seconds | winner |")
    print("| --- | --- | --- | --- | --- |")
    failures = 0
    usual = ("--processes", PROCESSES, "--iterations", ITERATIONS, "--pause", 0.002, "--samples", SAMPLES)
    with service() as process:
        for name, options in (
            ("nothing is killed", ()),
            (f"{KILLED} clients, within 10 s", ("--kill", KILLED, "--within", 10)),
            (f"{KILLED} clients, within 1 s", ("--kill", KILLED, "--within", 1, "--seed", 1)),
        ):
            found = clients(process.address, "--session", name, *usual, *options)
            failures += _print_kill(name, found, PROCESSES - (KILLED if options else 0))
        failures += _kill_service(process, *usual)
    return failures


def _kill_service(process: ServiceProcess, *options: object) -> int:
    """Kill the service again and again while clients run."""
    words = [sys.executable, "-m", "benchmarks.online_clients", process.address, *map(str, options)]
    killed = 0
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        while running.poll() is None:
            try:
                running.wait(_KILL_EVERY_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.start()
                killed += 1
        assert running.stdout is not None
        found = json.loads(running.stdout.read())
    return _print_kill(f"the service, {killed} times", found, PROCESSES)


def _print_kill(name: str, found: dict[str, Any], wanted: int) -> int:
    configs = {json.dumps(one["config"]) for one in found["clients"]}
    same = configs == {json.dumps(dict(OPTIMUM))}
    phases = ", ".join(sorted({one["phase"] for one in found["clients"]}))
    shown = f"the optimum, {phases}" if same else f"**{configs}**, {phases}"
    print(f"| {name} | {found['finished']} | {found['killed']} | {found['seconds']:.1f} | {shown} |", flush=True)
    return int(not same or found["finished"] < wanted)


def main(words: Sequence[str] | None = None) -> int:
    """Print the tables; the exit code is 1 if a killed process did any harm."""
    parser = argparse.ArgumentParser(prog="benchmarks.online_service", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--parts", default="latency,throughput,kill", help="default latency,throughput,kill")
    parts = parser.parse_args(words).parts.split(",")
    if "latency" in parts:
        latencies()
    if "throughput" in parts:
        throughput()
    return int("kill" in parts and kills() > 0)


if __name__ == "__main__":
    sys.exit(main())
