"""When to stop a search: the learned rule against fixed ones.

    python -m benchmarks.search_traces --seeds 2     # real searches of measured tables, once
    python -m benchmarks.learned_stop

Net gain is the time saved in so many production runs, compared with the default, minus the time of the search, both
with the true times of the configurations. The best achievable one is that of somebody who knows the whole search
beforehand and stops at its best moment. RoTI is the gain divided by the time of the search.
"""

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np

from benchmarks.heldout_curves import heldout
from benchmarks.search_traces import OPTIMIZERS, Trace, recorded
from benchmarks.stop_curves import Curve
from luthier.arrays import FloatArray
from luthier.policies.base import Progress, Stop
from luthier.policies.learned import LearnedStop
from luthier.policies.stop import NoImprovement, NotWorthIt
from luthier.trial import Completed, Config, Estimate, Failed, Trial

PRODUCTION_RUNS = (30, 100, 300, 1000, 3000, 10_000)
ROTI_FOR = (100, 1000)
RULES = ("learned", "5 % over 5", "gain < cost", "no stop")


@dataclass(frozen=True)
class Search:
    """A whole search: what happened in each run, and the true time of the best configuration after it; default: 1."""

    name: str
    trials: Sequence[int]
    values: Sequence[float | None]
    costs: FloatArray
    chosen: FloatArray

    def net_gain(self, production_runs: int) -> FloatArray:
        """After each run."""
        gains: FloatArray = production_runs * (1.0 - self.chosen) - np.cumsum(self.costs)
        return gains

    def roti(self) -> FloatArray:
        """After each run."""
        rates: FloatArray = (1.0 - self.chosen) / np.cumsum(self.costs)
        return rates

    def stops(self, rules: Mapping[str, Stop]) -> dict[str, int]:
        """The last run when each rule ends the search."""
        found: dict[str, int] = {}
        known: dict[int, list[float]] = {}
        trials: list[Trial] = []
        for at, (number, value) in enumerate(zip(self.trials, self.values, strict=True)):
            if value is not None:
                known.setdefault(number, []).append(value)
            values = known.get(number, [])
            outcomes = tuple(map(Completed, values)) or (Failed("no number"),)
            trial = Trial(Config({}), outcomes, Estimate(median(values), len(values)) if values else None)
            trials = [*trials[:number], trial, *trials[number + 1 :]]
            progress = _progress(trials, self.trials[: at + 1], self.costs[: at + 1], len(self.trials))
            for name, rule in rules.items():
                if name not in found and rule(progress) is not None:
                    found[name] = at
            if len(found) == len(rules):
                break
        return {name: found.get(name, len(self.trials) - 1) for name in rules}


def _progress(trials: Sequence[Trial], steps: Sequence[int], costs: FloatArray, budget: int) -> Progress:
    return Progress(trials, None, [], steps, 0, budget, 0.0, costs.tolist())


def from_curve(curve: Curve) -> Search:
    """A search where each run is another configuration."""
    values = [None if math.isnan(value) else float(value) for value in curve.measured]
    return Search("made up", list(range(len(values))), values, curve.cost, curve.chosen())


def from_trace(trace: Trace) -> Search | None:
    """A search of a table; None if its default failed."""
    usual = trace.true[0]
    if trace.values[0] is None or not usual > 0.0:
        return None
    sign = 1.0 if trace.minimise else -1.0
    values = [None if value is None else sign * value / usual for value in trace.values]
    known: dict[int, list[float]] = {}
    chosen = []
    for number, value in zip(trace.trials, values, strict=True):
        if value is not None:
            known.setdefault(number, []).append(value)
        best = min(known, key=lambda one: median(known[one]))
        true = trace.true[trace.trials.index(best)] / usual
        chosen.append(true if trace.minimise else 1.0 / true)
    costs = np.array(trace.costs_s) / usual
    return Search(f"{trace.table} {trace.optimizer}", trace.trials, values, costs, np.array(chosen))


@dataclass(frozen=True)
class Row:
    """One search with one number of production runs: the best achievable net gain, and the result of each rule."""

    name: str
    best: float
    best_roti: float
    gains: Mapping[str, float]
    rotis: Mapping[str, float]
    runs: Mapping[str, int]

    def is_as_good_as(self, *others: str) -> bool:
        """Whether the learned rule is not worse than any of these."""
        other = max(self.gains[name] for name in others)
        return self.gains["learned"] >= other - 1e-9 * abs(other)


def judged(search: Search, production_runs: int) -> Row:
    """Play all rules on one search."""
    rules: dict[str, Stop] = {
        "learned": LearnedStop(production_runs),
        "5 % over 5": NoImprovement(5, 0.05),
        "gain < cost": NotWorthIt(production_runs),
    }
    at = {**search.stops(rules), "no stop": len(search.trials) - 1}
    gains, rates = search.net_gain(production_runs), search.roti()
    return Row(
        search.name,
        float(gains.max()),
        float(rates.max()),
        {name: float(gains[stop]) for name, stop in at.items()},
        {name: float(rates[stop]) for name, stop in at.items()},
        {name: stop + 1 for name, stop in at.items()},
    )


def report(title: str, searches: Sequence[Search]) -> None:
    """Print the table for a set of searches."""
    print(f"\n{title}: {len(searches)} searches")
    heads = "".join(f"{name:>13}" for name in RULES)
    print(
        "share of the best achievable net gain, in sum; how often learned is at least as good as others; when it stops"
    )
    print(f"{'runs':>8}{heads}   as 5 % over 5   as no stop    as both   stops after")
    for count in PRODUCTION_RUNS:
        rows = [judged(search, count) for search in searches]
        possible = sum(row.best for row in rows)
        shares = "".join(f"{_percent(sum(row.gains[name] for row in rows), possible):>13}" for name in RULES)
        fixed = ("5 % over 5", "no stop")
        five, none, both = (fmean(row.is_as_good_as(*names) for row in rows) for names in (fixed[:1], fixed[1:], fixed))
        stops = median(row.runs["learned"] for row in rows)
        print(f"{count:>8}{shares}{five:>16.0%}{none:>13.0%}{both:>11.0%}{stops:>14.0f}")
        if count in ROTI_FOR:
            peak = sum(row.best_roti for row in rows)
            shares = "".join(f"{_percent(sum(row.rotis[name] for row in rows), peak):>13}" for name in RULES)
            print(f"{'RoTI':>8}{shares}")


def _percent(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole > 0.0 else "-"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curves", type=int, default=300)
    parser.add_argument("--seed", type=int, default=2024)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    report("searches held back from training", [from_curve(heldout(rng)) for _ in range(given.curves)])
    traces = recorded()
    real = [(trace, search) for trace in traces if (search := from_trace(trace)) is not None]
    if not real:
        print("no real searches; make them with: python -m benchmarks.search_traces")
        return 0
    report("real searches of measured tables", [search for _, search in real])
    for optimizer in OPTIMIZERS:
        report(f"of these, by {optimizer}", [search for trace, search in real if trace.optimizer == optimizer])
    return 0


if __name__ == "__main__":
    sys.exit(main())
