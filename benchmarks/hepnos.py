"""The HEPnOS experiments (Dorier et al. 2022) replayed in virtual time, on a stand-in fitted to what they measured.

    python -m benchmarks.hepnos [--setups 4n-2s-20p,8n-2s-20p] [--methods RAND,auto,TL-auto] [--repetitions 5]
    python -m benchmarks.hepnos --check        # the stand-in on rows it was not fitted to, and the published metrics

One virtual hour with 32, 16 or 8 workers. An evaluation costs the measured overhead beside its run time, a time-out
what time-outs cost on Theta, and a suggestion its real CPU time. TL-... is the same search after its own search of the
setup before in the published chain. Values are a model's, not measured ones. Finished searches are kept in
`benchmarks/results/hepnos.jsonl`, and are not repeated.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from statistics import fmean
from typing import TypedDict

import numpy as np

from benchmarks import install, tables
from benchmarks.batch_peers import PEERS, BatchPeer
from benchmarks.hepnos_metrics import HOUR_S, Results, best_after_an_hour, scores
from benchmarks.hepnos_standin import LIMIT_S, WORKERS, StandIn, held_out, measured, space_of
from benchmarks.virtual_time import Evaluation, OptimizerPlayer, Player, simulate, trial_of, utilisation
from luthier.optimizers import make_optimizer
from luthier.space import Space
from luthier.transfer.lessons import earlier_from
from luthier.trial import Config, Failed, Outcome, TimedOut, Trial, Value

RESULTS = Path(__file__).parent / "results" / "hepnos.jsonl"
METHODS = ("RAND", "forest-lcb", "forest", "auto", "TL-forest", "TL-auto", "TL-auto:vae")

PUBLISHED_RAND_S = {
    "4n-1s-11p": 9.98,
    "4n-2s-16p": 16.49,
    "4n-2s-20p": 18.39,
    "8n-2s-20p": 32.52,
    "16n-2s-20p": 50.53,
}
"""What RAND really reached in an hour, the mean of five runs."""

FIGURE_5 = ("4n-2s-20p", "8n-2s-20p")
"""The setups of figure 5, whose stand-in knows RAND's completed evaluations only, as published."""


@cache
def stand_in(setup: str) -> StandIn:
    """The stand-in of a setup, fitted to all of its rows; that of `SETUP/figure5` to those of RAND that completed."""
    name, _, figure = setup.partition("/")
    rows = measured(name)
    if figure:
        return StandIn(name, [row for row in rows if row.method == "RAND" and row.status == "ok"], is_plain=True)
    return StandIn(name, rows)


def before(setup: str) -> str | None:
    """The setup that this one learns from."""
    chain = [f"{one}/figure5" for one in FIGURE_5] if "/" in setup else list(WORKERS)
    at = chain.index(setup)
    return chain[at - 1] if at else None


class LogUniform:
    """RAND as published: sizes are drawn log-uniformly (luthier's `random` draws every value equally often)."""

    def __init__(self, space: Space, *, seed: int) -> None:
        self._space, self._rng = space, np.random.default_rng(seed)

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Draw configurations; in a space as large as this, none comes twice."""
        del running
        return self._space.configs(self._space.from_unit(self._rng.random((count, len(self._space.names)))))

    def tell(self, finished: Sequence[Trial]) -> None:
        """Nothing is learned."""


def player_of(method: str, space: Space, seed: int, earlier: Sequence[Trial]) -> Player:
    """RAND, an optimizer of luthier, `TL-NAME[:KIND]` after `earlier`, or a peer."""
    if method in PEERS:
        return BatchPeer(install.interpreter(method.partition(":")[0]), method, space, seed=seed)
    name, _, kind = method.removeprefix("TL-").partition(":")
    if method.startswith("TL-"):
        learned = earlier_from([earlier], space, kind or "auto")
        return OptimizerPlayer(make_optimizer(name, space, seed=seed, earlier=learned))
    if method == "RAND":
        return OptimizerPlayer(LogUniform(space, seed=seed))
    return OptimizerPlayer(make_optimizer(name, space, seed=seed))


class Kept(TypedDict):
    """A finished search as it is kept; an evaluation has its values, its result, and when it started and ended."""

    setup: str
    method: str
    repetition: int
    workers: int
    evaluations: list[tuple[list[Value], float | str, float, float]]


class Replay:
    """Runs searches of one virtual hour, and keeps what they gave in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[tuple[str, str, int, int], Kept] = {}
        for line in path.read_text().splitlines() if path.exists() else []:
            search: Kept = json.loads(line)
            self._kept[search["setup"], search["method"], search["repetition"], search["workers"]] = search

    def search(self, setup: str, method: str, repetition: int, workers: int) -> list[Evaluation]:
        """The evaluations of one search."""
        key = setup, method, repetition, workers
        if key not in self._kept:
            rows = [_row(one) for one in self._run(*key)]
            kept: Kept = {
                "setup": setup,
                "method": method,
                "repetition": repetition,
                "workers": workers,
                "evaluations": rows,
            }
            self._path.parent.mkdir(exist_ok=True)
            with self._path.open("a") as file:
                file.write(json.dumps(kept) + "\n")
            self._kept[key] = kept
        return [_evaluation(space_of(setup.partition("/")[0]), row) for row in self._kept[key]["evaluations"]]

    def _run(self, setup: str, method: str, repetition: int, workers: int) -> list[Evaluation]:
        past: list[Trial] = []
        source = before(setup)
        if method.startswith("TL-") and source is not None:
            name = method.removeprefix("TL-").partition(":")[0]
            done = self.search(source, name, repetition, workers if "/" in setup else WORKERS[source])
            past = [trial_of(one) for one in done if one.ended_s <= HOUR_S]
        player = player_of(method, space_of(setup.partition("/")[0]), repetition, past)
        try:
            return simulate(player, partial(stand_in(setup).answer, repetition=repetition), workers, horizon_s=HOUR_S)
        finally:
            if isinstance(player, BatchPeer):
                player.close()


