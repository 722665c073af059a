"""Tune collectives of Open MPI for several numbers of ranks and message sizes, and write a rules file with the result.

    make -C testbeds/native
    python examples/openmpi/sweep.py bcast,allgather --ranks 4 --sizes 1k,16k,256k -o rules.conf
    python examples/openmpi/sweep.py allgather --runner slurm --nodes 2 --ranks 8,16 --slots 4 -o rules.conf

Each collective, number of ranks and size is an experiment of its own in luthier's store; `luthier list` shows them.
What was best for one size is tried first for the next one. A size gets a rule if its winner beats Open MPI's own
decision when both run in turns. After Ctrl-C the same command continues; what was measured is not measured again.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import yaml

import luthier as lt
from luthier import launch
from luthier.cli.running import work_on
from luthier.errors import InvalidInputError, NotFoundError
from luthier.result.open_mpi import (
    ALGORITHMS,
    PREFIX,
    RULES_FILE,
    SWITCH,
    Rule,
    algorithms_for,
    ignored_settings,
    rule_of,
    rules_text,
)
from luthier.space import parse_quantity
from luthier.spec.yaml_lines import parse_document
from luthier.store import open_store
from luthier.store.base import ENDED
from luthier.transfer.lessons import best_configs

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Options:
    """How every experiment of the sweep is run."""

    script: Path
    runner: str
    nodes: int | None
    budget: int
    slots: int
    seed: int
    store: str | None


@dataclass(frozen=True)
class Point:
    """What one experiment of the sweep is about."""

    collective: str
    ranks: int
    size_bytes: int


def document(options: Options, point: Point, first: list[lt.Config]) -> dict[str, object]:
    """The experiment file of a point: the component of the collective, with the point as variables of the script."""
    component = yaml.safe_load((HERE / f"{point.collective}.yaml").read_text(encoding="utf-8"))["components"]
    described = component[point.collective]
    parameters = described["parameters"]
    parameters[f"{PREFIX}{point.collective}_algorithm"]["values"] = list(algorithms_for(point.collective, point.ranks))
    calls = 5000 * 8192 // (8192 + point.size_bytes) + 100  # some tenths of a second
    texts = {"COLLECTIVE": point.collective, "RANKS": point.ranks, "SIZE": point.size_bytes, "CALLS": calls}
    for name, value in texts.items():
        parameters[name] = {"env_var": True, "type": "str", "default": str(value)}
    where = f"{point.ranks} ranks"
    if options.runner == "slurm":
        parameters["ntasks"] = {"cli_var": True, "type": "int", "default": point.ranks}
    if options.nodes is not None:
        parameters["nodes"] = {"cli_var": True, "type": "int", "default": options.nodes}
        where += f" on {options.nodes} nodes"
    experiment = {
        "name": f"{point.collective}, {where}, {point.size_bytes} bytes",
        "script": options.script.read_text(encoding="utf-8"),
        "runner": options.runner,
        "budget": options.budget,
        "slots": options.slots,
        "seed": options.seed,
        "timeout": "120s",
        "first": [dict(config) for config in first],
    }
    return {"experiment": experiment, "definitions": component, "components": {point.collective: {}}}


def tuned(options: Options, point: Point, first: list[lt.Config]) -> tuple[lt.Result, lt.Config]:
    """The result of a point and its default; the experiment is continued, or only read, if the store has it."""
    text = json.dumps(document(options, point, first))
    found = launch.declared_by(parse_document(text, "the sweep"), Path.cwd(), HERE, launch.library(options.store).get)
    settings = json.dumps(found.experiment.to_json(), sort_keys=True)
    same = (one for one in open_store(options.store).experiments() if one.name == found.name)
    known = [one for one in same if json.dumps(one.settings, sort_keys=True) == settings]
    if known and known[-1].status in ENDED:
        record, result = launch.open(known[-1].id, options.store)
    else:
        request = launch.LaunchRequest(found.experiment, found.name, options.store)
        ready = launch.resume(known[-1].id, options.store) if known else launch.create(request)
        done = work_on(ready, quiet=False)
        record, result = done.record, done.result
    if record.status not in ENDED:
        raise KeyboardInterrupt
    if result.default is None or result.default.estimate is None:
        raise InvalidInputError(f"{found.name}: no run of the default gave a number; see: luthier show {record.id}")
    return result, found.experiment.space.default


def sweep(options: Options, points: list[Point]) -> Iterator[Rule]:
    """A rule for every point: that of its winner, or that Open MPI decides."""
    best: list[lt.Config] = []
    for before, point in zip([None, *points], points, strict=False):
        if before is None or (before.collective, before.ranks) != (point.collective, point.ranks):
            best = []
        result, default = tuned(options, point, best)
        best = [config for config in best_configs(result) if config != default]
        chosen = result.best.config if result.improved else default
        words = ", ".join(str(value) for value in result.best.config.values())
        gain = f"{result.speedup:.2f} times as fast" if result.improved else "no better than the default"
        print(f"{point.collective}, {point.ranks} ranks, {point.size_bytes} bytes: {words}: {gain}", flush=True)
        yield rule_of(point.collective, point.ranks, point.size_bytes, chosen)


def points_of(collectives: str, ranks: str, sizes: str) -> list[Point]:
    """Every combination, sizes from small to large."""
    names = sorted(set(collectives.split(",")))
    if unknown := [name for name in names if name not in ALGORITHMS]:
        raise InvalidInputError(f"{unknown[0]!r} is not a supported collective; give some of {', '.join(ALGORITHMS)}")
    counts = sorted({int(parse_quantity(text)[0]) for text in ranks.split(",")})
    if counts[0] < 2:
        raise InvalidInputError(f"--ranks: {counts[0]} ranks have nothing to send; give 2 or more")
    in_bytes = sorted({int(parse_quantity(size)[0]) for size in sizes.split(",")})
    return [Point(*point) for point in product(names, counts, in_bytes)]


def check(options: Options, output: Path) -> None:
    """Raise if tuning is not possible here."""
    if not options.script.is_file():
        raise NotFoundError(f"--script: there is no file {options.script}")
    if options.nodes is not None and options.runner != "slurm":
        raise InvalidInputError("--nodes needs --runner slurm")
    if not output.parent.is_dir():
        raise NotFoundError(f"-o: there is no folder {output.parent}; make it first")
    for line in ignored_settings({**os.environ, SWITCH: "1", f"{PREFIX}bcast_algorithm": "1"}):
        raise InvalidInputError(f"{line}; unset what the environment says")


def main() -> int:
    """Read the command line, tune, write the rules."""
    parser = argparse.ArgumentParser(description="Tune collectives of Open MPI for several ranks and message sizes.")
    parser.add_argument("collectives", help=f"one or more of {','.join(ALGORITHMS)}, with commas")
    parser.add_argument("-n", "--ranks", default="4", help="numbers of ranks, such as 8,16")
    parser.add_argument("--sizes", default="1k,16k,256k", help="message sizes in bytes per rank, such as 1k,16k")
    parser.add_argument("--budget", type=int, default=40, help="runs for each point, including the verification")
    parser.add_argument("--runner", default="local", choices=["local", "slurm"])
    parser.add_argument("--nodes", type=int, help="nodes of every job (with --runner slurm)")
    parser.add_argument("--slots", type=int, default=1, help="jobs at a time; give each its own nodes")
    parser.add_argument("--script", type=Path, default=HERE / "sweep.sbatch", help="what makes one measurement")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", help="where experiments are stored (default: luthier's own store)")
    parser.add_argument("-o", "--output", type=Path, default=Path("rules.conf"))
    given = parser.parse_args()
    options = Options(given.script, given.runner, given.nodes, given.budget, given.slots, given.seed, given.store)
    try:
        check(options, given.output)
        rules = list(sweep(options, points_of(given.collectives, given.ranks, given.sizes)))
        given.output.write_text(rules_text(rules), encoding="utf-8")
    except lt.LuthierError as error:
        sys.exit(f"sweep.py: {error}")
    except KeyboardInterrupt:
        print("sweep.py: stopped; the same command continues", file=sys.stderr)
        return 130
    settings = {SWITCH: "1", RULES_FILE: str(given.output.resolve())}
    print("use it with:", *(f"{name}={value}" for name, value in settings.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
