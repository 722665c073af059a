"""What to assume about running configurations while the next one is chosen: a comparison of several ways.

    python -m benchmarks.parallel_asks --seeds 5

A Gaussian process searches with several runs at all times; the oldest ends first. Printed is the regret
after the budget in percent: 0 is the optimum, 100 the median of the space. The last table is the cost of many
suggestions at once.
"""

import argparse
import math
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks import tables
from luthier.arrays import FloatArray
from luthier.learn.gaussian_process import Observations
from luthier.learn.linear import cholesky
from luthier.optimizers import make_optimizer
from luthier.optimizers.ensemble import Ensemble
from luthier.optimizers.model_search import ModelSearch
from luthier.optimizers.surrogates import CachedPoints, GaussianSurrogate
from luthier.space import Choice, Integer, Space
from luthier.trial import Completed, Config, Estimate, Failed, Trial

BATCHES = (2, 4, 8)
TABLES = ("openatom/water_128n", "postgresql/8.3.0", "convolution/MI250X", "kripke/16n_12000:pkg_limit_w=100")
INITIAL = 7
DRAWN_AT = 1_000


class Liar(GaussianSurrogate):
    """Assumes that every running configuration ends with the same value (constant liar; Ginsbourger et al. 2010)."""

    def __init__(self, ordered: npt.NDArray[np.bool_], lie: Callable[[FloatArray], float]) -> None:
        super().__init__(ordered, "matern52")
        self._lie, self._told = lie, 0

    def condition(self, data: Observations) -> None:
        super().condition(data)
        self._told = len(data.y)

    def assume(self, x: FloatArray) -> None:
        process = self._process
        for row in x:
            predicted = float(process.predict_standard(row[None, :])[0][0])
            targets = process.mean + process.lower @ process.whitened
            process.assume(row[None, :])
            # Row n of L⁻¹ (y - m) is what target n differs by from its prediction, over the pivot.
            process.whitened[-1] = (self._lie(targets[: self._told]) - predicted) / process.lower[-1, -1]


class Thompson(GaussianSurrogate):
    """Takes the lowest point of a drawn function at up to `DRAWN_AT` points; running configurations are ignored."""

    def __init__(self, ordered: npt.NDArray[np.bool_], seed: int) -> None:
        super().__init__(ordered, "matern52")
        self._rng = np.random.default_rng([seed, 4])

    def assume(self, x: FloatArray) -> None:
        del x

    def predict(self, points: CachedPoints) -> tuple[FloatArray, FloatArray, float]:
        process, count = self._process, len(points.units)
        some = self._rng.choice(count, min(count, DRAWN_AT), replace=False)
        rows = points.fixed(process).rows(process)[:, some]
        covariance = process.hyper.signal * process.kernel.correlation(
            process.hyper, points.units[some], points.units[some]
        )
        lower = cholesky(covariance - rows.T @ rows + 1e-9 * np.eye(len(some)))
        drawn = np.full(count, 1e3)
        drawn[some] = process.whitened @ rows + lower @ self._rng.standard_normal(len(some))
        return drawn, np.ones(count), 0.0  # with equal deviations the lowest mean is the most promising


WAYS: Mapping[str, Callable[[npt.NDArray[np.bool_], int], GaussianSurrogate]] = {
    "as predicted": lambda ordered, _: GaussianSurrogate(ordered, "matern52"),
    "liar, min": lambda ordered, _: Liar(ordered, lambda y: float(y.min())),
    "liar, mean": lambda ordered, _: Liar(ordered, lambda y: float(y.mean())),
    "Thompson": Thompson,
}
"""What to assume of running configurations."""


@dataclass(frozen=True)
class Task:
    """Something to minimise; `value` is None for a run that fails. The true values say how good a run really was."""

    name: str
    space: Space
    value: Callable[[Config, int], float | None]
    true: Callable[[Config], float]
    optimum: float
    median: float


def _synthetic(name: str, space: Space, function: Callable[[FloatArray], float]) -> Task:
    def true(config: Config) -> float:
        return function(space.to_unit(space.codes([config]))[0])

    values = [function(unit) for unit in space.to_unit(space.grid())]
    return Task(name, space, lambda config, _: true(config), true, min(values), float(np.median(values)))


def branin(u: FloatArray) -> float:
    """The function of Branin (Dixon and Szegö 1978)."""
    x, y = 15.0 * u[0] - 5.0, 15.0 * u[1]
    bent = y - 5.1 / (4.0 * math.pi**2) * x**2 + 5.0 / math.pi * x - 6.0
    return float(bent**2 + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(x) + 10.0)


_HARTMANN_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
_HARTMANN_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann(u: FloatArray) -> float:
    """The function of Hartmann in six dimensions (Dixon and Szegö 1978)."""
    exponents = np.sum(_HARTMANN_A * (u - _HARTMANN_P) ** 2, axis=1)
    return -float(np.array([1.0, 1.2, 3.0, 3.2]) @ np.exp(-exponents))


def mixed(u: FloatArray) -> float:
    """Three numbers whose best values depend on one of two names."""
    one, two = int(4.0 * u[3]), int(3.0 * u[4])
    centre = np.array([0.3, 0.7, 0.5]) + 0.12 * np.array([one - 1.5, two - 1.0, one - two])
    return float(np.exp(2.0 * np.sum((u[:3] - centre) ** 2) + 0.3 * abs(one - 2) + 0.2 * two))


