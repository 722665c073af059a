"""Whole searches on real applications, with and without an I/O kernel, with impact first and without it.

Each search goes on to the end of its budget, a few runs at a time in turns with the others, so that a machine that
becomes slower or faster changes all of them alike. What a stop rule would have done follows from the runs. In the end
the configurations that any of them would have chosen run on the whole application, in turns.
"""

import math
import os
import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.io_kernels import MPI
from benchmarks.learned_stop import Search
from luthier.engine.interrupts import Interrupts
from luthier.engine.loop import Situation
from luthier.engine.plan import Plan
from luthier.io.kernel import KernelOptions
from luthier.io.kernel_verification import BuiltProgram, build_from, run_words
from luthier.io.tuning import Prepared, Tuning, component_named, prepare
from luthier.launch import Launch, resume
from luthier.policies.base import Stop
from luthier.policies.learned import LearnedStop
from luthier.policies.stop import NoImprovement, NotWorthIt
from luthier.result.result import conclude
from luthier.store.base import ENDED
from luthier.trial import Completed, Config, Run

ROOT = Path(__file__).parents[1]
TURN = 8  # runs before it is the turn of the next search
ROUNDS = 3  # runs of each chosen configuration in the end
PAIRS = 3  # of default and best, that a tuning ends with


@dataclass(frozen=True)
class Application:
    """A program of `testbeds/io_apps`, how it is compiled and run, and the component with its settings."""

    name: str
    source: str
    compiler: str
    command: str
    component: str


APPLICATIONS = (
    Application("columns", "columns.c", "h5cc -shlib -O2 -lm", "{program} 700 256", "hdf5-serial"),
    Application("stencil", "stencil.c", "h5pcc -shlib -O2 -lm", "mpirun -n 2 {program} 512 400 10", "hdf5-parallel"),
)


@dataclass(frozen=True)
class Way:
    """A way to search: what runs, and how the search goes on."""

    name: str
    program: str
    impact_first: str = "off"
    optimizer: str = "genetic"


WAYS = (
    Way("application", "application"),
    Way("application, impact first", "application", "auto"),
    Way("kernel", "kernel"),
    Way("kernel, impact first", "kernel", "auto"),
    Way("kernel, impact first, auto", "kernel", "auto", "auto"),
    Way("reduced kernel, impact first", "reduced kernel", "auto"),
)


@dataclass(frozen=True)
class Whole:
    """A whole search: what preparing it took, its runs, and the configuration that is best after each of them."""

    way: Way
    ready_s: float
    ready_cpu_s: float
    runs: Sequence[Run]
    chosen: Sequence[Config]

    @property
    def costs_s(self) -> list[float]:
        """The seconds of each run."""
        return [run.duration_s or 0.0 for run in self.runs]

    @property
    def cpu_s(self) -> list[float]:
        """The seconds of CPU of each run."""
        return [run.metrics.get("user_s", 0.0) + run.metrics.get("system_s", 0.0) for run in self.runs]

    def stops(self, production_runs: int) -> Mapping[str, int]:
        """After how many runs each rule ends the search."""
        rules: dict[str, Stop] = {
            "learned": LearnedStop(production_runs, saves_seconds=True),
            "5 % over 5": NoImprovement(5, 0.05),
            "gain < cost": NotWorthIt(production_runs),
        }
        values = [run.outcome.value if isinstance(run.outcome, Completed) else None for run in self.runs]
        search = Search(self.way.name, [run.trial for run in self.runs], values, np.array(self.costs_s), np.zeros(0))
        last = {name: at + 1 for name, at in search.stops(rules).items()}
        return {**last, "no stop": len(self.runs)}


@dataclass(frozen=True)
class Measured:
    """What runs of the whole application took with one configuration: time in I/O, and in all; medians."""

    io_s: float
    wall_s: float
    cpu_s: float


class Turns:
    """Asks a search to pause after so many runs."""

    def __init__(self, launch: Launch) -> None:
        self._launch, self._first = launch, launch.record.runs

    def __call__(self, plan: Plan, now: Situation) -> None:
        """See how far it is."""
        del now
        if sum(run.outcome is not None for run in plan.runs) >= self._first + TURN:
            self._launch.store.request_stop(self._launch.record.id)


