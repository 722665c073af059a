"""Tunes first the parameters with the largest expected gain, by a model that adds up an effect for each of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from luthier.arrays import FloatArray, IntArray
from luthier.errors import InvalidInputError
from luthier.learn.linear import one_thread
from luthier.learn.main_effects import MainEffects, fit_effects
from luthier.policies.base import SearchSoFar, Subset
from luthier.space import Parameter, Space
from luthier.trial import Config, Trial

FEWEST = 4
"""With fewer values no effect is estimated."""

# The constants were chosen by experiment: docs/research/2026-11-18-impact-first.md.
_MOST_ROWS = 150
_MOST_VALUES = 24
_CEILING = 2.0  # times the distance from the best to the median: of worse values it does not matter how bad they are
_VISIBLE = 0.1  # a model that explains less explains nothing that can be told from chance


@dataclass(frozen=True, slots=True)
class StatisticalPicker:
    """Tunes as few parameters as have together `enough` of the expected gain, `most` of all at most.

    The gain of a parameter is the expected improvement by the best change of it alone. After each step without an
    improvement but the first, twice as many are tuned, until all are; after an improvement, few again. At least `room`
    configurations must be free.
    """

    enough: float = 0.8
    most: float = 0.5
    room: int = 5

    def __post_init__(self) -> None:
        for name, share in (("enough", self.enough), ("most", self.most)):
            if not 0.0 < share <= 1.0:
                raise InvalidInputError(
                    f"statistical: {name}={share:g} is not a share; give more than 0%, and at most 100%"
                )
        if self.room < 1:
            raise InvalidInputError(f"statistical: room={self.room} is below 1; give a number of configurations")

    def __call__(self, search: SearchSoFar) -> Subset:
        """Return the parameters to tune now, those with the largest expected gain first."""
        names = search.space.names
        known = [trial for trial in search.trials if trial.estimate is not None]
        findings = KnownEffects.of(search.space, known)
        if findings is None:
            return Subset(names, "no differences between configurations are known yet")
        order = np.argsort(-findings.gains, kind="stable")
        reached = np.cumsum(findings.gains[order]) >= self.enough * findings.gains.sum()
        count = min(int(np.argmax(reached)) + 1, max(1, int(self.most * len(names))))
        fruitless = fruitless_steps(search)
        count = min(len(names), count << max(0, min(fruitless - 1, len(names))))
        ranked = [names[at] for at in order]
        count = with_room(search, findings.best, ranked, count, self.room)
        if count == len(names):
            why = f"no better configuration in the last {fruitless} steps" if fruitless > 1 else "all may matter"
            return Subset(tuple(ranked), why)
        return Subset(tuple(ranked[:count]), findings.explained(order[:count], "largest expected gain"))


@dataclass(frozen=True, slots=True)
class KnownEffects:
    """What the values say of each parameter: its expected gain; `best` is the best configuration."""

    effects: MainEffects
    gains: FloatArray
    best: Config

    @staticmethod
    def of(space: Space, known: Sequence[Trial]) -> "KnownEffects | None":
        """Fit a model to the trials, which all have an estimate; None if they do not differ or are too few."""
        values = np.array([trial.estimate.value for trial in known if trial.estimate is not None])
        if len(values) < FEWEST or not values.max() > values.min():
            return None
        rows = _informative(values)
        x = space.to_unit(space.codes([trial.config for trial in known]))
        with one_thread():
            effects = fit_effects(x[rows], scores(values)[rows], np.asarray(space.ordered))
            here = x[int(np.argmin(values))]
            gains = [
                effects.expected_gain(column, _candidates(parameter), float(here[column]))
                if parameter.size != 1
                else 0.0
                for column, parameter in enumerate(space.parameters)
            ]
        return KnownEffects(effects, np.array(gains), known[int(np.argmin(values))].config)

    def explained(self, columns: IntArray, why: str) -> str:
        """A reason with what the parameters in these columns explain, for people."""
        share, count = self.effects.explained(columns), len(self.effects.x)
        if self.effects.explained(np.arange(len(self.gains))) < _VISIBLE:
            return f"{why}, but no effect can be told from chance yet ({count} configurations)"
        verb = "it explains" if len(columns) == 1 else "together they explain"
        return f"{why}; {verb} {100.0 * share:.0f} % of the differences between {count} configurations"


def fruitless_steps(search: SearchSoFar) -> int:
    """How many of the latest steps brought no better value."""
    bests = [*(step.best for step in search.steps), search.best]
    count = 0
    for before, after in zip(bests[-2::-1], bests[:0:-1], strict=True):
        if before is None or after is None or after < before:
            break
        count += 1
    return count


def with_room(search: SearchSoFar, best: Config, ranked: Sequence[str], count: int, room: int) -> int:
    """How many of the ranked parameters to tune, `count` or more, so that this many configurations are free."""
    told = search.space.codes([trial.config for trial in search.trials])
    while count < len(ranked):
        part = search.space.narrowed(best, ranked[:count])
        if part.size is None or part.size - int(part.feasible(told).sum()) >= room:
            break
        count += 1
    return count


def scores(values: FloatArray) -> FloatArray:
    """Values as a model sees them: on a logarithmic scale if they are positive, with a ceiling, standardised."""
    scaled = values / np.abs(values).max()
    if scaled.min() > 0.0:
        scaled = np.log(scaled)
    lowest, middle = scaled.min(), float(np.median(scaled))
    capped = np.minimum(scaled, middle + _CEILING * (middle - lowest)) if middle > lowest else scaled
    deviation = float(np.std(capped))
    return (capped - capped.mean()) / deviation if deviation > 0.0 else np.zeros(len(values))


def _informative(values: FloatArray) -> IntArray:
    """Which trials to fit: all, or of many the latest and the best."""
    if len(values) <= _MOST_ROWS:
        return np.arange(len(values))
    best = np.argsort(values, kind="stable")[: _MOST_ROWS // 2]
    return np.unique(np.concatenate((best, np.arange(len(values) - _MOST_ROWS // 2, len(values)))))


def _candidates(parameter: Parameter) -> FloatArray:
    """The coordinates of the values of a parameter; of many, some that cover its range."""
    size = parameter.size
    if size is not None and size <= _MOST_VALUES:
        return parameter.to_unit(np.arange(size, dtype=np.float64))
    return parameter.to_unit(parameter.from_unit(np.linspace(0.0, 1.0, _MOST_VALUES)))
