"""The search to use when nobody says which."""

from collections.abc import Sequence

from luthier.optimizers.base import Optimizer
from luthier.optimizers.exhaustive import ExhaustiveSearch
from luthier.optimizers.gp import GaussianProcessSearch
from luthier.space import Space
from luthier.trial import Config, Trial


class Automatic:
    """Tries everything, in random order, where the budget is enough for that; else searches by model."""

    def __init__(self, space: Space, *, seed: int, budget: int | None = None) -> None:
        self._search: Optimizer
        if budget is not None and space.size is not None and space.size <= budget:
            self._search = ExhaustiveSearch(space, seed=seed, budget=budget, shuffled=True)
        else:
            self._search = GaussianProcessSearch(space, seed=seed, budget=budget)

    def ask(self, count: int, running: Sequence[Config]) -> Sequence[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        return self._search.ask(count, running)

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials."""
        self._search.tell(finished)
