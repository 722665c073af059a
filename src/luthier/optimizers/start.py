"""How a search starts: with a design; trials that are already known count towards it."""

from collections.abc import Set

import numpy as np

from luthier.designs import Design, latin_hypercube
from luthier.space import Space
from luthier.trial import Config


def start_size(wanted: int, budget: int | None, *, least: int = 1) -> int:
    """As many first points as wanted, but no more than a third of the budget."""
    return wanted if budget is None else max(least, min(wanted, budget // 3))


class Start:
    """The first `size` configurations of a search.

    Configurations that were told or are running without being part of the design count, and the design is smaller by
    their number. (A full design with some points dropped would not cover all levels.)

    For each number of points there is one design, drawn from the seed. The largest one is used that, together with
    the taken configurations outside of it, has `size` points at most.
    """

    def __init__(self, space: Space, size: int, *, seed: int, design: Design = latin_hypercube) -> None:
        self._space, self.size, self._seed, self._make = space, size, seed, design
        self._designs: dict[int, list[Config]] = {}

    def next(self, count: int, taken: Set[Config]) -> list[Config]:
        """Up to `count` of the design that are not taken, while fewer than `size` are."""
        if len(taken) >= self.size:
            return []
        for points in range(self.size, 0, -1):
            design = self._design(points)
            if len(taken - set(design)) <= self.size - points:
                return [config for config in design if config not in taken][:count]
        return []

    def _design(self, points: int) -> list[Config]:
        if points not in self._designs:
            # A stream of its own beside those of the asks, which have two numbers.
            rng = np.random.default_rng([self._seed, 0, 1])
            self._designs[points] = self._make(self._space, points, rng)
        return self._designs[points]
