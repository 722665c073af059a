"""A genetic search as programs with DEAP have it: whole generations, elitism, tournaments of three (H5Tuner's way)."""

from collections.abc import Sequence

import numpy as np

from luthier.arrays import FloatArray
from luthier.optimizers.genetic import one_point, tournament
from luthier.space import Space
from luthier.trial import Config, Trial

POPULATION = 10
_CROSSED = 0.9
_TRIES = 20


class GenerationalSearch:
    """Breeds a generation from the one before and the best of all; a configuration is never run twice.

    Parents are the best two of three that are drawn; each gene of a child mutates with the chance 1 / N.
    """

    def __init__(self, space: Space, *, seed: int) -> None:
        self._space, self._seed = space, seed
        self._told: dict[Config, Trial] = {}

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations."""
        taken = {*self._told, *running}
        generation = len(taken) // POPULATION
        rng = np.random.default_rng([self._seed, len(taken), 53])
        parents = self._parents(generation)
        chosen: list[Config] = []
        while len(chosen) < count:
            child = self._child(parents, taken, rng)
            if child is None:
                break
            chosen.append(child)
            taken.add(child)
        return chosen

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials."""
        self._told.update((trial.config, trial) for trial in finished)

    def _parents(self, generation: int) -> FloatArray:
        """The codes of the generation before and of the best one, the fittest first."""
        trials = list(self._told.values())
        ranked = sorted((trial.estimate.value, at) for at, trial in enumerate(trials) if trial.estimate is not None)
        first = (generation - 1) * POPULATION
        kept = [at for rank, (_, at) in enumerate(ranked) if rank == 0 or first <= at < first + POPULATION]
        return self._space.codes([trials[at].config for at in kept])

    def _child(self, parents: FloatArray, taken: set[Config], rng: np.random.Generator) -> Config | None:
        space = self._space
        for _ in range(_TRIES if len(taken) >= POPULATION and len(parents) else 0):
            first, second = tournament(len(parents), 3, rng)
            child = one_point(parents[first], parents[second], rng) if rng.random() < _CROSSED else parents[first]
            any_values = space.from_unit(rng.random((1, len(child))))[0]
            mutated = space.within(np.where(rng.random(len(child)) < 1.0 / len(child), any_values, child)[None, :])
            if space.feasible(mutated)[0] and (config := space.decode(mutated[0])) not in taken:
                return config
        return next(iter(space.sample(1, rng, exclude=taken)), None)
