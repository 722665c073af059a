"""MPI_Allreduce of one message size: every configuration of its grid measured, then tuned from that table.

    python -m benchmarks.allreduce [--sizes 1k,64k,1M] [--rounds 11] [--budget 30]

Needs Open MPI (`docs/open-mpi.md`). The grid of `examples/openmpi/allreduce.yaml` is measured in rounds, each in a
random order, as `examples/openmpi/sweep.py` measures. What was measured is kept in
`benchmarks/results/allreduce-BYTES.csv`, and is not measured again. A run of the tuning is one of the recorded runs of
its configuration, drawn at random.
"""

import argparse
import csv
import math
import os
import shlex
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import luthier as lt
from luthier.compiled import library
from luthier.space import parse_quantity
from luthier.spec.component import read_components
from luthier.spec.grids import parameter_of
from luthier.spec.script import JobScript

RESULTS = Path(__file__).parent / "results"
COMPONENT = Path(__file__).parents[1] / "examples" / "openmpi" / "allreduce.yaml"
RANKS = 4
FEW, MANY = 5, 30  # number of seeds: for the goal, and for a more reliable result
CLOSE = 5.0  # percent

# One machine, more ranks than processors, perhaps root.
SHARED = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}

Measure = Callable[[lt.Config], float]
Table = dict[lt.Config, list[float]]  # microseconds of each run


def benchmark(collbench: Path, size_bytes: int) -> tuple[lt.Space, Measure]:
    """The configurations of allreduce, and a function that runs one and returns its microseconds."""
    component = read_components(COMPONENT)["allreduce"]
    tuned = [parameter_of(name, one, one) for name, one in component.parameters.items() if one.given]
    space = lt.Space(*tuned, constraints=component.constraints)
    calls = 5000 * 8192 // (8192 + size_bytes) + 100  # some tenths of a second
    program = shlex.quote(str(collbench))
    job = JobScript(component, f"mpirun -n {RANKS} {program} allreduce -m {size_bytes} -r {calls} -w 20")

    def measure(config: lt.Config) -> float:
        words, variables = job.render(space, config)
        environment = {**os.environ, **variables}
        ended = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        rows = [line.split() for line in ended.stdout.splitlines() if not line.startswith("#")]
        if ended.returncode != 0 or not rows:
            raise RuntimeError("mpirun failed; see what it said above")
        return float(rows[0][1])

    return space, measure


def read_table(path: Path, space: lt.Space) -> Table:
    """The measurements so far."""
    table: Table = {space.at(number): [] for number in range(space.size or 0)}
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                table[space.at(int(row["number"]))].append(float(row["microseconds"]))
    return table


def record(path: Path, space: lt.Space, measure: Measure, rounds: int) -> Table:
    """Measure until every configuration has this many runs; in rounds, so that its runs are spread over time."""
    table = read_table(path, space)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(["number", *space.names, "microseconds"])
            file.flush()
        for wanted in range(1, rounds + 1):
            for number in np.random.default_rng(wanted).permutation(len(table)).tolist():
                config = space.at(number)
                if len(table[config]) < wanted:
                    table[config].append(measured(measure, config))
                    writer.writerow([number, *config.values(), table[config][-1]])
                    file.flush()
    return table


def measured(measure: Measure, config: lt.Config) -> float:
    """Microseconds of one run; NaN if it failed."""
    try:
        return measure(config)
    except RuntimeError:
        return math.nan


def medians(table: Table) -> dict[lt.Config, float]:
    """The time of each configuration; infinite if all runs failed."""
    good = {config: [value for value in runs if not math.isnan(value)] for config, runs in table.items()}
    return {config: statistics.median(values) if values else math.inf for config, values in good.items()}


def missed(table: Table, space: lt.Space, budget: int, seed: int) -> float:
    """Tune once from the table; return by how many percent the result is slower than the best configuration."""
    rng = np.random.default_rng(seed)
    result = lt.tune(lambda config: float(rng.choice(table[config])), space, budget=budget, seed=seed)
    true = medians(table)
    return 100.0 * (true[result.best.config] / min(true.values()) - 1.0)


def describe(table: Table, default: lt.Config) -> None:
    """Print a summary of the grid."""
    true = medians(table)
    best = min(true, key=true.__getitem__)
    near = sum(value <= (1.0 + CLOSE / 100.0) * true[best] for value in true.values())
    spreads = [np.subtract(*np.nanquantile(runs, [0.75, 0.25])) / true[config] for config, runs in table.items()]
    runs = min(map(len, table.values()))
    print(f"{len(table)} configurations, {runs} runs each; default {true[default]:.1f} µs")
    print(f"best {true[best]:.1f} µs: {', '.join(map(str, best.values()))}; within {CLOSE:g} % of it: {near}")
    print(f"the middle half of a configuration's runs spans {statistics.median(spreads):.0%} of its median")


def report(distances: Sequence[float]) -> str:
    """A summary of the distances."""
    close = sum(distance <= CLOSE for distance in distances)
    middle, worst = statistics.median(distances), max(distances)
    return f"{close} of {len(distances)} within {CLOSE:g} %, median {middle:.1f} %, worst {worst:.1f} %"


def main(words: Sequence[str] | None = None) -> int:
    """Measure, tune, print; the exit code is 1 if for some size most of the first seeds miss the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1k,64k,1M", help="message sizes in bytes per rank")
    parser.add_argument("--rounds", type=int, default=11, help="runs of every configuration")
    parser.add_argument("--budget", type=int, default=30, help="runs of one tuning")
    options = parser.parse_args(words)
    for program in ("mpirun", "mpicc"):
        if shutil.which(program) is None:
            print(f"not run: Open MPI ({program}) is not installed; as root: sh tests/services.sh")
            return 0
    RESULTS.mkdir(exist_ok=True)
    os.environ.update(SHARED)
    reached = True
    collbench = library("collbench")
    for size_bytes in (int(parse_quantity(size)[0]) for size in options.sizes.split(",")):
        print(f"{size_bytes} bytes, {RANKS} ranks", flush=True)
        space, measure = benchmark(collbench, size_bytes)
        table = record(RESULTS / f"allreduce-{size_bytes}.csv", space, measure, options.rounds)
        describe(table, space.default)
        distances = [missed(table, space, options.budget, seed) for seed in range(MANY)]
        print(f"seeds 0 to {FEW - 1}: {', '.join(f'{one:.1f}' for one in distances[:FEW])} %")
        print(f"{FEW} seeds: {report(distances[:FEW])}; {MANY} seeds: {report(distances)}", flush=True)
        reached = reached and statistics.median(distances[:FEW]) <= CLOSE
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
