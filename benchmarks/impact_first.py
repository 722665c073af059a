"""How many configurations a search needs with impact first and without it.

    python -m benchmarks.impact_first [--seeds 3] [--searches genetic,generational,auto] [TABLE ...]

Each search replays a measured table or a testbed of at least six parameters. For every seed the target is the
performance (1 / value, or the value where higher is better) at which 95 % of the way from the default to the best found
by any of the searches of the same kind is gone. A search that does not get there counts with its budget.

`genetic` is luthier's own, `generational` one as programs with DEAP have it (`benchmarks/generational.py`).
"""

import argparse
import math
import time
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from benchmarks import tables
from benchmarks.generational import POPULATION, GenerationalSearch
from luthier.optimizers import Optimizer, make_optimizer
from luthier.optimizers.impact_first import ImpactFirst
from luthier.policies import SubsetPicker, make_picker
from luthier.space import Choice, Space
from luthier.trial import Completed, Config, Estimate, Failed, Trial

PLAYED = (
    "lulesh/set3",
    "lulesh/set4",
    "openatom/water_128n",
    "postgresql/8.3.0",
    "kripke/16n_2000",
    "convolution/A100",
    "convolution/W6600",
    "hepnos/4n-1s-11p",
    "hepnos/4n-2s-20p",
    "bdbc/",
    "sevenzip/",
    "x264/",
    "llvm/",
    "dconvert/",
    "hsqldb/",
    "vpx/",
    "nginx/",
    "convolution_more/",
)
BUDGETS: Mapping[str, int] = {"genetic": 200, "generational": 300, "auto": 60}
WAYS = ("off", "statistical", "learned")
FEWEST_PARAMETERS = 6
_SHARE = 0.95


def space_of(table: tables.Table) -> Space:
    """The grid of a table; numbers are ordered."""
    default = {} if table.default is None else table.config(table.default)
    return Space(
        *(
            Choice(name, list(values), default=default.get(name), ordered=tables.is_ordered(values))
            for name, values in table.parameters.items()
        )
    )


def search_of(name: str, space: Space, seed: int, way: str) -> Optimizer:
    """A search with impact first, or without it."""
    picker: SubsetPicker | None = None if way == "off" else make_picker(way)
    if name != "generational":
        return make_optimizer(name, space, seed=seed, budget=BUDGETS[name], picker=picker)
    if picker is None:
        return GenerationalSearch(space, seed=seed)
    return ImpactFirst(space, lambda part: GenerationalSearch(part, seed=seed), picker, seed=seed, budget=BUDGETS[name])


def curve_of(table: tables.Table, name: str, seed: int, way: str) -> list[float]:
    """The best performance (higher is better) after each configuration; the first is the default."""
    space, replay = space_of(table), tables.Replay(table, seed)
    optimizer = search_of(name, space, seed, way)
    curve: list[float] = []
    config = _default(table, space, seed)
    for _ in range(BUDGETS[name]):
        point = table.point(config)
        value, true = replay.run(point), table.true(point)
        optimizer.tell([_trial(config, value if table.minimise or value is None else -value)])
        reached = -math.inf if value is None or math.isnan(true) else (1.0 / true if table.minimise else true)
        curve.append(max([reached, *curve[-1:]]))
        suggested = optimizer.ask(1, [])
        if not suggested:
            break
        config = suggested[0]
    return curve


def _default(table: tables.Table, space: Space, seed: int) -> Config:
    """The default of the table; where none is known, a configuration that runs, drawn by the seed."""
    if table.default is not None:
        return space.default
    runs = [point for point in table.runs if not math.isnan(table.true(point))]
    return space.check(table.config(runs[int(np.random.default_rng([seed, 59]).integers(len(runs)))]))


def _trial(config: Config, value: float | None) -> Trial:
    if value is None:
        return Trial(config, (Failed("no value"),), None)
    return Trial(config, (Completed(value),), Estimate(value, 1))


def needed(curve: Sequence[float], target: float, budget: int) -> int:
    """How many configurations it took to reach the target; the budget if it was not reached."""
    return next((at + 1 for at, best in enumerate(curve) if best >= target * (1.0 - 1e-12)), budget)


def compared(name: str, table_name: str, seeds: int) -> dict[str, tuple[float, float]]:
    """For each way, how many configurations it needed (median), and its end as a share of the best end (worst case).

    The ends are medians over the seeds.
    """
    table = tables.load(table_name)
    counts: dict[str, list[int]] = {way: [] for way in WAYS}
    ends: dict[str, list[float]] = {way: [] for way in WAYS}
    for seed in range(seeds):
        curves = {way: curve_of(table, name, seed, way) for way in WAYS}
        best, start = max(curve[-1] for curve in curves.values()), curves["off"][0]
        for way, curve in curves.items():
            counts[way].append(needed(curve, start + _SHARE * (best - start), BUDGETS[name]))
            ends[way].append(curve[-1])
    return {way: (median(counts[way]), median(ends[way]) / median(ends["off"])) for way in WAYS}


def report(name: str, names: Sequence[str], seeds: int) -> None:
    """Play one kind of search over all tables, and print what was needed."""
    print(f"\n{name}: configurations to 95 % of the gain (share of those without), end against the end without")
    ratios: dict[str, list[float]] = {way: [] for way in WAYS}
    ends: dict[str, list[float]] = {way: [] for way in WAYS}
    for table_name in names:
        found = compared(name, table_name, seeds)
        base = found["off"][0]
        cells = [f"{way} {count:5.0f} ({count / base:4.2f}) {end:5.3f}" for way, (count, end) in found.items()]
        print(f"  {table_name:22s} {'   '.join(cells)}", flush=True)
        for way, (count, end) in found.items():
            ratios[way].append(count / base)
            ends[way].append(end)
    for way in WAYS[1:]:
        unit = f" (generations of {POPULATION})" if name == "generational" else ""
        fewer = f"in {sum(r < 1 for r in ratios[way])} of {len(names)}"
        print(
            f"  {way}: median share {median(ratios[way]):.2f}{unit}, {fewer} "
            f"fewer, in {sum(r > 1 for r in ratios[way])} more; worst end {100 * (1 - min(ends[way])):.1f} % below"
        )


def main() -> None:
    """Play, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=[*PLAYED])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--searches", default="genetic,generational,auto")
    given = parser.parse_args()
    began = time.process_time()
    for name in given.searches.split(","):
        report(name, given.tables, given.seeds)
    print(
        f"\n{time.process_time() - began:.0f} s of CPU; published (FLASH, 12 parameters): 6 instead of 43 generations"
    )


if __name__ == "__main__":
    main()
