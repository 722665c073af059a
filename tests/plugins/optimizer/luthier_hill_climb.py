"""An optimizer: tries the neighbours of the best configuration, then others at random."""

from collections.abc import Sequence

import numpy as np

from luthier.space import Space
from luthier.trial import Config, Trial


class HillClimb:
    def __init__(self, space: Space, *, seed: int, budget: int | None = None) -> None:
        self._space, self._seed = space, seed
        self._told: dict[Config, Trial] = {}

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        taken = {*self._told, *running}
        values = [(trial.estimate.value, config) for config, trial in self._told.items() if trial.estimate is not None]
        near = self._space.neighbours(min(values, key=lambda pair: pair[0])[1]) if values else []
        chosen = [config for config in near if config not in taken][:count]
        rng = np.random.default_rng([self._seed, len(taken)])
        return chosen + self._space.sample(count - len(chosen), rng, exclude={*taken, *chosen})

    def tell(self, finished: Sequence[Trial]) -> None:
        self._told.update({trial.config: trial for trial in finished})
