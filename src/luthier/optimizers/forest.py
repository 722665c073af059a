"""Search by a forest: cheap with thousands of observations, and good for functions with sharp borders."""

from collections.abc import Sequence

import numpy as np

from luthier.designs import DESIGNS
from luthier.optimizers.acquisition import ACQUISITIONS, Acquisition
from luthier.optimizers.ensemble import Ensemble
from luthier.optimizers.model_search import ModelSearch
from luthier.optimizers.option_checks import check_count, check_known
from luthier.optimizers.start import start_size
from luthier.optimizers.surrogates import ForestSurrogate
from luthier.space import Space
from luthier.trial import Config, Trial

_INITIAL = 10


class ForestSearch:
    """Starts with a `design` of `initial` points, then takes what a forest finds most promising.

    Whatever has been told counts towards `initial`. Running configurations are assumed to end as
    predicted.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        budget: int | None = None,
        initial: int | None = None,
        design: str = "latin-hypercube",
        acquisition: Acquisition = "ei",
    ) -> None:
        if initial is not None:
            check_count("forest", "initial", initial, 1)
        check_known("forest", "design", design, DESIGNS)
        check_known("forest", "acquisition", acquisition, ACQUISITIONS)
        first = start_size(_INITIAL, budget) if initial is None else initial
        ordered = np.asarray(space.ordered, dtype=np.bool_)
        model = Ensemble(ordered, lambda columns: (ForestSurrogate(columns),), acquisition, seed=seed)
        self._search = ModelSearch(space, model, seed=seed, initial=first, design=DESIGNS[design])

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        return self._search.ask(count, running)

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials; the model follows when it is next needed."""
        self._search.tell(finished)
