"""The real Small Read Optimizer on slow storage: every configuration of the grid measured, then tuned (`docs/sro.md`).

    python -m benchmarks.sro [--repeats 3] [--seeds 5] [--budget 60]

Needs root (see `testbeds/real/slow_storage.py`) and takes about 40 minutes. What was measured of the grid is in
`benchmarks/results/sro-PATTERN.csv`, and is not measured again.
"""

import argparse
import csv
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import luthier as lt
from testbeds.real.slow_storage import slow_storage, why_unavailable
from testbeds.real.sro import PATTERNS, READ_BYTES_S, READ_IOPS, SPACE, Fakeapp, build

RESULTS = Path(__file__).parent / "results"
FINALISTS, FINAL_RUNS = 10, 5  # how many of the best run again, and how often

Table = dict[int, list[float]]  # the runs of each configuration, by its number in the space


def read_table(path: Path) -> Table:
    """The measurements so far."""
    table: Table = {number: [] for number in range(SPACE.size or 0)}
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                table[int(row["number"])].append(float(row["seconds"]))
    return table


class Grid:
    """The grid under one pattern, with every run written to a file as it ends."""

    def __init__(self, fakeapp: Fakeapp, path: Path) -> None:
        self._fakeapp = fakeapp
        self._path = path
        self.table = read_table(path)

    def measure(self, numbers: Sequence[int], runs: int) -> None:
        """Measure until these have this many runs; in rounds, so that the runs of each are spread over time."""
        for wanted in range(1, runs + 1):
            for number in [number for number in numbers if len(self.table[number]) < wanted]:
                config = SPACE.at(number)
                self.table[number].append(self._fakeapp(config))
                self._write([number, *config.values(), self.table[number][-1]])

    def medians(self) -> dict[int, float]:
        """One value for each configuration."""
        return {number: statistics.median(runs) for number, runs in self.table.items()}

    def ranking(self) -> list[int]:
        """The numbers of the configurations, best first."""
        values = self.medians()
        return sorted(values, key=values.__getitem__)

    def _write(self, row: list[object]) -> None:
        new = not self._path.exists()
        with self._path.open("a", newline="") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow(["number", *SPACE.names, "seconds"])
            writer.writerow(row)


def exhaustive(fakeapp: Fakeapp, path: Path, repeats: int) -> int:
    """Measure the whole grid and print a summary; return the number of the best configuration."""
    grid = Grid(fakeapp, path)
    grid.measure(list(grid.table), repeats)
    spreads = sorted(statistics.stdev(runs) / statistics.mean(runs) for runs in grid.table.values() if len(runs) > 1)
    grid.measure(grid.ranking()[:FINALISTS], repeats + FINAL_RUNS)  # with few runs the best one is partly chance
    values, ranking = grid.medians(), grid.ranking()
    best, worst = ranking[0], ranking[-1]
    plain = statistics.median(fakeapp.plain() for _ in range(FINAL_RUNS))
    default = next(value for number, value in values.items() if SPACE.at(number) == SPACE.default)
    print(f"plain {plain:.3f} s, default {default:.3f} s, {len(values)} configurations")
    print(f"best  {values[best]:.3f} s: {dict(SPACE.at(best))}")
    print(f"worst {values[worst]:.3f} s: {dict(SPACE.at(worst))}")
    print(f"within 10 % of the best: {sum(value <= 1.1 * values[best] for value in values.values())}")
    if spreads:
        usual, high = statistics.median(spreads), spreads[9 * len(spreads) // 10]
        print(f"deviation of repeats: median {usual:.1%}, 90 % of them below {high:.1%}")
    return best


def ratio(fakeapp: Fakeapp, config: lt.Config, best: lt.Config) -> float:
    """The time of a configuration relative to the best one, from alternating runs of both."""
    found, reference = [], []
    for _ in range(FINAL_RUNS):
        found.append(fakeapp(config))
        reference.append(fakeapp(best))
    return statistics.median(found) / statistics.median(reference)


def main() -> int:
    """Measure, tune, print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=60)
    options = parser.parse_args()
    if (reason := why_unavailable()) is not None:
        print(f"not run: {reason}")
        return 0
    RESULTS.mkdir(exist_ok=True)
    with slow_storage(read_iops=READ_IOPS, read_bytes_s=READ_BYTES_S) as storage:
        programs = build()
        for pattern, arguments in PATTERNS.items():
            print(f"pattern {pattern}: fakeapp {' '.join(arguments)}", flush=True)
            fakeapp = Fakeapp(programs, storage, arguments)
            fakeapp.create()
            best = SPACE.at(exhaustive(fakeapp, RESULTS / f"sro-{pattern}.csv", options.repeats))
            for seed in range(options.seeds):
                result = lt.tune(fakeapp, SPACE, budget=options.budget, seed=seed, name=f"sro {pattern}")
                times = ratio(fakeapp, result.best.config, best)
                gain = "not verified" if result.speedup is None else f"default / found = {result.speedup:.2f}"
                print(f"seed {seed}: {len(result.runs)} runs, {times:.3f} times the best, {gain}", flush=True)
                print(f"        {dict(result.best.config)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
