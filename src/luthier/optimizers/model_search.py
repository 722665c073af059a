"""What all searches by model share: a design first, then whatever the model finds most promising."""

from collections.abc import Sequence

import numpy as np

from luthier.designs import DESIGNS, Design, latin_hypercube
from luthier.learn.linear import one_thread
from luthier.optimizers.acquisition import ACQUISITIONS
from luthier.optimizers.candidates import WHOLE_LIMIT, Candidates, Model, Pool, WholeGrid
from luthier.optimizers.history import History
from luthier.optimizers.option_checks import check_count, check_known
from luthier.optimizers.start import Start
from luthier.space import Space
from luthier.trial import Config, Trial


def check_options(optimizer: str, initial: object, design: str, acquisition: str) -> None:
    """Check the options that searches by model have in common."""
    if initial is not None:
        check_count(optimizer, "initial", initial, 1)
    check_known(optimizer, "design", design, DESIGNS)
    check_known(optimizer, "acquisition", acquisition, ACQUISITIONS)


class ModelSearch:
    """Starts with a `design` of `initial` points, then takes the most promising configurations of `model`.

    Trials that were told before count towards `initial`. Running configurations are assumed to end as predicted. All
    suggestions of one ask share one fit.
    """

    def __init__(
        self, space: Space, model: Model, *, seed: int, initial: int, design: Design = latin_hypercube
    ) -> None:
        self._history, self._model, self._seed = History(space), model, seed
        self._start = Start(space, initial, seed=seed, design=design)
        self._candidates: Candidates | None = None
        self._is_stale = True

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        size, taken = self._history.space.size, self._history.taken(running)
        if size is not None and len(taken) >= size:
            return []
        chosen = self._start.next(count, taken)
        if len(chosen) < count:
            rng = self._history.generator(self._seed, running)
            with one_thread():
                chosen += self._from_model(count - len(chosen), [*running, *chosen], rng)
        return chosen

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials; the model follows when it is next needed."""
        self._history.tell(finished)
        self._is_stale = True

    def _from_model(self, count: int, running: Sequence[Config], rng: np.random.Generator) -> list[Config]:
        space, model = self._history.space, self._model
        if self._is_stale:
            model.learn(self._history)
            self._is_stale = False
        if self._candidates is None:
            small = space.size is not None and space.size <= WHOLE_LIMIT
            self._candidates = WholeGrid(self._history) if small else Pool(self._history, seed=self._seed)
        self._candidates.begin(running)
        model.assume(space.to_unit(space.codes(list(running))))
        chosen: list[Config] = []
        try:
            while (codes := self._candidates.best(model, rng)) is not None:
                chosen.append(space.decode(codes))
                if len(chosen) == count:
                    break
                model.assume(space.to_unit(codes[None, :]))
        finally:
            model.forget_assumed()
        return chosen
