"""The search by forest as it was published for many workers (Dorier et al. 2022), for comparison."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.learn.forest import Forest
from luthier.optimizers.acquisition import confidence_bound
from luthier.optimizers.history import History
from luthier.optimizers.model_search import ModelSearch
from luthier.optimizers.option_checks import check_count, check_known, check_positive
from luthier.optimizers.start import start_size
from luthier.optimizers.surrogates import CachedPoints
from luthier.optimizers.targets import KnownTargets
from luthier.space import Space
from luthier.trial import Trial

Liar: TypeAlias = Literal["min", "mean", "max"]

_LIES: Mapping[str, Callable[[FloatArray], float]] = {
    "min": lambda y: float(y.min()),
    "mean": lambda y: float(y.mean()),
    "max": lambda y: float(y.max()),
}
_INITIAL = 10


class ForestBound:
    """A forest of the logarithms of the values, and its lower confidence bound.

    A run without a number counts as the worst value so far. What is running is assumed to end with one and the same
    value, the `liar`'s: the lowest, the mean or the highest so far (Ginsbourger et al. 2010).
    """

    def __init__(self, ordered: BoolArray, *, kappa: float, liar: Liar) -> None:
        self._forest, self._kappa, self._liar = Forest(ordered), kappa, liar
        self._snapshot: Sequence[Trial] | None = None
        self._lie = 0.0

    def learn(self, history: History, slots: int = 1) -> None:
        """Replace all that is known by `history`; trees grow at a snapshot, then their leaves are filled."""
        del slots  # a forest is fast enough for any number
        if history.snapshot is not self._snapshot:
            self._snapshot = history.snapshot
            self._forest.grow(*_targets(KnownTargets.of(history.units(), history.snapshot)))
        x, y = _targets(KnownTargets.of(history.units(), history.trials))
        self._forest.fill(x, y)
        self._lie = _LIES[self._liar](y) if len(y) else 0.0

    def log_promise(self, points: CachedPoints) -> FloatArray:
        """How low the bound of each point is."""
        mean, deviation = self._forest.predict(points.leaves(self._forest))
        return confidence_bound(mean, deviation, 0.0, self._kappa)

    def assume(self, x: FloatArray) -> None:
        """Assume that each row of `x` ended with the lie."""
        if len(x):
            self._forest.add(self._forest.known_leaves(x), np.full(len(x), self._lie))

    def forget_assumed(self) -> None:
        """Undo every `assume`."""
        self._forest.remove_added()


def _targets(known: KnownTargets) -> tuple[FloatArray, FloatArray]:
    """Every trial that ended, and the logarithm of its value; the values themselves if some are not above 0."""
    values = known.estimates().y
    told = known.measured | known.failed | known.bounded
    if not len(values):
        return known.x[told], np.zeros(int(told.sum()))
    y = np.full(len(known.x), values.max())
    y[known.measured] = values
    return known.x[told], np.log(y[told]) if values.min() > 0.0 else y[told]


def forest_bound_search(
    space: Space,
    *,
    seed: int,
    budget: int | None = None,
    initial: int | None = None,
    kappa: float = 1.96,
    liar: Liar = "min",
    candidates: int = 10_000,
) -> ModelSearch:
    """Starts with `initial` points, then suggests the lowest confidence bounds among many `candidates`."""
    if initial is not None:
        check_count("forest-lcb", "initial", initial, 1)
    check_positive("forest-lcb", "kappa", kappa)
    check_known("forest-lcb", "liar", liar, _LIES)
    check_count("forest-lcb", "candidates", candidates, 1)
    first = start_size(_INITIAL, budget) if initial is None else initial
    model = ForestBound(np.asarray(space.ordered, dtype=np.bool_), kappa=kappa, liar=liar)
    return ModelSearch(space, model, seed=seed, initial=first, candidates=candidates)
