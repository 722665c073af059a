"""Bayesian optimisation: a Gaussian process predicts values, an acquisition says which configuration is worth a run."""

import numpy as np

from luthier.designs import DESIGNS
from luthier.learn.kernels import FAMILIES, Family
from luthier.optimizers.acquisition import Acquisition
from luthier.optimizers.earlier import Earlier
from luthier.optimizers.ensemble import Ensemble
from luthier.optimizers.head_start import head_start
from luthier.optimizers.model_search import ModelSearch, check_options
from luthier.optimizers.option_checks import check_known
from luthier.optimizers.scales import linear_or_logarithmic
from luthier.optimizers.start import start_size
from luthier.optimizers.surrogates import GaussianSurrogate
from luthier.space import Space

_FEWEST_INITIAL = 5


def gaussian_process_search(  # noqa: PLR0913  # the keywords are the options of the optimizer
    space: Space,
    *,
    seed: int,
    budget: int | None = None,
    earlier: Earlier | None = None,
    initial: int | None = None,
    design: str = "latin-hypercube",
    kernel: Family = "matern52",
    acquisition: Acquisition = "ei",
) -> ModelSearch:
    """Starts with a `design` of `initial` points, then maximises an acquisition (EI: Jones et al. 1998).

    The process sees the values or, where these are predicted better, their logarithms. Acquisitions are `ei`, `pi` and
    `lcb`. Trials that were told before count towards `initial`. Running configurations are assumed to end as predicted.
    """
    check_options("gp", initial, design, acquisition)
    check_known("gp", "kernel", kernel, FAMILIES)
    ordered = np.asarray(space.ordered, dtype=np.bool_)
    start = head_start(space, earlier, seed=seed)
    model = Ensemble(
        ordered,
        lambda columns: (GaussianSurrogate(columns, kernel, least_chance=0.0),),
        acquisition,
        seed=seed,
        explores_when_stuck=False,
        choose_scale=lambda data: linear_or_logarithmic(data, ordered, kernel),
        head_start=start,
    )
    wanted = max(_FEWEST_INITIAL, len(space.names) + 1)
    first = start_size(wanted, budget) if initial is None else initial
    return ModelSearch(space, model, seed=seed, initial=first, design=DESIGNS[design], head_start=start)