def _row(one: Evaluation) -> tuple[list[Value], float | str, float, float]:
    problem = "timeout" if isinstance(one.result, TimedOut) else "failed"
    return list(one.config.values()), problem if one.value is None else one.value, one.started_s, one.ended_s


def _evaluation(space: Space, row: tuple[list[Value], float | str, float, float]) -> Evaluation:
    values, result, started_s, ended_s = row
    outcomes: dict[str, Outcome] = {"timeout": TimedOut("300 s", at_least=LIMIT_S), "failed": Failed("exit code 1")}
    ended = outcomes[result] if isinstance(result, str) else result
    return Evaluation(Config(dict(zip(space.names, values, strict=True))), ended, started_s, ended_s)


def results_of(evaluations: Sequence[Evaluation]) -> Results:
    """When results came within the hour, in order of time."""
    return sorted((one.ended_s, one.value) for one in evaluations if one.value is not None and one.ended_s <= HOUR_S)


HEADER = (
    "| setup | method | workers | evaluations | timed out, failed | best, s | E[R], s | S | S, all started "
    "| the same, published RAND | busy |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def line(setup: str, method: str, workers: int, searches: Sequence[Sequence[Evaluation]], target: float) -> str:
    """One row of the table; `target` is what RAND has after an hour."""
    runs = [results_of(search) for search in searches]
    found = scores(runs, target)
    fair = scores(runs, PUBLISHED_RAND_S.get(setup, target)).speedup_all_started
    ended = [one for search in searches for one in search if one.ended_s <= HOUR_S]
    bad = sum(one.value is None for one in ended)
    busy = fmean(utilisation(search, workers, HOUR_S) for search in searches)
    speedups = " | ".join("-" if one is None or method == "RAND" else f"{one:.1f}" for one in (*found.speedups, fair))
    return (
        f"| {setup} | {method} | {workers} | {len(ended) / len(searches):.0f} | {bad / len(ended):.0%} "
        f"| {found.best:.2f} | {found.expected:.2f} | {speedups} | {100.0 * busy:.1f} % |"
    )


def compare(replay: Replay, setups: Sequence[str], methods: Sequence[str], repetitions: int, workers: int = 0) -> None:
    """Print a row for every setup and method."""
    print(HEADER)
    for setup in setups:
        slots = workers or WORKERS[setup]
        numbers = range(1, repetitions + 1)
        target = best_after_an_hour([results_of(replay.search(setup, "RAND", at, slots)) for at in numbers])
        for method in methods:
            if method.startswith("TL-") and before(setup) is None:
                continue
            searches = [replay.search(setup, method, at, slots) for at in numbers]
            print(line(setup, method, slots, searches, target), flush=True)


def check() -> None:
    """Print the errors of the stand-ins, and the published searches by the metrics of this benchmark."""
    print("| setup | rows | R² of log time | median error | error, fastest tenth | time-outs, AUC | S at most |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for setup in WORKERS:
        rows = measured(setup)
        error = held_out(setup, rows)
        fine = [row for row in rows if row.status == "ok"]
        fastest_s = min(row.overhead_s for row in fine) + min(row.runtime_s for row in fine)
        print(
            f"| {setup} | {len(rows)} | {error.explained:.2f} | {error.error:.1%} | {error.fast_error:+.1%} "
            f"| {error.timeouts_told:.2f} | {HOUR_S / fastest_s:.0f} |",
            flush=True,
        )
    print("\n| setup | method | best, s | E[R], s | S | S, all started |\n| --- | --- | --- | --- | --- | --- |")
    for setup in WORKERS:
        runs: dict[str, dict[int, list[tuple[float, float]]]] = {}
        for row in measured(setup):
            if row.status == "ok":
                runs.setdefault(row.method, {}).setdefault(row.repetition, []).append((row.ended_s, row.runtime_s))
        target = best_after_an_hour(list(runs["RAND"].values()))
        for method in ("RAND", "RF", "TL-RF"):
            if method in runs:
                found = scores([sorted(run) for run in runs[method].values()], target)
                speedups = " | ".join("-" if one is None else f"{one:.1f}" for one in found.speedups)
                print(f"| {setup} | {method} | {found.best:.2f} | {found.expected:.2f} | {speedups} |")


def main(words: Sequence[str] | None = None) -> int:
    """Replay and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.hepnos", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--setups", default=",".join(WORKERS), help="default: all five")
    parser.add_argument("--methods", default=",".join(METHODS), help=f"default {','.join(METHODS)}")
    parser.add_argument("--repetitions", type=int, default=5, help="default 5")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where finished searches are kept")
    parser.add_argument("--check", action="store_true", help="how good the stand-ins are, and nothing else")
    parser.add_argument("--figure5", action="store_true", help="one and ten workers, no overhead and no failures")
    chosen = parser.parse_args(words)
    if not (tables.data_folder() / "hepnos").is_dir():
        print(f"not run: {tables.data_folder()} has no folder hepnos; LUTHIER_DATA names the folder")
        return 0
    if chosen.check:
        check()
        return 0
    replay, methods = Replay(chosen.results), chosen.methods.split(",")
    if chosen.figure5:
        for workers in (1, 10):
            compare(replay, [f"{setup}/figure5" for setup in FIGURE_5], methods, chosen.repetitions, workers)
        return 0
    compare(replay, chosen.setups.split(","), methods, chosen.repetitions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
