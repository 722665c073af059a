"""Resampling on noisy machines, in virtual time: the experiments of Robert's thesis (tables 5.11 to 5.18) and others.

    python -m benchmarks.noise --seeds 30 --jobs 2

Every rule tunes the same systems with the same search and the same stop rule. A row of the result is one experiment.
Finished rows are kept in `benchmarks/results/noise.csv` and skipped the next time.
"""

import argparse
import csv
import math
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from statistics import fmean, geometric_mean, median

import numpy as np

from benchmarks import tables
from luthier.engine.recommendation import best_of, winner_of
from luthier.engine.session import carry_on
from luthier.runners.replay import Answer, Answers, ReplayRunner
from luthier.space import Choice, Space
from luthier.spec import Experiment
from luthier.store import open_store
from luthier.trial import Completed, Config, Failed, Trial
from testbeds.noise import find_noise, fingerprint
from testbeds.testbed import NoisyTestbed, find_testbed

RESULTS = Path(__file__).resolve().parent / "results" / "noise.csv"
RECORDED = 16
_LEAST = 0.01  # percent: nearer than that is as good as there
STOP = "improvement < 5% over 15"
CONVOLUTION = (
    "block_size_x * block_size_y <= 1024",
    "use_padding == 0 or (use_shmem == 1 and block_size_x % 32 != 0)",
    "use_shmem == 0 or (block_size_x * tile_size_x + 14) * (block_size_y * tile_size_y + 14) * 4 <= 48 * 1024",
)
"""What its authors let the convolution kernel be: exactly the 4,362 of 10,240 configurations that were run."""
LEAST_RUNS = {"gp": 52, "auto": 46}  # what the longer rules make at least; `auto` then takes as long as EVADyR in all


@dataclass(frozen=True)
class Rule:
    """How often configurations run, what stands for their runs, and whether there is a least number of them.

    One that `knows` is told what each run would give on average; the run takes as long as ever. No rule can do better
    with the same search.
    """

    resample: str
    estimator: str = "mean"
    longer: bool = False
    knows: bool = False

    def stop(self, optimizer: str) -> str:
        """When the search ends."""
        return f"after {LEAST_RUNS[optimizer]} runs and {STOP}" if self.longer else STOP


RULES: Mapping[str, Rule] = {
    "none": Rule("once"),
    "static:2": Rule("static:2"),
    "static:3": Rule("static:3"),
    "static:5": Rule("static:5"),
    "static:10": Rule("static:10"),
    "sedr:10%": Rule("sedr:10%"),
    "sedr:30%": Rule("sedr:30%"),
    "evadyr": Rule("evadyr"),
    "auto": Rule("auto", "auto"),
    "auto, longer": Rule("auto", "auto", longer=True),
    "none, longer": Rule("once", longer=True),
    "evadyr, longer": Rule("evadyr", longer=True),
    "true values, longer": Rule("once", longer=True, knows=True),
}
"""The published rules use the mean, as published. `longer` spends on configurations what EVADyR spends on repeats."""


@dataclass(frozen=True)
class Machine:
    """Where a system runs: how its runs go, what they give on average, and the best that any configuration gives."""

    answers: Answers
    true: Callable[[Config], float]
    optimum: float

    def distance(self, config: Config) -> float:
        """Percent by which a configuration misses the optimum on average."""
        return 100.0 * abs(self.true(config) - self.optimum) / abs(self.optimum)

    def gain(self, config: Config, default: Config) -> float:
        """Percent of the default's average that a configuration saves, or loses if below 0."""
        best, found, usual = self.optimum, self.true(config), self.true(default)
        return 100.0 * (abs(usual - best) - abs(found - best)) / abs(usual)


@dataclass(frozen=True)
class System:
    """Something noisy to tune: `machine` makes the one of a seed.

    One that does not `count` is another way to measure one that does; means over all systems leave it out.
    """

    name: str
    group: str
    space: Space
    machine: Callable[[int], Machine]
    budget: int
    maximize: bool = False
    published: Mapping[str, tuple[float, float]] | None = None
    counts: bool = True


