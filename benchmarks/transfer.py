"""What a search gains from an earlier one: measured tables with siblings (releases, machines, input sizes).

    python -m benchmarks.transfer [--quick] [--kinds none,best,model] [--pairs chosen|others|all] [--seeds 5]

The source table is searched by plain `auto`; its trials are handed to a search of the target table, as they are (a good
prior) or with their values inverted (a misleading one: the worst look best). Measured: the number of evaluations until
the best one is within 5 % and 1 % of the target's optimum, the default included, and the distance after some numbers
of evaluations. A search ends when it is within 1 %, or after 60 evaluations, which then count as 61.

Of releases, one pair is far apart and one is of neighbours. The default kind of transfer was chosen on the families
`chosen`; `others` were only looked at afterwards.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from benchmarks import tables
from luthier.optimizers import make_optimizer
from luthier.optimizers.earlier import TRANSFER_KINDS, Earlier
from luthier.space import Choice, Space
from luthier.transfer.lessons import earlier_from
from luthier.trial import Completed, Config, Estimate, Failed, Trial

PAIRS: Mapping[str, Mapping[str, Sequence[tuple[str, str]]]] = {
    "chosen": {
        "lrzip": [("530", "616"), ("560", "631"), ("621", "631")],
        "convolution": [("A100", "A4000"), ("A4000", "MI250X")],
        "kripke": [("16n_2000", "16n_12000"), ("16n_12000", "16n_2000")],
        "dune": [("cells51", "cells53"), ("cells53", "cells50")],
    },
    "others": {
        "vpx": [("vp8-v0.9.1", "vp8-v1.8.0"), ("vp9-v1.7.0", "vp9-v1.8.0")],
        "hsqldb": [("2.1.0", "2.4.1"), ("2.4.0", "2.4.1")],
        "postgresql": [("8.3.0", "9.6.3"), ("9.0.0", "9.0.4")],
        "convolution_more": [("2080Ti", "3090"), ("A6000", "W7800")],
        "pnpoly": [("2080Ti", "3090"), ("3090", "3060_laptop")],
        "lulesh": [("set3", "set4"), ("set4", "set3")],
    },
}
SOURCE_RUNS, BUDGET, CHECKED = 100, 60, (10, 20, 30, 60)


@dataclass(frozen=True, slots=True)
class Search:
    """Percent by which the best so far misses the optimum, after each evaluation."""

    distances: tuple[float, ...]

    def until(self, percent: float) -> int:
        """How many evaluations it took to be so close; one more than the budget if it never was."""
        return next((at for at, away in enumerate(self.distances, 1) if away <= percent), BUDGET + 1)

    def after(self, count: int) -> float:
        """The distance after so many evaluations; that at the end if it ended before."""
        return self.distances[min(count, len(self.distances)) - 1]


def space_of(table: tables.Table) -> Space:
    """The grid of a table; numbers have an order."""
    default = table.default or next(iter(table.runs))
    return Space(
        *(
            Choice(name, list(values), default=values[at], ordered=tables.is_ordered(values))
            for (name, values), at in zip(table.parameters.items(), default, strict=True)
        )
    )


def trial_of(table: tables.Table, replay: tables.Replay, config: Config) -> Trial:
    """One run of a configuration, lower is better; a configuration that was never measured fails."""
    value = replay.run(table.point(config))
    if value is None:
        return Trial(config, (Failed("no number"),), None)
    value = value if table.minimise else -value
    return Trial(config, (Completed(value),), Estimate(value, 1))


@lru_cache(64)
def source_history(name: str, seed: int) -> tuple[Trial, ...]:
    """The trials of a plain search of a table."""
    table = tables.load(name)
    space, replay = space_of(table), tables.Replay(table, seed)
    optimizer = make_optimizer("auto", space, seed=seed, budget=SOURCE_RUNS)
    trials = [trial_of(table, replay, space.default)]
    optimizer.tell(trials)
    while len(trials) < SOURCE_RUNS and (asked := optimizer.ask(1, [])):
        trials.append(trial_of(table, replay, asked[0]))
        optimizer.tell(trials[-1:])
    return tuple(trials)


def inverted(history: Sequence[Trial]) -> list[Trial]:
    """The history with the order of its values reversed: what was worst is best."""
    values = [trial.estimate.value for trial in history if trial.estimate is not None]
    low, high = min(values), max(values)
    turned = []
    for trial in history:
        if trial.estimate is None:
            turned.append(trial)
        else:
            value = low * high / trial.estimate.value if low > 0.0 else low + high - trial.estimate.value
            turned.append(Trial(trial.config, (Completed(value),), Estimate(value, 1)))
    return turned


def search(name: str, earlier: Earlier | None, seed: int) -> Search:
    """Search a table, the default first."""
    table = tables.load(name)
    space, replay, optimum = space_of(table), tables.Replay(table, seed), table.optimum()
    optimizer = make_optimizer("auto", space, seed=seed, budget=BUDGET, earlier=earlier)
    asked, best, distances = [space.default], float("inf"), list[float]()
    while asked and len(distances) < BUDGET:
        best = min(best, table.distance(table.true(table.point(asked[0])), optimum))
        distances.append(best)
        if best <= 1.0:
            break
        optimizer.tell([trial_of(table, replay, asked[0])])
        asked = list(optimizer.ask(1, []))
    return Search(tuple(distances))


def searches(family: str, pair: tuple[str, str], kind: str, seeds: int, *, misleading: bool = False) -> list[Search]:
    """The searches of one target with one kind of transfer; `none` is a plain search."""
    found = []
    for seed in range(seeds):
        target = tables.load(f"{family}/{pair[1]}")
        earlier = None
        if kind != "none":
            history = source_history(f"{family}/{pair[0]}", 1000 + seed)
            used = inverted(history) if misleading else history
            earlier = earlier_from([used], space_of(target), kind)
        found.append(search(target.name, earlier, seed))
    return found


def report(label: str, found: Sequence[Search], plain: Sequence[Search]) -> list[float]:
    """Print a row; return the ratio of evaluations to those of a plain search, for 5 % and 1 %."""
    counts = [float(np.mean([each.until(percent) for each in found])) for percent in (5.0, 1.0)]
    usual = [float(np.mean([each.until(percent) for each in plain])) for percent in (5.0, 1.0)]
    ratios = [count / other for count, other in zip(counts, usual, strict=True)]
    distances = " ".join(f"{np.mean([min(each.after(count), 999.0) for each in found]):7.1f}" for count in CHECKED)
    print(f"{label:48} {counts[0]:6.1f} {ratios[0]:6.2f} {counts[1]:6.1f} {ratios[1]:6.2f}   {distances}", flush=True)
    return ratios


def main() -> int:
    """Print a row for each target and kind, and the means over families."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default=",".join(TRANSFER_KINDS), help="kinds of transfer to compare")
    parser.add_argument("--pairs", default="all", choices=["chosen", "others", "all"])
    parser.add_argument("--families", default="", help="only these families")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one family, one pair, two seeds")
    given = parser.parse_args()
    groups = {group: dict(PAIRS[group]) for group in PAIRS if given.pairs in (group, "all")}
    if given.families:
        wanted = given.families.split(",")
        groups = {group: {f: p for f, p in families.items() if f in wanted} for group, families in groups.items()}
    if given.quick:
        groups, given.seeds = {"quick": {"dune": PAIRS["chosen"]["dune"][:1]}}, 2
    print(
        f"{'target, kind of transfer':48} {'to 5%':>6} {'ratio':>6} {'to 1%':>6} {'ratio':>6}   "
        f"distance in % after {CHECKED}"
    )
    for group, families in groups.items():
        totals: dict[str, list[list[float]]] = {}
        for family, pairs in families.items():
            within: dict[str, list[list[float]]] = {}
            for pair in pairs:
                plain = searches(family, pair, "none", given.seeds)
                report(f"{family} {pair[0]} > {pair[1]}, none", plain, plain)
                for kind in given.kinds.split(","):
                    for misleading in (False, True):
                        name = f"{kind} misleading" if misleading else kind
                        found = searches(family, pair, kind, given.seeds, misleading=misleading)
                        within.setdefault(name, []).append(
                            report(f"{family} {pair[0]} > {pair[1]}, {name}", found, plain)
                        )
            for name, ratios in within.items():
                totals.setdefault(name, []).append(np.mean(ratios, axis=0).tolist())
        for name, each in totals.items():
            five, one = np.mean(each, axis=0)
            print(f"== {group}: {name}: {five:.2f} of the evaluations of none to 5 %, {one:.2f} to 1 %", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
