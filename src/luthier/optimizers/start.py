"""How a search starts: with a design, towards which whatever is known already counts."""

import numpy as np

from luthier.designs import Design, latin_hypercube
from luthier.space import Space
from luthier.trial import Config


def start_size(wanted: int, budget: int | None, *, least: int = 1) -> int:
    """As many first points as wanted, but no more than a third of the budget."""
    return wanted if budget is None else max(least, min(wanted, budget // 3))


class Start:
    """The first `size` configurations of a search, drawn when the first of them is needed.

    What is taken by then counts, and the design is made of as many points as are left: a larger one of which some are
    dropped would leave the levels uncovered that these alone stand for.
    """

    def __init__(self, space: Space, size: int, *, seed: int, design: Design = latin_hypercube) -> None:
        self._space, self.size, self._seed, self._make = space, size, seed, design
        self._design: list[Config] | None = None

    def next(self, count: int, taken: set[Config]) -> list[Config]:
        """Up to `count` of the design that are not taken, while fewer than `size` are."""
        left = self.size - len(taken)
        if left <= 0:
            return []
        if self._design is None:
            # A stream of its own: the draws of the asks are numbered from 0.
            self._design = self._make(self._space, left, np.random.default_rng([self._seed, 0, 1]))
        return [config for config in self._design if config not in taken][: min(count, left)]