# Distance in percent and duration in seconds: tables 5.11 to 5.15 and 5.17 of the thesis.
PUBLISHED: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "every-60": {
        "none": (75.54, 1201), "static:3": (23.57, 2431), "static:5": (15.98, 1947),
        "sedr:10%": (53.99, 4304), "sedr:30%": (309.31, 2241), "evadyr": (5.81, 2046),
    },
    "every-120": {
        "none": (319.92, 1080), "static:3": (30.92, 1411), "static:5": (27.37, 1844),
        "sedr:10%": (112.4, 3132), "sedr:30%": (308.15, 1994), "evadyr": (4.27, 1557),
    },
    "every-300": {
        "none": (66.25, 827), "static:3": (38.65, 1212), "static:5": (2.84, 1632),
        "sedr:10%": (28.21, 1621), "sedr:30%": (205.76, 2015), "evadyr": (2.57, 1311),
    },
    "storage": {
        "none": (12.9, 5729), "static:2": (8.19, 8925), "static:5": (6.86, 17948), "static:10": (6.71, 28205),
        "sedr:10%": (11.57, 30601), "sedr:30%": (6.64, 15658), "evadyr": (5.0, 6566),
    },
}  # fmt: skip


def systems() -> Iterator[System]:
    """The thesis' four experiments, the same systems under other noise, and the measured tables that have repeats."""
    for noise in ("every-60", "every-120", "every-300"):
        yield _simulated("sro/hotspots", noise, "SRO", 100)
    yield _recorded("sbb/ior", "storage", "SBB", 160)
    yield _simulated("sbb/ior", "storage", "other noise", 160)
    for name, noise in (("sro/hotspots", "random"), ("sro/b", "pareto"), ("sbb/bandwidth", "cluster")):
        yield _simulated(name, noise, "other noise", 100)
    known = set(tables.names())
    for name in ("convolution/A100", "convolution/A4000", "convolution/MI250X", "convolution/W6600"):
        if name in known:
            yield _measured(name, 100, CONVOLUTION)
    for name in ("iozone_fread/f64", "iozone_fread/f256", "iozone_fread/f1024"):
        if name in known:
            yield _measured(name, 100)


def _simulated(name: str, noise: str, group: str, budget: int) -> System:
    testbed = find_testbed(name)
    best = float(testbed.table().min())

    def machine(seed: int) -> Machine:
        return Machine(NoisyTestbed(testbed, find_noise(noise), seed=seed).answer, testbed.seconds, best)

    published = PUBLISHED.get(noise) if group == "SRO" else None
    return System(f"{name} {noise}", group, testbed.space, machine, budget, published=published)


def _recorded(name: str, noise: str, group: str, budget: int) -> System:
    """The way of section 5.5.2 of the thesis: every configuration has run 16 times, and a run is one of these.

    Their mean is what a configuration gives on average. Every seed has a recording of its own.
    """
    testbed = find_testbed(name)
    configs = testbed.grid.configs(testbed.grid.grid())

    def machine(seed: int) -> Machine:
        run = NoisyTestbed(testbed, find_noise(noise), seed=seed).answer
        runs = {config: [run(config, number, 0.0) for number in range(RECORDED)] for config in configs}
        means = {config: fmean(each.duration_s for each in runs[config]) for config in configs}

        def answer(config: Config, repeat: int, now_s: float) -> Answer:
            del now_s
            return runs[config][np.random.default_rng([seed, fingerprint(config), repeat, 1]).integers(RECORDED)]

        return Machine(answer, means.__getitem__, min(means.values()))

    return System(
        f"{name} recorded", group, testbed.grid, machine, budget, published=PUBLISHED.get(noise), counts=False
    )


def _measured(name: str, budget: int, constraints: Sequence[str] = ()) -> System:
    """A table with repeats; a run takes as long as it measured, or a second where it measured something else."""
    table = tables.load(name)
    parameters = [Choice(p, list(v), ordered=tables.is_ordered(v)) for p, v in table.parameters.items()]

    def machine(seed: int) -> Machine:
        def answer(config: Config, repeat: int, now_s: float) -> Answer:
            del now_s
            point = table.point(config)
            runs = [value for value in table.runs_at(point) if not math.isnan(value)]
            if not runs:
                return Answer(0.0, Failed("never measured"))
            start = zlib.crc32(f"{seed}:{table.number(point)}".encode())
            value = runs[(start + repeat) % len(runs)]
            return Answer(value if table.minimise else 1.0, value)

        return Machine(answer, lambda config: table.true(table.point(config)), table.optimum())

    space = Space(*parameters, constraints=constraints)
    return System(name, "measured", space, machine, budget, maximize=not table.minimise)


