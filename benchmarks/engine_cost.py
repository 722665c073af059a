"""The cost of luthier itself: CPU time of one trial through the whole loop with SQLite, and of starting the program.

    python -m benchmarks.engine_cost

The tuned function returns at once and the search is random, so what remains is engine, runner and store.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import luthier as lt

TRIALS = 2000
STARTS = 5


def engine_ms(store: str) -> tuple[float, float]:
    """CPU and wall milliseconds per trial."""
    space = lt.Space(lt.Integer("a", 1, 1000), lt.Integer("b", 1, 1000), lt.Choice("c", ["x", "y", "z"]))
    lt.tune(
        _value, space, budget=20, optimizer="random", store=store
    )  # a warm-up: imports and the first file do not count
    cpu, wall = time.process_time(), time.perf_counter()
    lt.tune(_value, space, budget=TRIALS, optimizer="random", store=store, verify_pairs=0)
    return (time.process_time() - cpu) / TRIALS * 1e3, (time.perf_counter() - wall) / TRIALS * 1e3


def _value(config: lt.Config) -> float:
    return float(config["a"]) + float(config["b"])


def start_s(*arguments: str) -> float:
    """CPU seconds of one start of Python with these arguments, the median of a few."""
    spent = []
    for _ in range(STARTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(spent)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        for label, store in (("memory", "memory:"), ("SQLite", str(Path(folder) / "cost.db"))):
            cpu, wall = engine_ms(store)
            print(f"engine, {label}: {cpu:.2f} ms CPU, {wall:.2f} ms wall per trial")
    print(f"python -c pass: {start_s('-c', 'pass'):.3f} s CPU")
    print(f"import luthier: {start_s('-c', 'import luthier'):.3f} s CPU")
    for arguments in (["--help"], ["tune", "--help"], ["list"]):
        print(f"luthier {' '.join(arguments)}: {start_s('-m', 'luthier', *arguments):.3f} s CPU")


if __name__ == "__main__":
    main()
