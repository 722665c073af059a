"""What all searches by model share: a design first, then whatever the model finds most promising."""

from collections.abc import Sequence

import numpy as np

from luthier.designs import DESIGNS, Design, latin_hypercube
from luthier.learn.linear import one_thread
from luthier.optimizers.acquisition import ACQUISITIONS
from luthier.optimizers.candidates import POOL, Candidates, Model, candidates_of
from luthier.optimizers.head_start import HeadStart
from luthier.optimizers.history import FEW_SLOTS, History
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
        candidates: int = POOL,
        head_start: HeadStart | None = None,
    ) -> None:
        self._history, self._model, self._seed, self._head_start = History(space), model, seed, head_start
        self._start = self._informed_start = Start(space, initial, seed=seed, design=design)
        if head_start is not None and head_start.draws_candidates:
            self._informed_start = Start(space, initial, seed=seed, design=head_start.design)
        self._design, self._pool = design, candidates
        self._candidates: Candidates | None = None
        self._learned_for: int | None = None  # slots; None if something was told since

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        taken = self._history.taken(running)
        if self._history.space.is_used_up(taken):
            return []
        head = self._head_start
        is_helpful = head is not None and head.is_helpful(self._history)
        chosen = [] if head is None else [config for config in head.first if config not in taken][:count]
        # Earlier configurations that are worse than the default do not count: the search begins as without them.
        counted = taken.union(chosen).difference(() if head is None or is_helpful else head.first)
        rng, slots = np.random.default_rng([self._seed, len(taken)]), count + len(running)
        with one_thread():
            # With few slots the initial design comes one configuration after the other.
            if slots <= FEW_SLOTS or self._history.measured:
                drawn = (self._informed_start if is_helpful else self._start).next(count - len(chosen), counted)
                chosen += [config for config in drawn if config not in taken and config not in chosen]
            if head is not None and not self._history.measured:
                chosen += head.draw(count - len(chosen), taken.union(chosen), rng)
            # With many slots all of them start at once, long before a model knows anything.
            if slots > FEW_SLOTS and not self._history.measured:
                return chosen + self._spread(count - len(chosen), taken.union(chosen), rng)
            if len(chosen) < count:
                chosen += self._from_model(count - len(chosen), [*running, *chosen], rng, slots)
        return chosen

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials; the model follows when it is next needed."""
        self._history.tell(finished)
        self._learned_for = None

    def _spread(self, count: int, taken: set[Config], rng: np.random.Generator) -> list[Config]:
        """A design for all slots at once: nothing is known that a model could use."""
        space = self._history.space
        chosen = [config for config in self._design(space, count, rng) if config not in taken]
        return chosen + space.sample(count - len(chosen), rng, exclude={*taken, *chosen})

    def _from_model(self, count: int, running: Sequence[Config], rng: np.random.Generator, slots: int) -> list[Config]:
        space, model = self._history.space, self._model
        rounded = 1 << (slots - 1).bit_length()  # a few more or less do not change the models
        if self._learned_for != rounded:
            model.learn(self._history, rounded)
            self._learned_for = rounded
        if self._candidates is None:
            self._candidates = candidates_of(self._history, self._head_start, self._pool, seed=self._seed)
        busy = self._history.running_codes(running)
        self._candidates.begin(busy)
        # What is running counts as measured as predicted, so that suggestions do not gather in one place.
        model.assume(space.to_unit(busy))
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