@dataclass(frozen=True, slots=True)
class Row:
    """One experiment: `distance` is of the best estimate, `recommended` of what luthier recommends, in percent."""

    system: str
    rule: str
    optimizer: str
    seed: int
    distance: float
    recommended: float
    improvement: float
    steps: int
    uniques: int
    triggers: int
    duration_s: float


def play(system: System, rule: str, optimizer: str, seed: int) -> Row:
    """Tune a system once in virtual time."""
    how, machine = RULES[rule], system.machine(seed)
    answers = _true_values(machine) if how.knows else machine.answers
    experiment = Experiment(
        space=system.space,
        measure="returned",
        goal="maximize" if system.maximize else "minimize",
        optimizer=optimizer,
        options={} if optimizer == "auto" else {"initial": 10},
        seed=seed,
        budget=system.budget,
        resample=how.resample,
        estimator=how.estimator,
        stop=(how.stop(optimizer),),
        verify_pairs=0,
    )
    store = open_store("memory:")
    record = store.create(system.name, experiment.to_json(), 0.0)
    _, result = carry_on(store, record, experiment, lambda *_: ReplayRunner(answers), watch=lambda *_: None)
    trials = result.trials if not system.maximize else [_turned(trial) for trial in result.trials]
    lowest, winner = best_of(trials), winner_of(system.space, trials, result.estimator)
    if lowest is None or winner is None:
        raise RuntimeError(f"{system.name}: nothing was measured")
    runs = [run for run in result.runs if isinstance(run.outcome, Completed)]
    counts = Counter(run.trial for run in runs)
    best = trials[lowest].config
    return Row(
        system.name, rule, optimizer, seed,
        round(machine.distance(best), 4),
        round(machine.distance(trials[winner].config), 4),
        round(machine.gain(best, system.space.default), 3),
        len(result.runs), len(trials), sum(count > 1 for count in counts.values()),
        round(result.cost_s, 2),
    )  # fmt: skip


@cache
def _known_systems() -> Mapping[str, System]:
    """What a process that plays has to play with; made once."""
    return {system.name: system for system in systems()}


def _play_one(work: tuple[str, str, str, int]) -> Row:
    name, rule, optimizer, seed = work
    return play(_known_systems()[name], rule, optimizer, seed)


def _true_values(machine: Machine) -> Answers:
    """The same runs, but each gives what it would on average."""

    def answer(config: Config, repeat: int, now_s: float) -> Answer:
        noisy = machine.answers(config, repeat, now_s)
        return replace(noisy, result=machine.true(config)) if isinstance(noisy.result, float) else noisy

    return answer


def _turned(trial: Trial) -> Trial:
    """The trial with lower-is-better values."""
    outcomes = tuple(
        replace(each, value=-each.value) if isinstance(each, Completed) else each for each in trial.outcomes
    )
    estimate = None if trial.estimate is None else replace(trial.estimate, value=-trial.estimate.value)
    return replace(trial, outcomes=outcomes, estimate=estimate)


def read_rows(path: Path) -> list[Row]:
    """Every experiment that was played."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [_read(raw) for raw in csv.DictReader(file)]


def _read(raw: Mapping[str, str]) -> Row:
    return Row(
        raw["system"], raw["rule"], raw["optimizer"], int(raw["seed"]), float(raw["distance"]),
        float(raw["recommended"]), float(raw["improvement"]), int(raw["steps"]), int(raw["uniques"]),
        int(raw["triggers"]), float(raw["duration_s"]),
    )  # fmt: skip


def append_row(path: Path, row: Row) -> None:
    """Write down one experiment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(asdict(row))


COLUMNS = (
    "rule", "seeds", "distance % mean (median)", "recommended %", "published %", "gain %", "steps", "uniques",
    "triggers", "duration s", "published s",
)  # fmt: skip


