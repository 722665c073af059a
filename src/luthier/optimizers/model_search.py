"""What all searches by model share: a design first, then whatever the model finds most promising."""

from collections.abc import Sequence

import numpy as np

from luthier.designs import DESIGNS, Design, latin_hypercube
from luthier.learn.linear import one_thread
from luthier.optimizers.acquisition import ACQUISITIONS
from luthier.optimizers.candidates import Candidates, Model, candidates_of
from luthier.optimizers.head_start import HeadStart
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
    suggestions of one ask share one fit. With a `head_start` the best configurations of earlier experiments come first.
    """

    def __init__(
        self,
        space: Space,
        model: Model,
        *,
        seed: int,
        initial: int,
        design: Design = latin_hypercube,
        head_start: HeadStart | None = None,
    ) -> None:
        self._history, self._model, self._seed, self._head_start = History(space), model, seed, head_start
        self._start = self._informed_start = Start(space, initial, seed=seed, design=design)
        if head_start is not None and head_start.draws_candidates:
            self._informed_start = Start(space, initial, seed=seed, design=head_start.design)
        self._candidates: Candidates | None = None
        self._is_stale = True

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        size, taken = self._history.space.size, self._history.taken(running)
        if size is not None and len(taken) >= size:
            return []
        head = self._head_start
        is_helpful = head is not None and head.is_helpful(self._history)
        chosen = [] if head is None else [config for config in head.first if config not in taken][:count]
        # Earlier configurations that are worse than the default do not count: the search begins as without them.
        counted = taken.union(chosen).difference(() if head is None or is_helpful else head.first)
        start = self._informed_start if is_helpful else self._start
        rng = self._history.generator(self._seed, running)
        with one_thread():
            drawn = start.next(count - len(chosen), counted)
            chosen += [config for config in drawn if config not in taken and config not in chosen]
            if head is not None and not self._history.has_estimates:
                chosen += head.draw(count - len(chosen), taken.union(chosen), rng)
            if len(chosen) < count:
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
            self._candidates = candidates_of(self._history, self._head_start, seed=self._seed)
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
