"""The parts of TunIO (Rajesh et al. 2024, figures 8 to 12), each with and without the others, on one machine.

    python -m benchmarks.tunio [--budget 50] [--applications columns,stencil] [--ways WAY;...] [--tables 0]
    python -m benchmarks.tunio --applications= --tables 12

Applications of `testbeds/io_apps` really run; measured tables are replayed in virtual time, as programs whose whole
sweep is known. `genetic` is a genetic search with elitism and tournaments, as H5Tuner has it. The cost of a tuning is
the time of everything: analysing and verifying the kernel, the search, and the comparison of its result with the
default on the whole application. RoTI is what is gained for each minute of that.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from benchmarks.learned_stop import Search, from_trace, judged
from benchmarks.search_traces import Trace, played
from benchmarks.tunio_applications import (
    APPLICATIONS,
    PAIRS,
    WAYS,
    Application,
    Measured,
    Way,
    Whole,
    measured,
    searched,
)
from luthier.errors import LuthierError
from luthier.trial import Config

PRODUCTION_RUNS = 1000
RULES = ("no stop", "5 % over 5", "gain < cost", "learned")
BASE = ("application", "no stop")
TABLES = (
    "lulesh/set4", "openatom/water_128n", "postgresql/8.3.0", "kripke/16n_2000", "convolution/A100",
    "hepnos/4n-1s-11p", "bdbc/all", "sevenzip/all", "x264/encode", "llvm/passes10", "dconvert/all", "nginx/env1",
)  # fmt: skip
"""Of each kind one with at least six parameters."""

PUBLISHED = (
    ("8a", "kernel: time to the peak of RoTI", "14 % less; RoTI 2.87 instead of 2.47"),
    ("8b", "loops reduced to 1 %", "RoTI 23.3 instead of 2.47"),
    ("9", "impact first: iterations to the same performance", "6 instead of 43"),
    ("10", "stop: share of the best RoTI", "90.5 %; 5 % over 5: 59.3 %; whole budget: 77.9 %"),
    ("11", "all parts: time of the tuning", "27 % of no stop, at 97 % of its performance"),
    ("12", "all parts: runs until the tuning has paid", "1,394 instead of 5,274"),
)


@dataclass(frozen=True)
class Row:
    """One way to tune, ended by one rule: what it cost, and what its configuration is worth on the application."""

    way: str
    rule: str
    runs: int
    total_s: float
    cpu_s: float
    io_s: float
    default: Measured

    @property
    def roti(self) -> float:
        """Seconds of I/O saved in a run, for each minute of tuning."""
        return (self.default.io_s - self.io_s) / (self.total_s / 60.0)

    @property
    def paid_after(self) -> float:
        """How many runs save as much time in I/O as the tuning took."""
        saved_s = self.default.io_s - self.io_s
        return self.total_s / saved_s if saved_s > 0.0 else float("inf")


def rows_of(wholes: Sequence[Whole], ends: dict[Config, Measured], default: Config) -> list[Row]:
    """Each search, ended by each rule."""
    found = []
    for whole in wholes:
        for rule, count in whole.stops(PRODUCTION_RUNS).items():
            best, usual = ends[whole.chosen[count - 1]], ends[default]
            compared_s = (PAIRS + 1) * (best.wall_s + usual.wall_s)
            compared_cpu_s = (PAIRS + 1) * (best.cpu_s + usual.cpu_s)
            total_s = whole.ready_s + sum(whole.costs_s[:count]) + compared_s
            cpu_s = whole.ready_cpu_s + sum(whole.cpu_s[:count]) + compared_cpu_s
            found.append(Row(whole.way.name, rule, count, total_s, cpu_s, best.io_s, usual))
    return sorted(found, key=lambda row: RULES.index(row.rule))


def tuned(application: Application, ways: Sequence[Way], budget: int, seed: int) -> list[Row]:
    """Tune one application in each of these ways."""
    with tempfile.TemporaryDirectory(prefix="luthier-tunio-") as temporary:
        wholes, tuning = searched(application, ways, Path(temporary), budget, seed)
        ended = [whole.chosen[count - 1] for whole in wholes for count in whole.stops(PRODUCTION_RUNS).values()]
        default = wholes[0].chosen[0]
        ends = measured(tuning, [config for config in dict.fromkeys(ended) if config != default])
        return rows_of(wholes, ends, default)


def show_rows(application: Application, rows: Sequence[Row]) -> None:
    """Print what an application's tunings cost and brought."""
    base = next(row for row in rows if (row.way, row.rule) == BASE)
    print(f"\n{application.name}: {base.default.io_s:.3g} s in I/O by default, run {base.default.wall_s:.3g} s")
    print("time: of the whole tuning, and as a share of a genetic search on the application without a stop; CPU: the")
    print("same by seconds of CPU; I/O: of a run of the application with the result; paid: after how many runs")
    print(f"{'':<30}{'ended by':<12}{'runs':>5}{'time':>9}{'share':>7}{'CPU':>7}{'I/O':>10}{'RoTI':>8}{'paid':>7}")
    for way in dict.fromkeys(row.way for row in rows):
        for row in rows:
            if row.way == way:
                share, cpu = row.total_s / base.total_s, row.cpu_s / base.cpu_s
                costs = f"{row.runs:>5}{row.total_s:>8.0f}s{share:>7.0%}{cpu:>7.0%}"
                print(f"{way:<30}{row.rule:<12}{costs}{row.io_s:>9.3g}s{row.roti:>8.3g}{row.paid_after:>7.0f}")
    print(flush=True)


