"""Tune a collective of Open MPI for one message size after the other, and write a rules file with the result.

    make -C native
    python examples/openmpi/sweep.py bcast -n 4 --sizes 1k,16k,256k -o rules.conf

What was best for one size is tried first for the next one. A size gets a rule if its winner beats Open MPI's own
decision when both run in turns. Ctrl-C ends the search for one size and goes on with the next.
"""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import luthier as lt
from luthier.analysis.open_mpi import (
    ALGORITHMS,
    PREFIX,
    RULES_FILE,
    SWITCH,
    Rule,
    ignored_settings,
    rule_of,
    rules_text,
)
from luthier.analysis.transfer import best_configs
from luthier.errors import InvalidInputError, NotFoundError
from luthier.space import parse_quantity
from luthier.spec.component import read_components
from luthier.spec.grids import parameter_of
from luthier.spec.script import JobScript

HERE = Path(__file__).resolve().parent
COLLBENCH = HERE.parents[1] / "build" / "native" / "collbench"

Measure = Callable[[lt.Config], float]


@dataclass(frozen=True)
class Options:
    """What is tuned, and with how many runs."""

    collective: str
    ranks: int
    budget: int
    seed: int
    collbench: Path

    def script(self, size_bytes: int) -> str:
        """The command that measures messages of one size, for long enough that scheduling has little influence."""
        program = shlex.quote(str(self.collbench))
        calls = 5000 * 8192 // (8192 + size_bytes) + 100  # some tenths of a second
        return f"mpirun -n {self.ranks} {program} {self.collective} -m {size_bytes} -r {calls} -w 20"


def benchmark(options: Options, size_bytes: int) -> tuple[lt.Space, Measure]:
    """The configurations of a collective, and a function that runs one and returns its microseconds."""
    component = read_components(HERE / f"{options.collective}.yaml")[options.collective]
    tuned = [parameter_of(name, one, one) for name, one in component.parameters.items() if one.given]
    space = lt.Space(*tuned, constraints=component.constraints)
    job = JobScript(component, options.script(size_bytes))

    def measure(config: lt.Config) -> float:
        words, variables = job.render(space, config)
        environment = {**os.environ, **variables}
        ended = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        rows = [line.split() for line in ended.stdout.splitlines() if not line.startswith("#")]
        if ended.returncode != 0 or not rows:
            raise RuntimeError("mpirun failed; see what it said above")
        return float(rows[0][1])

    return space, measure


def sweep(options: Options, sizes: list[int]) -> list[Rule]:
    """The rules for the sizes for which a configuration is better than the decision of Open MPI."""
    best: list[lt.Config] = []
    rules = []
    for size_bytes in sorted(set(sizes)):
        space, measure = benchmark(options, size_bytes)
        result = lt.tune(measure, space, budget=options.budget, seed=options.seed, first=best)
        best = best_configs(result)
        chosen = result.best.config if result.improved else space.default
        rules.append(rule_of(options.collective, options.ranks, size_bytes, chosen))
        words = ", ".join(str(value) for value in result.best.config.values())
        gain = f"{result.speedup:.2f} times as fast" if result.improved else "no better than the default"
        print(f"{size_bytes:>9} bytes: {words}: {gain}", flush=True)
    return rules


def check(options: Options, output: Path) -> None:
    """Raise if tuning is not possible here."""
    if options.ranks < 2:
        raise InvalidInputError(f"-n: {options.ranks} ranks have nothing to send; give 2 or more")
    if not options.collbench.is_file():
        raise NotFoundError(f"there is no {options.collbench}; build it with: make -C native")
    if not output.parent.is_dir():
        raise NotFoundError(f"-o: there is no folder {output.parent}; make it first")
    forced = {SWITCH: "1", f"{PREFIX}{options.collective}_algorithm": "1"}
    for line in ignored_settings({**os.environ, **forced}):
        raise InvalidInputError(f"{line}; unset what the environment says")


def main() -> int:
    """Read the command line, tune, write the rules."""
    parser = argparse.ArgumentParser(description="Tune a collective of Open MPI for several message sizes.")
    parser.add_argument("collective", choices=sorted(ALGORITHMS))
    parser.add_argument("-n", "--ranks", type=int, default=4)
    parser.add_argument("--sizes", default="1k,16k,256k", help="message sizes in bytes per rank, such as 1k,16k")
    parser.add_argument("--budget", type=int, default=40, help="runs for each size, including the verification")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--collbench", type=Path, default=COLLBENCH)
    parser.add_argument("-o", "--output", type=Path, default=Path("rules.conf"))
    given = parser.parse_args()
    options = Options(given.collective, given.ranks, given.budget, given.seed, given.collbench)
    try:
        check(options, given.output)
        sizes = [int(parse_quantity(size)[0]) for size in given.sizes.split(",")]
        rules = sweep(options, sizes)
        given.output.write_text(rules_text(rules), encoding="utf-8")
    except lt.LuthierError as error:
        sys.exit(f"sweep.py: {error}")
    settings = {SWITCH: "1", RULES_FILE: str(given.output.resolve())}
    print("use it with:", *(f"{name}={value}" for name, value in settings.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
