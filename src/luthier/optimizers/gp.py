"""Bayesian optimisation: a Gaussian process says what is likely, expected improvement says what is worth a run."""

from collections.abc import Sequence

import numpy as np

from luthier.learn.kernels import FAMILIES, Family
from luthier.optimizers.acquisition import ACQUISITIONS, Acquisition
from luthier.optimizers.model_search import ModelSearch, check_initial, check_name, find_design
from luthier.optimizers.surrogate import Surrogate
from luthier.space import Space
from luthier.trial import Config, Trial

_FEWEST_INITIAL = 5


class GaussianProcessSearch:
    """Starts with a `design` of `initial` points, then maximises an acquisition (EI: Jones et al. 1998).

    Whatever has been told counts towards `initial`. Runs under way are believed to end as predicted.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        budget: int | None = None,
        initial: int | None = None,
        design: str = "latin-hypercube",
        kernel: Family = "matern52",
        acquisition: Acquisition = "ei",
    ) -> None:
        check_initial("gp", initial)
        check_name("gp", "kernel", kernel, FAMILIES)
        check_name("gp", "acquisition", acquisition, ACQUISITIONS)
        surrogate = Surrogate(np.asarray(space.ordered, dtype=np.bool_), kernel, acquisition)
        first = _initial(space, budget) if initial is None else initial
        self._search = ModelSearch(space, surrogate, seed=seed, initial=first, design=find_design("gp", design))

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        return self._search.ask(count, running)

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials; the model follows when it is next needed."""
        self._search.tell(finished)


def _initial(space: Space, budget: int | None) -> int:
    """One more than there are parameters, but no more than a third of the budget."""
    wanted = max(_FEWEST_INITIAL, len(space.names) + 1)
    return wanted if budget is None else max(1, min(wanted, budget // 3))
