"""Uniform draws without replacement: the baseline of every comparison."""

from collections.abc import Sequence

from luthier.optimizers.history import History
from luthier.space import Space
from luthier.trial import Config, Trial


class RandomSearch:
    """Suggests configurations drawn uniformly from those that are left."""

    def __init__(self, space: Space, *, seed: int, budget: int | None = None) -> None:
        del budget  # every optimizer gets it; this one does not need it
        self._history = History(space)
        self._seed = seed

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        rng = self._history.generator(self._seed, running)
        return self._history.space.sample(count, rng, exclude=self._history.taken(running))

    def tell(self, finished: Sequence[Trial]) -> None:
        """Note what has been tried."""
        self._history.tell(finished)
