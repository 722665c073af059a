"""Every configuration, one after the other."""

from collections.abc import Sequence

import numpy as np

from luthier.arrays import IntArray
from luthier.errors import InvalidInputError
from luthier.optimizers.history import History
from luthier.space import Space
from luthier.trial import Config, Trial

_SHUFFLE_LIMIT = 2_000_000


class ExhaustiveSearch:
    """Suggests every configuration of a finite space in the order of its grid, or `shuffled`."""

    def __init__(self, space: Space, *, seed: int, budget: int | None = None, shuffled: bool = False) -> None:
        del budget  # every optimizer gets it; this one goes through everything
        if space.size is None:
            raise InvalidInputError(
                "optimizer exhaustive: the space cannot be counted; give each Real a step, or use 'auto'"
            )
        if shuffled and space.size > _SHUFFLE_LIMIT:
            raise InvalidInputError(
                f"optimizer exhaustive: {space.size} configurations are too many to shuffle; use 'random'"
            )
        self._history = History(space)
        self._size, self._seed, self._shuffled = space.size, seed, shuffled
        self._order: IntArray | None = None
        self._first = 0  # everything before it in the order has been told

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest the next configurations that were not tried yet; an empty answer means that none is left."""
        while self._first < self._size and self._at(self._first) in self._history:
            self._first += 1
        taken = self._history.taken(running)
        chosen: list[Config] = []
        position = self._first
        while len(chosen) < count and position < self._size:
            config = self._at(position)
            if config not in taken:
                chosen.append(config)
            position += 1
        return chosen

    def tell(self, finished: Sequence[Trial]) -> None:
        """Note what has been tried."""
        self._history.tell(finished)

    def _at(self, position: int) -> Config:
        if not self._shuffled:
            return self._history.space.at(position)
        if self._order is None:
            self._order = np.random.default_rng([self._seed]).permutation(self._size)
        return self._history.space.at(int(self._order[position]))
