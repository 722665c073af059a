"""Bayesian optimisation: a Gaussian process says what is likely, expected improvement says what is worth a run."""

from collections.abc import Sequence

import numpy as np

from luthier.designs import latin_hypercube
from luthier.errors import InvalidInputError
from luthier.learn.gaussian_process import GaussianProcess
from luthier.learn.kernels import FAMILIES, Family
from luthier.learn.linear import one_thread
from luthier.optimizers.candidates import WHOLE_LIMIT, Candidates, Pool, WholeGrid
from luthier.optimizers.history import History
from luthier.optimizers.surrogate import Surrogate
from luthier.space import Space
from luthier.trial import Config, Trial

_FEWEST_INITIAL = 5


class GaussianProcessSearch:
    """Starts with a Latin hypercube of `initial` points, then maximises the expected improvement (Jones et al. 1998).

    Whatever has been told counts towards `initial`. Runs under way are believed to end as predicted.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        budget: int | None = None,
        initial: int | None = None,
        kernel: Family = "matern52",
    ) -> None:
        if initial is not None and (isinstance(initial, bool) or not isinstance(initial, int) or initial < 1):
            raise InvalidInputError(f"optimizer gp: initial is {initial!r}; give a whole number, 1 or more")
        if kernel not in FAMILIES:
            raise InvalidInputError(f"optimizer gp: kernel {kernel!r} is unknown; known: {', '.join(sorted(FAMILIES))}")
        self._history = History(space)
        self._seed, self._asked = seed, 0
        self._initial = _initial(space, budget) if initial is None else initial
        self._design: list[Config] | None = None
        self._surrogate = Surrogate(np.asarray(space.ordered, dtype=np.bool_), kernel)
        self._candidates: Candidates | None = None
        self._stale = True

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        size = self._history.space.size
        if size is not None and len(self._history.taken(running)) >= size:
            return []
        rng = np.random.default_rng([self._seed, self._asked])
        self._asked += 1
        chosen = self._from_design(count, running)
        if len(chosen) < count:
            with one_thread():
                chosen += self._from_model(count - len(chosen), [*running, *chosen], rng)
        return chosen

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials; the model follows when it is next needed."""
        self._history.tell(finished)
        self._stale = True

    def _from_design(self, count: int, running: Sequence[Config]) -> list[Config]:
        if self._design is None:
            # A stream of its own: the draws of the asks are numbered from 0.
            rng = np.random.default_rng([self._seed, 0, 1])
            self._design = latin_hypercube(self._history.space, self._initial, rng)
        taken = self._history.taken(running)
        wanted = min(count, self._initial - len(taken))
        return [config for config in self._design if config not in taken][: max(wanted, 0)]

    def _from_model(self, count: int, running: Sequence[Config], rng: np.random.Generator) -> list[Config]:
        space = self._history.space
        process, candidates = self._learn(), self._where()
        candidates.begin(running, rng)
        process.believe(space.to_unit(space.codes(list(running))))
        chosen: list[Config] = []
        try:
            while (codes := candidates.best(self._surrogate, rng)) is not None:
                chosen.append(space.decode(codes))
                if len(chosen) == count:
                    break
                process.believe(space.to_unit(codes[None, :]))
        finally:
            process.disbelieve()
        return chosen

    def _learn(self) -> GaussianProcess:
        if self._stale:
            self._surrogate.learn(self._history.units(), self._history.trials)
            self._stale = False
        return self._surrogate.process

    def _where(self) -> Candidates:
        if self._candidates is None:
            size = self._history.space.size
            small = size is not None and size <= WHOLE_LIMIT
            self._candidates = WholeGrid(self._history) if small else Pool(self._history)
        return self._candidates


def _initial(space: Space, budget: int | None) -> int:
    """One more than there are parameters, but no more than a third of the budget."""
    wanted = max(_FEWEST_INITIAL, len(space.names) + 1)
    return wanted if budget is None else max(1, min(wanted, budget // 3))
