"""Many workers: how busy they are kept and how many suggestions are distinct, with the real cost of the search.

    python -m benchmarks.scale [--players engine:auto,optuna:tpe] [--workers 32,128,1024] [--seconds 2,10,60]

Evaluations are simulated. The CPU time of the search (for `engine:...` that of the whole engine with SQLite) is
measured and added to the virtual clock: a worker whose evaluation has ended waits for it. A peer is asked for as many
configurations as workers are free, and told all that have ended, as its users would.
"""

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import install
from benchmarks.batch_peers import PEERS, BatchPeer
from benchmarks.virtual_time import ChargedRunner, CpuClock, Evaluation, OptimizerPlayer, Player, simulate, utilisation
from luthier.engine.session import carry_on
from luthier.optimizers import make_optimizer
from luthier.runners.replay import ReplayedRun
from luthier.space import Choice, Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.store import open_store
from luthier.trial import Config, Failed, Value

PLAYERS = ("engine:auto", "engine:forest-lcb", "optuna:tpe", "deephyper:et", "deephyper:qucbd")
EACH = 10
"""Evaluations for each worker, on average."""

MOST = 5_000
"""Evaluations of one cell at most; a player that takes too long is stopped before."""


def mixed_space() -> Space:
    """Twelve parameters as in the HEPnOS workflow: switches, counts, sizes and names."""
    return Space(
        *(Choice(f"switch{at}", [False, True]) for at in range(4)),
        *(Integer(f"count{at}", 1, 64) for at in range(3)),
        *(Integer(f"size{at}", 1, 2048, scale="log") for at in range(3)),
        Choice("places", [1, 2, 4, 8, 16, 32], ordered=True),
        Choice("pool", ["fifo", "fifo_wait", "prio"]),
    )


def landscape(space: Space, mean_s: float, seed: int) -> Callable[[Config], ReplayedRun]:
    """A smooth valley with switches and a tenth of failures; how long an evaluation takes is drawn at random."""
    rng = np.random.default_rng([seed, 7])
    centre, weight = rng.random(len(space.names)), rng.exponential(size=len(space.names))

    def answer(config: Config) -> ReplayedRun:
        unit = space.to_unit(space.codes([config]))[0]
        duration_s = mean_s * rng.uniform(0.5, 1.5)
        if unit[4] + unit[7] > 1.55:
            return ReplayedRun(duration_s, Failed("exit code 1"))
        return ReplayedRun(duration_s, float(np.exp(weight @ np.abs(unit - centre) ** 1.5)))

    return answer


@dataclass(frozen=True, slots=True)
class Cell:
    """What was measured of one player."""

    evaluations: int
    utilisation: float
    distinct: float
    cpu_ms: float
    best: float

    def row(self, name: str, workers: int, mean_s: float) -> str:
        """A row of the table."""
        return (
            f"| {name} | {workers} | {mean_s:g} | {self.evaluations} | {100.0 * self.utilisation:.1f} % "
            f"| {100.0 * self.distinct:.1f} % | {self.cpu_ms:.1f} | {self.best:.3f} |"
        )


def summary(evaluations: Sequence[Evaluation], workers: int, cpu_s: float) -> Cell:
    """Utilisation until the last start: after that, workers have nothing to do."""
    until_s = max(one.started_s for one in evaluations)
    distinct = len({one.config for one in evaluations}) / len(evaluations)
    best = min((one.value for one in evaluations if one.value is not None), default=math.inf)
    busy = utilisation(evaluations, workers, until_s)
    return Cell(len(evaluations), busy, distinct, 1e3 * cpu_s / len(evaluations), best)


def by_engine(name: str, workers: int, mean_s: float, seed: int, most: int) -> Cell:
    """Plan, loop, store and optimizer, on one clock with the evaluations."""
    space = mixed_space()
    experiment = Experiment(
        space=space,
        objectives=(Objective("returned"),),
        slots=workers,
        budget=most,
        verify_pairs=0,
        seed=seed,
        optimizer=name,
        resample="once",
    )
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(str(Path(folder) / "scale.db"))
        record = store.create("scale", experiment.to_json(), 0.0)
        start, clock = time.process_time(), CpuClock()
        runner = ChargedRunner(landscape(space, mean_s, seed), clock)
        carry_on(store, record, experiment, runner, virtual_clock=clock)
    return summary(runner.evaluations, workers, time.process_time() - start)


class Metered:
    """A player that adds up what it costs, and is asked for nothing any more after `limit_s` seconds of wall time."""

    def __init__(self, player: Player, limit_s: float) -> None:
        self.total_s = 0.0
        self._player, self._end_s = player, time.monotonic() + limit_s
        self.tell = player.tell

    def ask(self, count: int) -> Sequence[Mapping[str, Value]]:
        """Suggest configurations."""
        return self._player.ask(count) if time.monotonic() < self._end_s else []

    def spent_s(self) -> float:
        """CPU seconds since the last call."""
        spent_s = self._player.spent_s()
        self.total_s += spent_s
        return spent_s


def by_player(player: Player, workers: int, mean_s: float, seed: int, most: int, limit_s: float = math.inf) -> Cell:
    """A search that is asked and told directly, for at most `limit_s` seconds of wall time."""
    metered = Metered(player, limit_s)
    evaluations = simulate(metered, landscape(mixed_space(), mean_s, seed), workers, horizon_s=math.inf, most=most)
    return summary(evaluations, workers, metered.total_s)


def measure(name: str, workers: int, mean_s: float, seed: int, most: int, limit_s: float) -> Cell:
    """One cell of the table."""
    family, _, variant = name.partition(":")
    if family == "engine":
        return by_engine(variant, workers, mean_s, seed, most)
    if name in PEERS:
        peer = BatchPeer(install.interpreter(family), name, mixed_space(), seed=seed)
        try:
            return by_player(peer, workers, mean_s, seed, most, limit_s)
        finally:
            peer.close()
    return by_player(OptimizerPlayer(make_optimizer(variant, mixed_space(), seed=seed)), workers, mean_s, seed, most)


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print every cell."""
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--players", default=",".join(PLAYERS), help=f"default {','.join(PLAYERS)}")
    parser.add_argument("--workers", default="32,128,1024", help="default 32,128,1024")
    parser.add_argument("--seconds", default="2,10,60", help="mean time of an evaluation (default 2,10,60)")
    parser.add_argument("--each", type=int, default=EACH, help=f"evaluations for each worker (default {EACH})")
    parser.add_argument("--most", type=int, default=MOST, help=f"evaluations of one cell at most (default {MOST})")
    parser.add_argument("--limit", type=float, default=180.0, help="seconds for one cell of a peer (default 180)")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(words)
    print("| player | workers | seconds | evaluations | utilisation | distinct | CPU ms each | best |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in chosen.players.split(","):
        for workers in map(int, chosen.workers.split(",")):
            most = min(chosen.each * workers, max(chosen.most, 2 * workers))
            for mean_s in map(float, chosen.seconds.split(",")):
                try:
                    cell = measure(name, workers, mean_s, chosen.seed, most, chosen.limit)
                except install.AbsentError as reason:
                    print(f"{name}: left out: {reason}", file=sys.stderr)
                    break
                print(cell.row(name, workers, mean_s), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
