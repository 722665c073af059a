"""Client processes of the on-line service, some of which are killed: `python -m benchmarks.online_clients ADDRESS`.

Each process fetches, waits as if it computed elsewhere, and reports. Prints one line of JSON.
"""

import argparse
import json
import os
import random
import selectors
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from luthier.online.service.remote import RemoteTuner
from luthier.space import Choice, Integer, Space
from luthier.trial import Value

SPACE = Space(
    *(Integer(name, 1, 64, default=1) for name in ("rows", "columns", "planes")),
    Integer("depth", 1, 8, default=1),
    Choice("exchange", ["blocking", "overlapped"]),
)
OPTIMUM: Mapping[str, Value] = {"rows": 40, "columns": 24, "planes": 16, "depth": 3, "exchange": "overlapped"}


def cost(config: Mapping[str, Value]) -> float:
    """What an iteration takes: smooth, without noise, best at `OPTIMUM`."""
    sizes = sum((_distance(config, name) / 64.0) ** 2 for name in ("rows", "columns", "planes"))
    return 1.0 + sizes + 0.1 * _distance(config, "depth") + 0.5 * (config["exchange"] != OPTIMUM["exchange"])


def _distance(config: Mapping[str, Value], name: str) -> float:
    return abs(float(config[name]) - float(OPTIMUM[name]))


@dataclass(frozen=True, slots=True)
class Plan:
    """What the processes do: iterations each, the mean wait in each, and how many are killed within how long."""

    address: str
    session: str
    processes: int
    iterations: int
    pause_s: float = 0.0
    kill: int = 0
    within_s: float = 1.0
    limit_s: float = 300.0
    seed: int = 0
    samples: int = 1
    strategy: str = "pro"


@dataclass(slots=True)
class Child:
    """A process and what it has written so far."""

    pid: int
    pipe: int
    text: bytes = b""
    killed: bool = False


def client(plan: Plan, number: int, pipe: int) -> None:
    """One process: iterations, then a line about them."""
    rng = random.Random(plan.seed * 1000 + number)
    tuner = RemoteTuner(plan.address, plan.session, SPACE, timeout_s=5.0, strategy=plan.strategy, samples=plan.samples)
    os.write(pipe, b"joined\n")
    latencies = []
    for _ in range(plan.iterations):
        begin = time.perf_counter()
        config = tuner.fetch()
        middle = time.perf_counter()
        if plan.pause_s:
            time.sleep(rng.uniform(0.5, 1.5) * plan.pause_s)
        value = cost(config)
        end = time.perf_counter()
        tuner.report(value)
        latencies.append(middle - begin + time.perf_counter() - end)
    known = latencies[plan.iterations // 10 :]  # the first ones are those of a program that starts
    told = {"config": dict(tuner.fetch()), "phase": tuner.phase, "latencies": known}
    tuner.leave()
    with os.fdopen(pipe, "wb") as out:
        out.write(json.dumps(told).encode())


def start(plan: Plan) -> list[Child]:
    """Fork the processes: luthier is imported once."""
    children = []
    for number in range(plan.processes):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            try:
                client(plan, number, writing)
            except Exception as error:  # noqa: BLE001 - a child must not run the code of its parent
                os.write(2, f"client {number}: {error!r}\n".encode())
                os._exit(1)
            os._exit(0)
        os.close(writing)
        os.set_blocking(reading, False)
        children.append(Child(pid, reading))
    return children


@dataclass(slots=True)
class Watch:
    """Kills processes at random times, and reads what the others say until they end."""

    plan: Plan
    children: list[Child]
    due: list[tuple[float, Child]] = field(default_factory=list)

    def run(self) -> None:
        """Until all have ended, or the limit."""
        rng = random.Random(self.plan.seed)
        end, waiting = time.monotonic() + self.plan.limit_s, set(range(len(self.children)))
        with selectors.DefaultSelector() as selector:
            for number, child in enumerate(self.children):
                selector.register(child.pipe, selectors.EVENT_READ, number)
            while waiting and time.monotonic() < end:
                for key, _ in selector.select(0.01):
                    child = self.children[key.data]
                    data = os.read(child.pipe, 1 << 16)
                    child.text += data
                    if not data:
                        selector.unregister(child.pipe)
                        waiting.discard(key.data)
                if not self.due and self.plan.kill and all(child.text for child in self.children):
                    now = time.monotonic()
                    chosen = rng.sample(self.children, self.plan.kill)
                    self.due = [(now + rng.uniform(0.0, self.plan.within_s), child) for child in chosen]
                for at, child in self.due:
                    if time.monotonic() >= at and not child.killed:
                        os.kill(child.pid, signal.SIGKILL)
                        child.killed = True
        for number in waiting:  # they hang
            os.kill(self.children[number].pid, signal.SIGKILL)
        for child in self.children:
            os.waitpid(child.pid, 0)
            os.close(child.pipe)


def told(children: Sequence[Child]) -> list[dict[str, object]]:
    """What the processes that came to their end have said."""
    return [json.loads(child.text.partition(b"\n")[2]) for child in children if child.text.endswith(b"}")]


def main(words: Sequence[str] | None = None) -> int:
    """Run the processes and print what came out."""
    parser = argparse.ArgumentParser(prog="benchmarks.online_clients", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("address")
    parser.add_argument("--session", default="clients")
    parser.add_argument("--processes", type=int, default=64)
    parser.add_argument("--iterations", type=int, default=5000)
    parser.add_argument("--pause", dest="pause_s", type=float, default=0.0, help="mean seconds of an iteration")
    parser.add_argument("--kill", type=int, default=0, help="processes that are killed")
    parser.add_argument("--within", dest="within_s", type=float, default=1.0, help="seconds in which they are killed")
    parser.add_argument("--limit", dest="limit_s", type=float, default=300.0, help="seconds in which all must end")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=1, help="of each configuration; many keep the search going")
    parser.add_argument("--strategy", default="pro")
    plan = Plan(**vars(parser.parse_args(words)))
    begin = time.monotonic()
    children = start(plan)
    Watch(plan, children).run()
    said = told(children)
    latencies = sorted(latency for one in said for latency in one.pop("latencies"))  # type: ignore[attr-defined]  # a list
    result = {
        "finished": len(said),
        "killed": sum(child.killed and not child.text.endswith(b"}") for child in children),
        "seconds": time.monotonic() - begin,
        "clients": said,
        "median_us": 1e6 * latencies[len(latencies) // 2] if latencies else None,
        "p95_us": 1e6 * latencies[int(0.95 * len(latencies))] if latencies else None,
        "longest_us": 1e6 * latencies[-1] if latencies else None,
    }
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