def searched(
    application: Application, ways: Sequence[Way], folder: Path, budget: int, seed: int
) -> tuple[list[Whole], Tuning]:
    """All searches of one application; the last value runs the application itself."""
    os.environ.update(MPI)
    words = run_words(application.command)
    program = BuiltProgram(build_from(application.compiler.split()), words)
    sources = [ROOT / "testbeds" / "io_apps" / application.source]
    options = {
        "kernel": KernelOptions(buffer_content="cut"),
        "reduced kernel": KernelOptions(buffer_content="cut", reduce=0.1),
    }
    component = component_named(str(ROOT / "examples" / "components" / f"{application.component}.yaml"), None)
    url, tunings, cpu_s = str(folder / "store.db"), dict[str, Tuning](), dict[str, float]()
    for name in dict.fromkeys(("application", *(way.program for way in ways))):
        began_s = _used_cpu_s()
        ready = prepare(sources, program, folder / name.replace(" ", "-"), options.get(name))
        cpu_s[name] = _used_cpu_s() - began_s
        print(f"{application.name}: {ready.sentence} ({ready.seconds:.1f} s)", flush=True)
        tunings[name] = Tuning(ready, words, component, url)
    launches = {}
    for way in ways:
        if way.program != "application" and tunings[way.program].prepared.kernel is None:
            continue
        settings = {"budget": budget, "seed": seed, "impact_first": way.impact_first, "optimizer": way.optimizer}
        launches[way.name] = tunings[way.program].search(settings, PAIRS)
    _in_turns(launches)
    named = {way.name: way for way in ways}
    wholes = [
        _whole(named[name], tunings[named[name].program].prepared, cpu_s[named[name].program], one)
        for name, one in launches.items()
    ]
    return wholes, tunings["application"]


def _in_turns(launches: dict[str, Launch]) -> None:
    """Run all searches to the end, a few runs of each at a time."""
    waiting = dict(launches)
    while waiting:
        for name, launch in list(waiting.items()):
            record, _ = launch.work(Turns(launch), Interrupts())
            if record.status in ENDED:
                del waiting[name]
            else:
                waiting[name] = resume(record.id, launch.url)


def _used_cpu_s() -> float:
    """The seconds of CPU of this process and of those that it has started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _whole(way: Way, ready: Prepared, cpu_s: float, launch: Launch) -> Whole:
    runs = [run for run in launch.store.runs(launch.record.id) if isinstance(run.outcome, Completed)]
    chosen = []
    for count in range(1, len(runs) + 1):
        winner = conclude(launch.experiment, runs[:count]).winner
        chosen.append(launch.experiment.space.default if winner is None else winner.config)
    return Whole(way, ready.seconds, cpu_s, runs, chosen)


def measured(tuning: Tuning, configs: Sequence[Config]) -> dict[Config, Measured]:
    """Run the whole application with the default and each of these, in turns."""
    found: dict[Config, list[Run]] = {}
    for number in range(ROUNDS):
        settings: dict[str, Any] = {"first": tuple(configs), "budget": 1 + len(configs), "resample": "once"}
        launch = tuning.search({**settings, "seed": number, "optimizer": "random"}, 0)
        _, result = launch.work(lambda *_: None, Interrupts())
        for run in result.runs:
            found.setdefault(run.config, []).append(run)
    return {config: _median(runs) for config, runs in found.items()}


def _median(runs: Sequence[Run]) -> Measured:
    known = [run for run in runs if isinstance(run.outcome, Completed)]
    if not known:
        return Measured(math.nan, math.nan, math.nan)
    io_s = median(run.outcome.value for run in known if isinstance(run.outcome, Completed))
    cpu_s = median(run.metrics.get("user_s", 0.0) + run.metrics.get("system_s", 0.0) for run in known)
    return Measured(io_s, median(run.duration_s or 0.0 for run in known), cpu_s)
