"""A genetic algorithm of DEAP that asks luthier when to stop.

    pip install deap
    python examples/deap_tuner.py --production-runs 1000

It tunes the settings of a compression with zlib. DEAP keeps its own loop: `luthier.stop` is told the best time after
each generation, and answers with a reason to stop once further generations are expected to cost more time than they
save in so many production runs. Tournaments and elitism are as in H5Tuner.
"""

import argparse
import random
import time
import zlib

from deap import base, creator, tools

import luthier as lt

LEVELS, MEMORY, STRATEGIES, CHUNKS_KIB = range(1, 10), range(1, 10), range(5), [2**power for power in range(11)]
GENES = (LEVELS, MEMORY, STRATEGIES, CHUNKS_KIB)
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


def next_generation(toolbox: base.Toolbox, population: list[list[int]]) -> list[list[int]]:
    """The best individual unchanged, and children of the winners of tournaments."""
    children = [toolbox.clone(one) for one in toolbox.select(population, len(population) - 1)]
    for one, other in zip(children[::2], children[1::2], strict=False):
        toolbox.mate(one, other)
    for child in children:
        toolbox.mutate(child)
        child.fitness.values = toolbox.evaluate(child)
    return [*tools.selBest(population, 1), *children]


def main() -> None:
    """Tune until a further generation does not pay."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--production-runs", type=int, default=1000)
    parser.add_argument("--generations", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    random.seed(given.seed)
    toolbox = make_toolbox()
    stop = lt.stop(given.production_runs, iterations=given.generations + 1)

    default = creator.Individual(DEFAULT)
    default.fitness.values = toolbox.evaluate(default)
    stop(0, default.fitness.values[0])
    drawn = [[random.randrange(len(values)) for values in GENES] for _ in range(11)]  # noqa: S311 - not a secret
    population = [default, *map(creator.Individual, drawn)]
    for one in population[1:]:
        one.fitness.values = toolbox.evaluate(one)
    reason = None
    for generation in range(1, given.generations + 1):
        population = next_generation(toolbox, population)
        (best,) = tools.selBest(population, 1)
        reason = stop(generation, best.fitness.values[0])
        if reason:
            break
    print(f"generation {generation}: {best.fitness.values[0]:.4f} s, default {default.fitness.values[0]:.4f} s")
    print(f"stopped: {reason or 'all generations were made'}")


if __name__ == "__main__":
    main()
