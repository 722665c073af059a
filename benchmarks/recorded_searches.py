"""Record what searches suggest, and compare later whether a change of the code changed any suggestion.

    python -m benchmarks.recorded_searches record before.json
    python -m benchmarks.recorded_searches compare before.json

Ten searches (five optimizers, two spaces), each told the values of a fixed function, with runs that fail and two slots
that finish out of order. Suggestions depend on the linear algebra library, so compare on the machine that recorded.
"""

import argparse
import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from luthier.optimizers import make_optimizer
from luthier.space import Choice, Integer, Real, Space
from luthier.trial import Completed, Config, Estimate, Failed, Trial

OPTIMIZERS = ("auto", "gp", "forest", "genetic", "annealing")
SPACES = {
    "grid": Space(
        Integer("threads", 1, 16),
        Integer("block", 4096, 1 << 20, step=2, scale="log"),
        Choice("engine", ["sync", "libaio", "mmap"]),
        constraints=["threads * block <= 4M"],
    ),
    "mixed": Space(Real("ratio", 0.1, 0.9), Integer("depth", 1, 64), Choice("mode", ["a", "b"])),
}
BUDGET = 40


def value_of(config: Config) -> float | None:
    """A smooth function with some ruggedness; one configuration in twelve fails."""
    mixed = zlib.crc32(repr(sorted(config.items())).encode())
    if mixed % 12 == 0:
        return None
    numbers = [float(value) for value in config.values() if not isinstance(value, str)]
    return 1.0 + sum((number % 7.0) ** 2 for number in numbers) + mixed % 100 / 50.0


def suggestions(name: str, space: Space) -> Iterator[Config]:
    """What the optimizer suggests with two slots, of which the second ends first every other time."""
    optimizer = make_optimizer(name, space, seed=7, budget=BUDGET)
    optimizer.tell([_trial(space.default)])
    running: list[Config] = []
    for step in range(BUDGET):
        while len(running) < 2 and (asked := optimizer.ask(1, running)):
            running.append(asked[0])
            yield asked[0]
        if not running:
            return
        optimizer.tell([_trial(running.pop(step % 2 if len(running) > 1 else 0))])


def _trial(config: Config) -> Trial:
    value = value_of(config)
    if value is None:
        return Trial(config, (Failed("no"),), None)
    return Trial(config, (Completed(value),), Estimate(value, 1))


def recorded() -> dict[str, list[dict[str, object]]]:
    """Every search."""
    return {
        f"{name} on {place}": [dict(config) for config in suggestions(name, space)]
        for place, space in SPACES.items()
        for name in OPTIMIZERS
    }


def main() -> int:
    """Record, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    given = parser.parse_args()
    now = recorded()
    if given.action == "record":
        given.file.write_text(json.dumps(now))
        return 0
    before = json.loads(given.file.read_text())
    different = 0
    for search, configs in before.items():
        same = sum(1 for old, new in zip(configs, now[search], strict=False) if old == new)
        different += configs != now[search]
        print(f"{search}: {same} of {len(configs)} suggestions are the same")
    return different


if __name__ == "__main__":
    sys.exit(main())
