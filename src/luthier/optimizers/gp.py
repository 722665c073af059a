"""Bayesian optimisation: a Gaussian process says what is likely, expected improvement says what is worth a run."""

from collections.abc import Sequence

import numpy as np

from luthier.designs import DESIGNS
from luthier.learn.kernels import FAMILIES, Family
from luthier.optimizers.acquisition import ACQUISITIONS, Acquisition
from luthier.optimizers.ensemble import Ensemble
from luthier.optimizers.model_search import ModelSearch
from luthier.optimizers.option_checks import check_count, check_known
from luthier.optimizers.scales import linear_or_logarithmic
from luthier.optimizers.start import start_size
from luthier.optimizers.surrogates import GaussianSurrogate
from luthier.space import Space
from luthier.trial import Config, Trial

_FEWEST_INITIAL = 5


class GaussianProcessSearch:
    """Starts with a `design` of `initial` points, then maximises an acquisition (EI: Jones et al. 1998).

    The process sees the values or, where these are predicted better, their logarithms.
    Acquisitions are `ei`, `pi` and `lcb`. Whatever has been told counts towards `initial`. Running configurations are
    assumed to end as predicted.
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
        if initial is not None:
            check_count("gp", "initial", initial, 1)
        check_known("gp", "design", design, DESIGNS)
        check_known("gp", "kernel", kernel, FAMILIES)
        check_known("gp", "acquisition", acquisition, ACQUISITIONS)
        ordered = np.asarray(space.ordered, dtype=np.bool_)
        model = Ensemble(
            ordered,
            lambda columns: (GaussianSurrogate(columns, kernel, least_chance=0.0),),
            acquisition,
            seed=seed,
            explores_when_stuck=False,
            choose_scale=lambda data: linear_or_logarithmic(data, ordered, kernel),
        )
        wanted = max(_FEWEST_INITIAL, len(space.names) + 1)
        first = start_size(wanted, budget) if initial is None else initial
        self._search = ModelSearch(space, model, seed=seed, initial=first, design=DESIGNS[design])

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        return self._search.ask(count, running)

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials; the model follows when it is next needed."""
        self._search.tell(finished)
