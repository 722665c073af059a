"""Subset picking for a tuner of another program: the function that TunIO calls `subset_picker`."""

import math
from collections.abc import Iterable, Mapping, Sequence

from luthier.errors import InvalidInputError
from luthier.policies import make_picker
from luthier.policies.base import SearchSoFar, TunedStep
from luthier.space import Space
from luthier.texts import shown
from luthier.trial import Completed, Config, Estimate, Failed, Trial, Value

Evaluated = tuple[Mapping[str, Value], float | None]
"""A configuration and its performance; None if it failed."""


class SubsetPicking:
    """Tells a tuner after each of its iterations which parameters to tune in the next one.

    Call it with the best performance so far (higher is better) and the parameters that were tuned, as the function
    `subset_picker` of TunIO (Rajesh et al. 2024, table I). It returns the names to tune next, the most important first;
    the others keep the values of the best configuration. `reason` tells why.

    With the configurations that were `evaluated` in the iteration it knows which values were tried; without them it
    only sees which subsets brought an improvement, and `statistical` then always tunes everything.
    """

    def __init__(self, space: Space, how: str = "auto", *, seed: int = 0) -> None:
        self._space, self._picker, self._seed = space, make_picker(how), seed
        self._steps: list[TunedStep] = []
        self._trials: dict[Config, Trial] = {}
        self._best: float | None = None
        self.reason = ""

    def __call__(self, perf: float, current: Sequence[str], evaluated: Iterable[Evaluated] = ()) -> tuple[str, ...]:
        """Return the names of the parameters to tune in the next iteration."""
        if isinstance(perf, bool) or not isinstance(perf, int | float) or not math.isfinite(perf):
            raise InvalidInputError(f"perf: {shown(perf)} is not a finite number; give the best performance so far")
        names = tuple(current)
        if not names or set(names) - set(self._space.names):
            known = ", ".join(self._space.names)
            raise InvalidInputError(f"current: {shown(list(names))} are not parameters that were tuned; known: {known}")
        for config, value in evaluated:
            self._note(self._space.check(config), value)
        self._steps.append(TunedStep(names, len(self._steps), self._best))
        self._best = -float(perf) if self._best is None else min(self._best, -float(perf))
        trials = list(self._trials.values())
        count = max(len(trials), len(self._steps))
        subset = self._picker(SearchSoFar(self._space, trials, self._steps, count, self._best, self._seed))
        self.reason = subset.reason
        return subset.names

    def _note(self, config: Config, value: float | None) -> None:
        if value is None:
            self._trials[config] = Trial(config, (Failed("no value"),), None)
            return
        if not math.isfinite(value):
            raise InvalidInputError(f"evaluated: {config} has {value!r}; give None for a run that failed")
        self._trials[config] = Trial(config, (Completed(-float(value)),), Estimate(-float(value), 1))


def subset_picker(space: Space, how: str = "auto", *, seed: int = 0) -> SubsetPicking:
    """What tells the loop of another tuner which parameters to tune in its next iteration.

    Make it once, `pick = subset_picker(space)`, then call it after each iteration: `names = pick(perf, names)`.
    `how` is `auto`, `learned`, `statistical` or the name of a plug-in.
    """
    return SubsetPicking(space, how, seed=seed)