def replayed(names: Sequence[str], seeds: int) -> dict[str, list[tuple[Trace, Search]]]:
    """Genetic searches of measured tables, with impact first and without it."""
    found: dict[str, list[tuple[Trace, Search]]] = {"off": [], "auto": []}
    for name in names:
        for seed in range(seeds):
            try:
                pair = [played(name, "genetic", seed, way) for way in found]
            except LuthierError as error:
                print(f"{name}: {error}", flush=True)
                break
            searches = [from_trace(trace) for trace in pair]
            for way, trace, search in zip(found, pair, searches, strict=True):
                if search is not None and None not in searches:
                    found[way].append((trace, search))
    return found


def show_tables(found: dict[str, list[tuple[Trace, Search]]]) -> None:
    """Print the same for the tables, in relation to the search without impact first and without a stop."""
    print(f"\n{len(found['off'])} searches of measured tables; medians; time and end as a share of the search without")
    print(f"any part; net gain over {PRODUCTION_RUNS} runs as a share of the best that any stop could reach, in sum")
    print(f"{'impact first':<14}{'ended by':<12}{'runs':>5}{'time':>7}{'end':>7}{'RoTI':>7}{'net gain':>10}")
    bases = [search for _, search in found["off"]]
    for way, pairs in found.items():
        judgements = [judged(search, PRODUCTION_RUNS) for _, search in pairs]
        for rule in RULES:
            times, ends, rates = [], [], []
            for row, (_, search), base in zip(judgements, pairs, bases, strict=True):
                at = row.runs[rule] - 1
                times.append(float(search.costs[: at + 1].sum() / base.costs.sum()))
                ends.append(float(base.chosen[-1] / search.chosen[at]))
                rates.append(row.rotis[rule] / row.best_roti if row.best_roti > 0.0 else 1.0)
            runs = median(row.runs[rule] for row in judgements)
            net = sum(row.gains[rule] for row in judgements) / sum(row.best for row in judgements)
            print(
                f"{way:<14}{rule:<12}{runs:>5.0f}{median(times):>7.0%}{median(ends):>7.1%}{fmean(rates):>7.1%}{net:>10.1%}"
            )
    reached = [_needed(pair, base) for pair, base in zip(found["auto"], found["off"], strict=True)]
    usual = [_needed(base, pair) for pair, base in zip(found["auto"], found["off"], strict=True)]
    counts = f"{median(reached):.0f} with impact first, {median(usual):.0f} without"
    print(f"runs to 95 % of the gain of the better of both: {counts}")


def _needed(one: tuple[Trace, Search], other: tuple[Trace, Search]) -> int:
    """After how many runs 95 % of the gain of the better search was reached; all runs if it never was."""
    mine, theirs = one[1].chosen, other[1].chosen
    target = 1.0 - 0.95 * (1.0 - min(mine.min(), theirs.min()))
    return next((at + 1 for at, value in enumerate(mine) if value <= target), len(mine))


def main() -> int:
    """Tune the applications and the tables, and print the figures beside the published ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--applications", default=",".join(one.name for one in APPLICATIONS))
    parser.add_argument("--ways", default="", help="Only these, separated by semicolons, beside the first.")
    parser.add_argument("--budget", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tables", type=int, default=len(TABLES), help="How many tables; 0 for none.")
    parser.add_argument("--seeds", type=int, default=2, help="Searches of each table.")
    given = parser.parse_args()
    ways = [way for way in WAYS if not given.ways or way.name in (BASE[0], *given.ways.split(";"))]
    print("published:")
    for figure, what, text in PUBLISHED:
        print(f"  figure {figure:<3} {what}: {text}")
    for application in APPLICATIONS:
        if application.name in given.applications.split(","):
            show_rows(application, tuned(application, ways, given.budget, given.seed))
    if given.tables:
        show_tables(replayed(TABLES[: given.tables], given.seeds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
