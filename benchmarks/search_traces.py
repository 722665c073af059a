"""Whole searches of measured tables, run by run: what a rule that stops a search early is judged on.

    python -m benchmarks.search_traces --seeds 2

Every search runs to the end of its budget in virtual time, through luthier's engine. A run takes as long as it
measured; where higher is better, as long as the work of the default's run takes at that rate. Finished searches are
kept in `benchmarks/results/search_traces.jsonl` and skipped the next time.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks import tables
from luthier.engine.session import carry_on
from luthier.errors import LuthierError
from luthier.runners.replay import ReplayedRun, ReplayRunner
from luthier.space import Choice, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.store import open_store
from luthier.trial import Completed, Config, Failed

RESULTS = Path(__file__).resolve().parent / "results" / "search_traces.jsonl"
OPTIMIZERS = ("auto", "genetic", "random")
BUDGET = 100
SCALE = 0.1  # virtual seconds of a run of the default: long ones take many turns of the engine
TABLES = (
    "bdbc/all", "convolution/A100", "convolution/W6600", "dconvert/all", "dune/cells55", "hepnos/4n-1s-11p",
    "hsqldb/2.1.0", "iozone_fread/f1024", "kripke/16n_2000", "llvm/passes10", "lrzip/621", "lulesh/set4", "matmul/all",
    "nginx/env1", "openatom/water_128n", "pnpoly/3090", "postgresql/8.3.0", "sevenzip/all", "vpx/vp8-v1.8.0",
    "x264/encode", "testbed/sro/b", "testbed/sro/d", "testbed/sbb/bandwidth", "testbed/sbb/latency",
)  # fmt: skip
"""One or two tables of each data set, none with fewer than 100 configurations."""


@dataclass(frozen=True)
class Trace:
    """One search: for each run its trial, its value (None if it failed), its seconds and its configuration's mean."""

    table: str
    optimizer: str
    seed: int
    minimise: bool
    trials: Sequence[int]
    values: Sequence[float | None]
    costs_s: Sequence[float]
    true: Sequence[float]

    @property
    def name(self) -> tuple[str, str, int]:
        return self.table, self.optimizer, self.seed


def played(name: str, optimizer: str, seed: int, impact_first: str = "off") -> Trace:
    """Search a table once."""
    table = tables.load(name)
    space, replay = _space(table, seed), tables.Replay(table, seed)
    usual = table.true(table.point(space.default))
    if usual < 0.0:
        raise LuthierError(f"{name}: values below 0 are no times")

    def answer(config: Config, repeat: int, now_s: float) -> ReplayedRun:
        del repeat, now_s
        value = replay.run(table.point(config))
        if value is None:
            return ReplayedRun(SCALE, Failed("no number"))
        return ReplayedRun(SCALE * (value / usual if table.minimise else usual / value), value)

    experiment = Experiment(
        space=space,
        objectives=(Objective("returned", "minimize" if table.minimise else "maximize"),),
        optimizer=optimizer,
        impact_first=impact_first,
        seed=seed,
        budget=BUDGET,
        verify_pairs=0,
    )
    store = open_store("memory:")
    record = store.create(name, experiment.to_json(), 0.0)
    runner = ReplayRunner(answer)
    _, result = carry_on(store, record, experiment, runner, virtual_clock=runner.clock)
    return Trace(
        name, optimizer, seed, table.minimise,
        [run.trial for run in result.runs],
        [run.outcome.value if isinstance(run.outcome, Completed) else None for run in result.runs],
        [(run.duration_s or 0.0) * usual / SCALE for run in result.runs],
        [table.true(table.point(run.config)) for run in result.runs],
    )  # fmt: skip


def _space(table: tables.Table, seed: int) -> Space:
    """The grid of a table; where no default is known, any configuration that runs, drawn by the seed."""
    rng = np.random.default_rng(seed)
    runnable = [point for point in table.runs if not math.isnan(table.true(point))]
    default = table.default or runnable[int(rng.integers(len(runnable)))]
    return Space(
        *(
            Choice(name, list(values), default=values[at], ordered=tables.is_ordered(values))
            for (name, values), at in zip(table.parameters.items(), default, strict=True)
        )
    )


def recorded() -> list[Trace]:
    """The searches that were made."""
    if not RESULTS.exists():
        return []
    return [Trace(**json.loads(line)) for line in RESULTS.read_text().splitlines()]


def missing(names: Sequence[str], seeds: int) -> Iterator[tuple[str, str, int]]:
    """The searches that are still to be made."""
    known = {trace.name for trace in recorded()}
    every = ((name, how, seed) for seed in range(seeds) for name in names for how in OPTIMIZERS)
    return (one for one in every if one not in known)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    given = parser.parse_args()
    RESULTS.parent.mkdir(exist_ok=True)
    for name, optimizer, seed in list(missing(given.tables, given.seeds)):
        try:
            trace = played(name, optimizer, seed)
        except LuthierError as error:
            print(f"{name} {optimizer} {seed}: {error}", flush=True)
            continue
        with RESULTS.open("a") as file:
            file.write(json.dumps(asdict(trace)) + "\n")
        print(f"{name} {optimizer} {seed}: {len(trace.trials)} runs", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
