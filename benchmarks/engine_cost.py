"""The cost of luthier itself: CPU time of one run through the whole loop, of resuming, and of starting the program.

    python -m benchmarks.engine_cost

The tuned function returns at once and the search is random, so what remains is engine, runner and store. A command has
a supervisor of its own, a process whose CPU time is counted as well; the command is `true`, and what `true` costs
without luthier is measured beside it.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import luthier as lt
from luthier.engine.session import plan_of
from luthier.launch import LaunchRequest, create
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.spec.template import Template
from luthier.store import open_store

TRIALS = 2000
COMMANDS = 300
RESUMED = 5000
STARTS = 5


SPACE = lt.Space(lt.Integer("a", 1, 1000), lt.Integer("b", 1, 1000), lt.Choice("c", ["x", "y", "z"]))


def engine_ms(store: str) -> tuple[float, float]:
    """CPU and wall milliseconds per run of a Python function."""
    lt.tune(
        _value, SPACE, budget=20, optimizer="random", store=store
    )  # a warm-up: imports and the first file do not count
    cpu, wall = time.process_time(), time.perf_counter()
    lt.tune(_value, SPACE, budget=TRIALS, optimizer="random", store=store, verify_pairs=0)
    return (time.process_time() - cpu) / TRIALS * 1e3, (time.perf_counter() - wall) / TRIALS * 1e3


def resume_s(store: str, slots: int) -> float:
    """CPU seconds from a stored history of `RESUMED` runs to the next suggestions of `auto`, for every slot."""
    history = open_store(store)
    if not history.experiments():
        lt.tune(_value, SPACE, budget=RESUMED, optimizer="random", store=store, verify_pairs=0, resample="once")
    number = history.experiments()[0].id
    experiment = Experiment(
        space=SPACE, objectives=(Objective("returned"),), budget=2 * RESUMED, slots=slots, resample="once"
    )
    start = time.process_time()
    plan = plan_of(experiment)
    plan.replay(history.runs(number))
    if len(plan.orders(slots, 0.0)) != slots:
        raise RuntimeError("the resumed experiment has no orders")
    return time.process_time() - start


def _value(config: lt.Config) -> float:
    return float(config["a"]) + float(config["b"])


def command_ms(folder: Path, slots: int) -> tuple[float, float, float]:
    """CPU milliseconds of luthier, CPU milliseconds of its supervisors with their commands, and wall time, per run."""
    space = lt.Space(lt.Integer("a", 1, 1_000_000))
    command = Template(("true", "{a}"))
    spent = []
    for budget in (20, COMMANDS):  # the first is a warm-up
        experiment = Experiment(
            space=space,
            command=command,
            cwd=str(folder),
            budget=budget,
            slots=slots,
            optimizer="random",
            verify_pairs=0,
        )
        launch = create(LaunchRequest(experiment, "cost", str(folder / "cost.db")))
        before = (_cpu_s(resource.RUSAGE_SELF), _cpu_s(resource.RUSAGE_CHILDREN), time.perf_counter())
        launch.work(lambda *_: None)
        after = (_cpu_s(resource.RUSAGE_SELF), _cpu_s(resource.RUSAGE_CHILDREN), time.perf_counter())
        spent = [(one - other) / budget * 1e3 for one, other in zip(after, before, strict=True)]
    return spent[0], spent[1], spent[2]


def bare_ms() -> float:
    """CPU milliseconds of the same command, started by Python."""
    before = _cpu_s(resource.RUSAGE_CHILDREN)
    for _ in range(COMMANDS):
        subprocess.run(["true", "1"], check=True)
    return (_cpu_s(resource.RUSAGE_CHILDREN) - before) / COMMANDS * 1e3


def _cpu_s(who: int) -> float:
    spent = resource.getrusage(who)
    return spent.ru_utime + spent.ru_stime


def start_s(*arguments: str) -> float:
    """CPU seconds of one start of Python with these arguments, the median of a few."""
    spent = []
    for _ in range(STARTS):
        before = _cpu_s(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        spent.append(_cpu_s(resource.RUSAGE_CHILDREN) - before)
    return statistics.median(spent)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        for label, store in (("memory", "memory:"), ("SQLite", str(Path(folder) / "cost.db"))):
            cpu, wall = engine_ms(store)
            print(f"engine, {label}: {cpu:.2f} ms CPU, {wall:.2f} ms wall per run of a function")
        for slots in (1, 128):
            spent_s = resume_s(str(Path(folder) / "resume.db"), slots)
            print(f"resume of auto after {RESUMED} runs, {slots} slots: {spent_s:.1f} s CPU until the next suggestions")
        os.environ["XDG_DATA_HOME"] = folder  # the files of the runs
        for slots in (1, 2):
            own, children, wall = command_ms(Path(folder), slots)
            print(
                f"command, SQLite, {slots} slots: {own:.1f} ms CPU of luthier, {children:.1f} ms of its supervisor and "
                f"the command, {own + children:.1f} ms together; {wall:.0f} ms wall per run"
            )
    print(f"the same command without luthier: {bare_ms():.2f} ms CPU")
    print(f"python -c pass: {start_s('-c', 'pass'):.3f} s CPU")
    print(f"import luthier: {start_s('-c', 'import luthier'):.3f} s CPU")
    for arguments in (["--help"], ["tune", "--help"], ["list"]):
        print(f"luthier {' '.join(arguments)}: {start_s('-m', 'luthier', *arguments):.3f} s CPU")


if __name__ == "__main__":
    main()
