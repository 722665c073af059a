"""A genetic algorithm of DEAP that asks luthier which parameters to tune next, and when to stop.

    pip install deap
    python examples/deap_tuner.py --production-runs 1000

It tunes the settings of a compression with zlib. DEAP keeps its own loop. `tunio.subset_picker` is told what was
measured in each generation, and answers with the parameters that the next one changes; the others keep the best values.
`tunio.stop` is told the best time, and answers with a reason to stop once further generations are expected to cost
more time than they save in so many production runs. Tournaments and elitism are as in H5Tuner.
"""

import argparse
import random
import time
import zlib

from deap import base, creator, tools

import luthier as lt
from luthier import tunio

LEVELS, MEMORY, STRATEGIES, CHUNKS_KIB = range(1, 10), range(1, 10), range(5), [2**power for power in range(11)]
GENES = (LEVELS, MEMORY, STRATEGIES, CHUNKS_KIB)
SPACE = lt.Space(
    lt.Integer("level", 1, 9),
    lt.Integer("memory", 1, 9),
    lt.Choice("strategy", list(STRATEGIES)),
    lt.Choice("chunk_kib", CHUNKS_KIB, ordered=True),
)
DEFAULT = [5, 7, 0, 4]  # the position of each value: level 6, memory 8, the usual strategy, 16 KiB at a time
DATA = b"".join(b"%d %d\n" % (number, number * number % 977) for number in range(20_000))


def seconds(individual: list[int]) -> tuple[float]:
    """How long a compression takes with the values at these positions."""
    level, memory, strategy, chunk_kib = (values[at] for values, at in zip(GENES, individual, strict=True))
    compressor = zlib.compressobj(level, memLevel=memory, strategy=strategy)
    began, size = time.perf_counter(), chunk_kib * 1024
    for start in range(0, len(DATA), size):
        compressor.compress(DATA[start : start + size])
    compressor.flush()
    return (time.perf_counter() - began,)


def make_toolbox() -> base.Toolbox:
    """The parts of the genetic algorithm."""
    creator.create("Fitness", base.Fitness, weights=(-1.0,))
    creator.create("Individual", list, fitness=creator.Fitness)
    toolbox = base.Toolbox()
    toolbox.register("evaluate", seconds)
    toolbox.register("mate", tools.cxTwoPoint)
    toolbox.register("mutate", tools.mutUniformInt, low=0, up=[len(values) - 1 for values in GENES], indpb=0.25)
    toolbox.register("select", tools.selTournament, tournsize=3)
    return toolbox


def config_of(individual: list[int]) -> dict[str, int]:
    """The values by the names of the parameters."""
    return {name: values[at] for name, values, at in zip(SPACE.names, GENES, individual, strict=True)}


def next_generation(toolbox: base.Toolbox, population: list[list[int]], tuned: tuple[str, ...]) -> list[list[int]]:
    """The best individual unchanged, and children of the winners of tournaments, which differ in `tuned` only."""
    (best,) = tools.selBest(population, 1)
    children = [toolbox.clone(one) for one in toolbox.select(population, len(population) - 1)]
    for one, other in zip(children[::2], children[1::2], strict=False):
        toolbox.mate(one, other)
    for child in children:
        toolbox.mutate(child)
        child[:] = [at if name in tuned else kept for name, at, kept in zip(SPACE.names, child, best, strict=True)]
        child.fitness.values = toolbox.evaluate(child)
    return [best, *children]


def main() -> None:
    """Tune until a further generation does not pay."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--production-runs", type=int, default=1000)
    parser.add_argument("--generations", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    random.seed(given.seed)
    toolbox = make_toolbox()
    stop = tunio.stop(given.production_runs, iterations=given.generations + 1)
    pick, tuned = tunio.subset_picker(SPACE), SPACE.names

    default = creator.Individual(DEFAULT)
    default.fitness.values = toolbox.evaluate(default)
    stop(0, default.fitness.values[0])
    drawn = [[random.randrange(len(values)) for values in GENES] for _ in range(11)]  # noqa: S311 - not a secret
    population = [default, *map(creator.Individual, drawn)]
    for one in population[1:]:
        one.fitness.values = toolbox.evaluate(one)
    reason = None
    for generation in range(1, given.generations + 1):
        evaluated = [(config_of(one), 1.0 / one.fitness.values[0]) for one in population]
        (best,) = tools.selBest(population, 1)
        tuned = pick(1.0 / best.fitness.values[0], tuned, evaluated)
        print(f"generation {generation} tunes {', '.join(tuned)}: {pick.reason}")
        population = next_generation(toolbox, population, tuned)
        (best,) = tools.selBest(population, 1)
        reason = stop(generation, best.fitness.values[0])
        if reason:
            break
    print(f"generation {generation}: {best.fitness.values[0]:.4f} s, default {default.fitness.values[0]:.4f} s")
    print(f"stopped: {reason or 'all generations were made'}")


if __name__ == "__main__":
    main()
