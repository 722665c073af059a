"""Resampling on noisy machines, in virtual time: the experiments of Robert's thesis (tables 5.11 to 5.18) and others.

    python -m benchmarks.noise --seeds 30 --jobs 2

Every rule tunes the same systems with the same search and the same stop rule. A row of the result is one experiment.
Finished rows are kept in `benchmarks/results/noise.csv` and skipped the next time.
"""

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import fmean, geometric_mean, median

from benchmarks.noisy_systems import Machine, System, known_systems
from luthier.engine.session import carry_on
from luthier.result.recommendation import best_of, winner_of
from luthier.runners.replay import Answers, ReplayedRun, ReplayRunner
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.store import open_store
from luthier.trial import Completed, Config, Trial

RESULTS = Path(__file__).resolve().parent / "results" / "noise.csv"
_LEAST = 0.01  # percent: a smaller distance counts as this one
STOP = "improvement < 5% over 15"
LEAST_RUNS = {
    "gp": 52,
    "auto": 46,
}  # smallest number of runs of the longer rules, with which `auto` takes as long as EVADyR in total


@dataclass(frozen=True)
class Rule:
    """How often configurations run, the estimator for repeated runs, and whether there is a smallest number of runs.

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
        objectives=(Objective("returned", "maximize" if system.maximize else "minimize"),),
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
    runner = ReplayRunner(answers)
    _, result = carry_on(store, record, experiment, runner, virtual_clock=runner.clock)
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


def _play_one(work: tuple[str, str, str, int]) -> Row:
    name, rule, optimizer, seed = work
    return play(known_systems()[name], rule, optimizer, seed)


def _true_values(machine: Machine) -> Answers:
    """The same runs, but each gives what it would on average."""

    def answer(config: Config, repeat: int, now_s: float) -> ReplayedRun:
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
    """All finished experiments."""
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
    """Store one experiment."""
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
    """Run the missing experiments, then print the tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.noise", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=30, help="seeds 0 to N-1 (default 30)")
    parser.add_argument(
        "--optimizer",
        default="gp",
        choices=list(LEAST_RUNS),
        help="the search (default gp with 10 initial points, as published)",
    )
    parser.add_argument("--rules", default=";".join(RULES), help="separated by ; (default: all)")
    parser.add_argument("--systems", default="", help="only systems whose name contains this text")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the results file to continue")
    parser.add_argument("--jobs", type=int, default=1, help="experiments at a time (default 1)")
    parser.add_argument("--report-only", action="store_true", help="run no experiment")
    words_read = parser.parse_args(words)
    chosen = [system for system in known_systems().values() if words_read.systems in system.name]
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
