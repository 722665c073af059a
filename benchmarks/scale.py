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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.virtual_time import ChargedRunner, CpuClock, Evaluation, OptimizerPlayer, Player, simulate, utilisation
from luthier.engine.session import carry_on
from luthier.optimizers import make_optimizer
from luthier.runners.replay import Answer
from luthier.space import Choice, Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.store import open_store
from luthier.trial import Config, Failed

EACH = 10
"""Evaluations for each worker, on average."""


def mixed_space() -> Space:
    """Twelve parameters as in the HEPnOS workflow: switches, counts, sizes and names."""
    return Space(
        *(Choice(f"switch{at}", [False, True]) for at in range(4)),
        *(Integer(f"count{at}", 1, 64) for at in range(3)),
        *(Integer(f"size{at}", 1, 2048, scale="log") for at in range(3)),
        Choice("places", [1, 2, 4, 8, 16, 32], ordered=True),
        Choice("pool", ["fifo", "fifo_wait", "prio"]),
    )


def landscape(space: Space, mean_s: float, seed: int) -> Callable[[Config], Answer]:
    """A smooth valley with switches and a tenth of failures; how long an evaluation takes is drawn at random."""
    rng = np.random.default_rng([seed, 7])
    centre, weight = rng.random(len(space.names)), rng.exponential(size=len(space.names))

    def answer(config: Config) -> Answer:
        unit = space.to_unit(space.codes([config]))[0]
        duration_s = mean_s * rng.uniform(0.5, 1.5)
        if unit[4] + unit[7] > 1.55:
            return Answer(duration_s, Failed("exit code 1"))
        return Answer(duration_s, float(np.exp(weight @ np.abs(unit - centre) ** 1.5)))

    return answer


@dataclass(frozen=True, slots=True)
class Cell:
    """What was measured of one player."""

    utilisation: float
    distinct: float
    cpu_ms: float
    best: float


def summary(evaluations: Sequence[Evaluation], workers: int, cpu_s: float) -> Cell:
    """Utilisation until the last start: after that, workers have nothing to do."""
    until_s = max(one.started_s for one in evaluations)
    distinct = len({one.config for one in evaluations}) / len(evaluations)
    best = min((one.value for one in evaluations if one.value is not None), default=math.inf)
    return Cell(utilisation(evaluations, workers, until_s), distinct, 1e3 * cpu_s / len(evaluations), best)


def by_engine(name: str, workers: int, mean_s: float, seed: int, each: int) -> Cell:
    """Plan, loop, store and optimizer, on one clock with the evaluations."""
    space = mixed_space()
    experiment = Experiment(
        space=space,
        objectives=(Objective("returned"),),
        slots=workers,
        budget=each * workers,
        verify_pairs=0,
        seed=seed,
        optimizer=name,
        resample="once",
    )
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(str(Path(folder) / "scale.db"))
        record = store.create("scale", experiment.to_json(), 0.0)
        clock = CpuClock()
        runner = ChargedRunner(landscape(space, mean_s, seed), clock)
        start = time.process_time()
        carry_on(store, record, experiment, runner, virtual_clock=clock)
    return summary(runner.evaluations, workers, time.process_time() - start)


def by_player(player: Player, workers: int, mean_s: float, seed: int, each: int) -> Cell:
    """A search that is asked and told directly."""
    spent_s = 0.0
    evaluations = simulate(
        player, landscape(mixed_space(), mean_s, seed), workers, horizon_s=math.inf, most=each * workers
    )
    return summary(evaluations, workers, spent_s)


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print every cell."""
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--players", default="engine:auto")
    parser.add_argument("--workers", default="32,128,1024")
    parser.add_argument("--seconds", default="2,10,60")
    parser.add_argument("--each", type=int, default=EACH)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(words)
    for name in chosen.players.split(","):
        for workers in map(int, chosen.workers.split(",")):
            for mean_s in map(float, chosen.seconds.split(",")):
                family, _, variant = name.partition(":")
                if family == "engine":
                    cell = by_engine(variant, workers, mean_s, chosen.seed, chosen.each)
                else:
                    player = OptimizerPlayer(make_optimizer(variant, mixed_space(), seed=chosen.seed))
                    cell = by_player(player, workers, mean_s, chosen.seed, chosen.each)
                print(f"{name} {workers} {mean_s} {cell}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
