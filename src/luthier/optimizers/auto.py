"""The search that is used by default."""

import numpy as np

from luthier.optimizers.base import Optimizer
from luthier.optimizers.earlier import Earlier
from luthier.optimizers.ensemble import Ensemble
from luthier.optimizers.exhaustive import ExhaustiveSearch
from luthier.optimizers.head_start import head_start
from luthier.optimizers.model_search import ModelSearch
from luthier.optimizers.start import start_size
from luthier.space import Space

_INITIAL = 6


def automatic_search(
    space: Space, *, seed: int, budget: int | None = None, earlier: Earlier | None = None
) -> Optimizer:
    """Tries everything, in random order, where the budget is enough for that; else searches by several models."""
    if budget is not None and space.size is not None and space.size <= budget:
        return ExhaustiveSearch(space, seed=seed, budget=budget, shuffled=True)
    start = head_start(space, earlier, seed=seed)
    model = Ensemble(np.asarray(space.ordered, dtype=np.bool_), seed=seed, head_start=start)
    return ModelSearch(space, model, seed=seed, initial=start_size(_INITIAL, budget), head_start=start)
