"""Search by a forest: cheap with thousands of observations, and good for functions with sharp borders."""

import numpy as np

from luthier.designs import DESIGNS
from luthier.optimizers.acquisition import Acquisition
from luthier.optimizers.earlier import Earlier
from luthier.optimizers.ensemble import Ensemble
from luthier.optimizers.head_start import head_start
from luthier.optimizers.model_search import ModelSearch, check_options
from luthier.optimizers.start import start_size
from luthier.optimizers.surrogates import ForestSurrogate
from luthier.space import Space

_INITIAL = 10


def forest_search(
    space: Space,
    *,
    seed: int,
    budget: int | None = None,
    earlier: Earlier | None = None,
    initial: int | None = None,
    design: str = "latin-hypercube",
    acquisition: Acquisition = "ei",
) -> ModelSearch:
    """Starts with a `design` of `initial` points, then suggests what a forest of random trees finds most promising.

    Trials that were told before count towards `initial`. Running configurations are assumed to end as predicted.
    """
    check_options("forest", initial, design, acquisition)
    first = start_size(_INITIAL, budget) if initial is None else initial
    ordered = np.asarray(space.ordered, dtype=np.bool_)
    start = head_start(space, earlier, seed=seed)
    model = Ensemble(ordered, lambda columns: (ForestSurrogate(columns),), acquisition, seed=seed, head_start=start)
    return ModelSearch(space, model, seed=seed, initial=first, design=DESIGNS[design], head_start=start)