def ackley(u: FloatArray) -> float:
    """The function of Ackley 1987, its centre moved off the middle."""
    x = 16.0 * (u - 0.35)
    smooth = -20.0 * math.exp(-0.2 * math.sqrt(float(np.mean(x**2))))
    return smooth - math.exp(float(np.mean(np.cos(2.0 * math.pi * x)))) + 20.0 + math.e


def synthetic_tasks() -> list[Task]:
    """Functions from the literature on grids, and one with names."""
    return [
        _synthetic("branin", Space(Integer("x", 0, 44), Integer("y", 0, 44)), branin),
        _synthetic("hartmann6", Space(*(Integer(name, 0, 3) for name in "abcdef")), hartmann),
        _synthetic("ackley3", Space(*(Integer(name, 0, 19) for name in "abc")), ackley),
        _synthetic(
            "mixed",
            Space(*(Integer(name, 0, 7) for name in "abc"), Choice("d", list("wxyz")), Choice("e", list("uvw"))),
            mixed,
        ),
    ]


def measured_task(name: str) -> Task:
    """A measured table, its noise replayed."""
    table = tables.load(name)
    sign = 1.0 if table.minimise else -1.0
    space = Space(
        *(Choice(n, list(values), ordered=tables.is_ordered(values)) for n, values in table.parameters.items())
    )
    means = [sign * mean for mean in map(table.true, table.runs) if not math.isnan(mean)]

    def value(config: Config, seed: int) -> float | None:
        found = tables.Replay(table, seed).run(table.point(config))
        return None if found is None else sign * found

    def true(config: Config) -> float:
        return sign * table.true(table.point(config))

    return Task(name, space, value, true, min(means), float(np.median(means)))


def regret(task: Task, way: str, batch: int, budget: int, seed: int) -> float:
    """Search with `batch` runs at all times; what the best measured one truly misses, in percent."""
    ordered = np.asarray(task.space.ordered, dtype=np.bool_)
    model = Ensemble(ordered, lambda columns: (WAYS[way](columns, seed),), seed=seed)
    search = ModelSearch(task.space, model, seed=seed, initial=INITIAL)
    running: deque[Config] = deque()
    best, found, asked = math.inf, math.nan, 0
    while asked < budget or running:
        while len(running) < batch and asked < budget:
            (config,) = search.ask(1, list(running))
            running.append(config)
            asked += 1
        config = running.popleft()
        value = task.value(config, seed)
        if value is None:
            search.tell([Trial(config, (Failed("exit 1"),), None)])
            continue
        search.tell([Trial(config, (Completed(value),), Estimate(value, 1))])
        if value < best:
            best, found = value, task.true(config)
    return 100.0 * (found - task.optimum) / (task.median - task.optimum)


def compare(tasks: Sequence[Task], seeds: int, budget: int) -> None:
    """Print the mean regret of every way on every task, and its mean rank."""
    print(f"mean regret in %, {budget} runs, {seeds} seeds")
    print(f"{'task':34} {'running':>7} " + " ".join(f"{way:>12}" for way in WAYS))
    ranks: dict[int, list[FloatArray]] = {batch: [] for batch in BATCHES}
    for task in tasks:
        for batch in BATCHES:
            cells = np.array([[regret(task, way, batch, budget, seed) for way in WAYS] for seed in range(seeds)])
            ranks[batch].extend(
                (row[:, None] > row).sum(axis=1) + 0.5 * (row[:, None] == row).sum(axis=1) for row in cells
            )
            means = " ".join(f"{mean:12.2f}" for mean in cells.mean(axis=0))
            print(f"{task.name:34} {batch:7d} {means}", flush=True)
    for batch, rows in ranks.items():
        means = " ".join(f"{rank + 0.5:12.2f}" for rank in np.mean(rows, axis=0))
        print(f"{'mean rank (1 is best, 2.5 is even)':34} {batch:7d} {means}")


def cost(name: str, known: int, count: int = 128) -> tuple[int, float]:
    """How many of `count` suggestions at once are distinct, and the CPU milliseconds of each, imports left out."""
    task = synthetic_tasks()[-1]
    search = make_optimizer(name, task.space, seed=1, budget=1_000)
    for config in task.space.sample(known, np.random.default_rng(1)):
        value = task.true(config)
        search.tell([Trial(config, (Completed(value),), Estimate(value, 1))])
    search.ask(1, [])
    start = time.process_time()
    asked = search.ask(count, [])
    return len(set(asked)), 1e3 * (time.process_time() - start) / count


def main(words: Sequence[str] | None = None) -> int:
    """Compare, then measure the cost."""
    parser = argparse.ArgumentParser(prog="benchmarks.parallel_asks", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5, help="seeds 0 to N-1 (default 5)")
    parser.add_argument("--budget", type=int, default=60, help="runs of a search (default 60)")
    chosen = parser.parse_args(words)
    at_hand = tables.names()
    measured = [name for name in TABLES if name.partition(":")[0] in at_hand]
    for name in set(TABLES) - set(measured):
        print(f"{name}: not in {tables.data_folder()}, left out; LUTHIER_DATA names the folder", file=sys.stderr)
    compare([*synthetic_tasks(), *map(measured_task, measured)], chosen.seeds, chosen.budget)
    for name in ("gp", "auto"):
        for known in (30, 100, 300):
            distinct, each = cost(name, known)
            print(f"{name}, {known} known: {distinct} of 128 suggestions at once are distinct, {each:.1f} ms CPU each")
    return 0


if __name__ == "__main__":
    sys.exit(main())
