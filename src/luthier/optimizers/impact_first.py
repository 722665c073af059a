"""Impact first: a search in which only some parameters are tuned at a time, while the others keep the best values."""

import sys
from collections.abc import Callable, Collection, Sequence

from luthier.errors import InvalidInputError
from luthier.optimizers.base import Optimizer
from luthier.policies.base import SearchSoFar, Subset, SubsetPicker, TunedStep
from luthier.space import Space
from luthier.texts import shown
from luthier.trial import Config, Trial

STEP = 5
"""How many configurations are tried between two decisions."""

START = 10
"""How many are tried before the first decision; fewer if the budget is small."""

_OF_BUDGET = 4  # of a small budget, one part in four comes before the first decision
_FIRST_PART = 0.5  # of the budget; the rest is for all parameters, so that what was left out costs little in the end


class TunedParts:
    """Which part of the space is tuned, as decided by a picker after every few of the trials that were told.

    `subset` are the parameters tuned now, `steps` all decisions so far. `part` is the space in which the others keep
    the best values that were known at the last decision; None while all parameters are tuned.
    """

    def __init__(self, space: Space, picker: SubsetPicker, *, seed: int, budget: int | None = None) -> None:
        self._space, self._picker, self._seed = space, picker, seed
        self._last = None if budget is None else max(_FIRST_PART * budget, 1.0)
        self._next = START if budget is None else max(1, min(START, budget // _OF_BUDGET))
        self.trials: dict[Config, Trial] = {}
        self.subset = Subset(space.names, "nothing is known yet")
        self.steps = [TunedStep(space.names, 0, None, self.subset.reason)]
        self.part: Space | None = None

    def tell(self, trial: Trial) -> None:
        """Note a trial, and decide again if that is due."""
        self.trials[trial.config] = trial
        if len(self.trials) >= self._next:
            self._next = len(self.trials) + STEP
            self._decide()

    def _decide(self) -> None:
        trials = list(self.trials.values())
        best = _best(trials)
        value = None if best is None or best.estimate is None else best.estimate.value
        # Not in the paper (Rajesh et al. 2024, III-C): a parameter that was left out by mistake gets its chance.
        if self._last is not None and len(trials) >= self._last:
            self.subset = Subset(self._space.names, "the second half of the budget is for all of them")
            self._next = sys.maxsize
        else:
            # Rajesh et al. 2024, III-C: the performance and the present subset lead to the next subset.
            so_far = SearchSoFar(self._space, trials, self.steps, len(trials), value, self._seed)
            self.subset = _checked(self._picker(so_far), self._space)
        self.steps.append(TunedStep(self.subset.names, len(trials), value, self.subset.reason))
        self.part = None
        if not set(self._space.names) <= set(self.subset.names):
            config = self._space.default if best is None else best.config
            self.part = self._space.narrowed(config, self.subset.names)


class ImpactFirst:
    """Lets another optimizer search in the part of the space that is tuned now.

    That optimizer is made for each part and told the whole history, also what lies outside of the part; `make` makes it
    for a space. While all parameters are tuned, and where a part has no free configuration left, the one for the whole
    space answers, which is the same as without a picker.
    """

    def __init__(
        self,
        space: Space,
        make: Callable[[Space], Optimizer],
        picker: SubsetPicker,
        *,
        seed: int,
        budget: int | None = None,
    ) -> None:
        self.tuned = TunedParts(space, picker, seed=seed, budget=budget)
        self._make, self._whole = make, make(space)
        self._log: list[Trial] = []
        self._search: tuple[Space, Optimizer] | None = None
        self._told = 0

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        part, taken, chosen = self.tuned.part, {*self.tuned.trials, *running}, list[Config]()
        if part is not None and not part.is_used_up(taken):
            # An optimizer for a part may suggest points outside of it, such as its initial design.
            chosen = _free(part, self._search_in(part).ask(count, running), taken)
        if part is None or not chosen or part.is_used_up(taken.union(chosen)):
            chosen += self._whole.ask(count - len(chosen), [*running, *chosen])
        return chosen

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials, and decide again what is tuned when that is due."""
        self._whole.tell(finished)
        for trial in finished:
            self._log.append(trial)
            self.tuned.tell(trial)

    def _search_in(self, part: Space) -> Optimizer:
        """The optimizer for a part of the space, told what happened."""
        # A new part needs a new optimizer, which is told everything that happened before.
        if self._search is None or self._search[0] is not part:
            self._search, self._told = (part, self._make(part)), 0
        optimizer = self._search[1]
        optimizer.tell(self._log[self._told :])
        self._told = len(self._log)
        return optimizer


def _checked(subset: Subset, space: Space) -> Subset:
    """The subset, if it has parameters of the space."""
    if not subset.names or not set(subset.names) <= set(space.names):
        raise InvalidInputError(
            f"impact_first: the picker chose {shown(list(subset.names))}, which are not parameters; ask its author"
        )
    return subset


def _best(trials: Sequence[Trial]) -> Trial | None:
    """The trial with the lowest estimate; of equal ones, the earliest."""
    values = [(trial.estimate.value, at) for at, trial in enumerate(trials) if trial.estimate is not None]
    return trials[min(values)[1]] if values else None


def _free(part: Space, suggested: Sequence[Config], taken: Collection[Config]) -> list[Config]:
    """Those of an optimizer's suggestions that lie in the part and are free."""
    if not suggested:
        return []
    inside = part.feasible(part.codes(suggested))
    return [config for config, fits in zip(suggested, inside, strict=True) if fits and config not in taken]
