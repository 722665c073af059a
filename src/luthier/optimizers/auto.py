"""The search that is used by default."""

from collections.abc import Sequence

import numpy as np

from luthier.optimizers.base import Optimizer
from luthier.optimizers.ensemble import Ensemble
from luthier.optimizers.exhaustive import ExhaustiveSearch
from luthier.optimizers.model_search import ModelSearch
from luthier.optimizers.start import start_size
from luthier.space import Space
from luthier.trial import Config, Trial

_INITIAL = 6


class Automatic:
    """Tries everything, in random order, where the budget is enough for that; else searches by several models."""

    def __init__(self, space: Space, *, seed: int, budget: int | None = None) -> None:
        self._search: Optimizer
        if budget is not None and space.size is not None and space.size <= budget:
            self._search = ExhaustiveSearch(space, seed=seed, budget=budget, shuffled=True)
        else:
            initial = start_size(_INITIAL, budget)
            model = Ensemble(np.asarray(space.ordered, dtype=np.bool_), seed=seed)
            self._search = ModelSearch(space, model, seed=seed, initial=initial)

    def ask(self, count: int, running: Sequence[Config]) -> Sequence[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        return self._search.ask(count, running)

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials."""
        self._search.tell(finished)