def report(rows: Sequence[Row], chosen: Sequence[System], optimizer: str) -> None:
    """Print a table for every system, then the means of all, relative to EVADyR."""
    ratios: dict[str, list[tuple[float, float, float]]] = {rule: [] for rule in RULES}
    for system in chosen:
        mine = [row for row in rows if row.system == system.name and row.optimizer == optimizer]
        if not mine:
            continue
        print(f"\n## {system.name}, {optimizer}, budget {system.budget}")
        print("| " + " | ".join(COLUMNS) + " |\n" + "| --- " * len(COLUMNS) + "|")
        for rule in RULES:
            some = [row for row in mine if row.rule == rule]
            if some:
                _line(rule, some, (system.published or {}).get(rule))
            if some and system.counts:
                ratios[rule].append(
                    (
                        fmean(r.distance for r in some),
                        fmean(r.recommended for r in some),
                        fmean(r.duration_s for r in some),
                    )
                )
    _overall(ratios)


def _line(rule: str, rows: Sequence[Row], published: tuple[float, float] | None) -> None:
    def mean(name: str) -> float:
        return fmean(getattr(row, name) for row in rows)

    distance, duration = (f"{published[0]:.1f}", f"{published[1]:.0f}") if published else ("", "")
    print(
        f"| {rule} | {len(rows)} | {mean('distance'):.2f} ({median(row.distance for row in rows):.2f}) "
        f"| {mean('recommended'):.2f} | {distance} | {mean('improvement'):.1f} | {mean('steps'):.0f} "
        f"| {mean('uniques'):.0f} | {mean('triggers'):.0f} | {mean('duration_s'):.0f} | {duration} |"
    )


def _overall(ratios: Mapping[str, Sequence[tuple[float, float, float]]]) -> None:
    """Means over the systems that every rule has played, and each system in units of EVADyR's distance and duration.

    Ratios are averaged geometrically: each system counts the same, whatever the size of its distances.
    """
    base = ratios["evadyr"]
    print("\n## Over all systems; in the last three columns EVADyR's distance and duration are 1")
    print(
        "| rule | systems | distance % | recommended % | distance | recommended | duration |"
        + "\n"
        + "| --- " * 7
        + "|"
    )
    for rule, found in ratios.items():
        if found and len(found) == len(base):
            pairs = list(zip(found, base, strict=True))
            distance, model = fmean(each[0] for each in found), fmean(each[1] for each in found)
            shares = [
                geometric_mean(max(mine[at], _LEAST) / max(other[0], _LEAST) for mine, other in pairs) for at in (0, 1)
            ]
            duration = fmean(mine[2] / other[2] for mine, other in pairs)
            print(
                f"| {rule} | {len(found)} | {distance:.2f} | {model:.2f} | {shares[0]:.2f} | {shares[1]:.2f} "
                f"| {duration:.2f} |"
            )


def main(words: Sequence[str] | None = None) -> int:
    """Play what is left, then print the tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.noise", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=30, help="seeds 0 to N-1 (default 30)")
    parser.add_argument(
        "--optimizer",
        default="gp",
        choices=list(LEAST_RUNS),
        help="the search (default gp with 10 initial points, as published)",
    )
    parser.add_argument("--rules", default=";".join(RULES), help="separated by ; (default: all)")
    parser.add_argument("--systems", default="", help="only systems whose name holds this text")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file to go on with")
    parser.add_argument("--jobs", type=int, default=1, help="experiments at a time (default 1)")
    parser.add_argument("--report-only", action="store_true", help="play nothing")
    words_read = parser.parse_args(words)
    chosen = [system for system in systems() if words_read.systems in system.name]
    done = {(row.system, row.rule, row.optimizer, row.seed) for row in read_rows(words_read.results)}
    left = [
        work
        for seed in range(0 if words_read.report_only else words_read.seeds)
        for system in chosen
        for rule in words_read.rules.split(";")
        if (work := (system.name, rule, words_read.optimizer, seed)) not in done
    ]
    with ProcessPoolExecutor(words_read.jobs) as workers:
        for row in workers.map(_play_one, left, chunksize=4):
            append_row(words_read.results, row)
    report(read_rows(words_read.results), chosen, words_read.optimizer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
