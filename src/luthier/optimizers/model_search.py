"""The loop every search by model shares: a design first, then whatever the model finds most promising."""

from collections.abc import Sequence

import numpy as np

from luthier.designs import Design, latin_hypercube
from luthier.learn.linear import one_thread
from luthier.optimizers.candidates import WHOLE_LIMIT, Belief, Candidates, Pool, WholeGrid
from luthier.optimizers.history import History
from luthier.optimizers.start import Start
from luthier.space import Space
from luthier.trial import Config, Trial


class ModelSearch:
    """Starts with a `design` of `initial` points, then takes the most promising configurations of `belief`.

    Whatever has been told counts towards `initial`. Runs under way are believed to end as predicted.
    """

    def __init__(
        self, space: Space, belief: Belief, *, seed: int, initial: int, design: Design = latin_hypercube
    ) -> None:
        self._history, self._belief = History(space), belief
        self._seed, self._asked = seed, 0
        self._start = Start(space, initial, seed=seed, design=design)
        self._candidates: Candidates | None = None
        self._stale = True

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        size = self._history.space.size
        if size is not None and len(self._history.taken(running)) >= size:
            return []
        rng = np.random.default_rng([self._seed, self._asked])
        self._asked += 1
        chosen = self._start.next(count, self._history.taken(running))
        if len(chosen) < count:
            with one_thread():
                chosen += self._from_model(count - len(chosen), [*running, *chosen], rng)
        return chosen

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials; the model follows when it is next needed."""
        self._history.tell(finished)
        self._stale = True

    def _from_model(self, count: int, running: Sequence[Config], rng: np.random.Generator) -> list[Config]:
        space, belief = self._history.space, self._belief
        if self._stale:
            belief.learn(self._history.units(), self._history.trials)
            self._stale = False
        if self._candidates is None:
            small = space.size is not None and space.size <= WHOLE_LIMIT
            self._candidates = WholeGrid(self._history) if small else Pool(self._history)
        self._candidates.begin(running, rng)
        belief.believe(space.to_unit(space.codes(list(running))))
        chosen: list[Config] = []
        try:
            while (codes := self._candidates.best(belief, rng)) is not None:
                chosen.append(space.decode(codes))
                if len(chosen) == count:
                    break
                belief.believe(space.to_unit(codes[None, :]))
        finally:
            belief.disbelieve()
        return chosen
