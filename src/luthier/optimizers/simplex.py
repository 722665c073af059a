"""What searches by simplex share: the landscape they move on, and how their steps become answers to ask and tell.

An algorithm is written as its paper writes it: a generator that pauses with a `Request` whenever it needs values.
Between two requests it only looks at what was told, so the same history always leads to the same state.

Categories have no direction: all vertices of a simplex share those of its centre. Where a simplex has collapsed, the
other categories of its best vertex are tried beside the neighbouring values, and the search goes on from a better one.
"""

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.optimizers.history import History
from luthier.optimizers.vicinity import adjacent, nearest_free
from luthier.space import Parameter, Space
from luthier.trial import Config, Trial

_CLOSE = 0.005  # continuous coordinates nearer than this share of their range coincide
_ROUNDING = 1e-9  # differences in the unit cube that are due to rounding
_RETREATS = (0.75, 0.5, 0.25)  # shares of the way from the centre, tried in turn for a point that breaks a constraint


@dataclass(frozen=True, slots=True)
class RowsNeeded:
    """Rows of codes whose values an algorithm needs before it goes on, and rows it is likely to need after that."""

    needed: FloatArray
    maybe_next: FloatArray | None = None


Steps: TypeAlias = Generator[RowsNeeded, None, None]


class Landscape:
    """The space as a simplex sees it: projections onto valid points, and the values told so far."""

    def __init__(self, space: Space, seed: int) -> None:
        self.space, self._seed, self._starts = space, seed, 0
        self.values: dict[Config, float] = {}  # of every configuration told; infinite without a number
        sizes = [parameter.size for parameter in space.parameters]
        self._finite = np.array([size is not None for size in sizes])
        self._moves: BoolArray = np.asarray(space.ordered) & space.movable
        self.axes = [int(column) for column in np.flatnonzero(self._moves)]
        self._categories = [column for column in range(len(sizes)) if not space.parameters[column].ordered]
        self._low, self._high = np.array([_ends(parameter) for parameter in space.parameters]).T

    def middle(self) -> FloatArray:
        """The codes in the middle of every axis, with the default categories; if that is invalid, the default."""
        default = self.space.codes([self.space.default])[0]
        halfway = self.space.from_unit(np.full((1, len(default)), 0.5))[0]
        codes: FloatArray = np.where(self._moves, halfway, default)
        return codes if self.space.feasible(codes[None, :])[0] else default

    def draw(self) -> FloatArray | None:
        """The codes of a random configuration that was not told yet; None if all were told."""
        rng = np.random.default_rng([self._seed, self._starts, 3])  # a stream of its own, beside those of the asks
        self._starts += 1
        drawn = self.space.sample(1, rng, exclude=self.values.keys())
        return self.space.codes(drawn)[0] if drawn else None

    def value(self, row: FloatArray) -> float:
        """The value of a configuration that was told; infinite if it has no number."""
        return self.values[self.space.decode(row)]

    def ranked(self, rows: FloatArray) -> FloatArray:
        """The rows in order of their values, the best first."""
        return rows[np.argsort([self.value(row) for row in rows], kind="stable")]

    def unit(self, rows: FloatArray) -> FloatArray:
        """The rows in the unit cube."""
        return self.space.to_unit(np.atleast_2d(rows))

    def project(self, centre: FloatArray, targets: FloatArray, *, inward: bool = True) -> FloatArray:
        """The codes of valid points for `targets` in the unit cube (Tabatabaee et al. 2005, section 3.2.1).

        They are clamped to the bounds; a discrete coordinate is rounded towards `centre`, or, unless `inward`, to the
        nearest value; categories are those of the centre. What breaks a constraint retreats towards the valid centre.
        """
        here = self.unit(centre)
        targets = np.clip(targets, self._low, self._high)
        codes = self._rounded(centre, here, targets, inward=inward)
        for share in _RETREATS:
            bad = ~self.space.feasible(codes)
            if not bad.any():
                return codes
            # The paper has bounds and grids only; constraints between parameters are ours.
            codes[bad] = self._rounded(centre, here, here + share * (targets[bad] - here), inward=True)
        codes[~self.space.feasible(codes)] = centre
        return codes

    def _rounded(self, centre: FloatArray, here: FloatArray, targets: FloatArray, *, inward: bool) -> FloatArray:
        codes = self.space.from_unit(targets)
        if inward:
            way = np.sign(targets - here)
            # Section 3.2.1: of the two admissible values around the target, the one closer to the centre.
            beyond = (self.unit(codes) - targets) * way > _ROUNDING
            codes = np.where(beyond & self._finite, codes - way, codes)
        return np.where(self._moves, codes, centre)

    def around(self, centre: FloatArray, reach: float) -> FloatArray:
        """The 2N points P(c ± b_i e_i), b_i the `reach` in the range of axis i, one value at least; valid ones only."""
        rows = []
        for axis in self.axes:
            for way in (reach, -reach):
                target = self.unit(centre)
                target[0, axis] += way * (self._high[axis] - self._low[axis])
                row = self.project(centre, target)[0]
                # Rounded back to the centre: the next value instead, or the simplex would have no extent on this axis.
                if row[axis] == centre[axis] and self._finite[axis]:
                    row[axis] += math.copysign(1.0, way)
                rows.append(row)
        if not rows:
            return np.empty((0, len(centre)))
        codes = np.stack(rows)
        sizes = [math.inf if parameter.size is None else parameter.size for parameter in self.space.parameters]
        inside = np.all(~self._finite | ((codes >= 0.0) & (codes < sizes)), axis=1)
        inside &= np.any(codes != centre, axis=1)
        valid: FloatArray = codes[inside][self.space.feasible(codes[inside])]
        return valid

    def coincide(self, rows: FloatArray) -> bool:
        """Whether all rows are the same point, or closer together than matters."""
        # Section 3.2.2: discrete coordinates must be the same, continuous ones very close.
        spread = np.ptp(self.unit(rows), axis=0)
        return bool(np.all(spread <= np.where(self._finite, 0.0, _CLOSE)))

    def improve(self, best: FloatArray, reach: float) -> "Generator[RowsNeeded, None, FloatArray | None]":
        """Try the neighbours of `best`; the simplex to go on with, or None if none of them is better.

        Tabatabaee et al. 2005, section 3.2.2. A better category begins a new simplex of the first one's `reach`.
        """
        near = adjacent(self.space, best, self.axes)
        other = adjacent(self.space, best, self._categories)
        tried = np.concatenate((near, other))
        if len(tried) == 0:
            return None
        yield RowsNeeded(tried)
        values = [self.value(row) for row in tried]
        first = int(np.argmin(values))
        if not values[first] < self.value(best):
            return None
        # As in the paper, the simplex of the 2N neighbours goes on.
        if first < len(near):
            return np.concatenate((best[None, :], near))
        # Categories are ours: nothing is known around the better one, so a new simplex begins there.
        return np.concatenate((tried[first : first + 1], self.around(tried[first], reach)))


def _ends(parameter: Parameter) -> FloatArray:
    """The lowest and the highest value in the unit interval; discrete ones lie in the middle of their cells."""
    size = parameter.size
    return np.array([0.0, 1.0]) if size is None else parameter.to_unit(np.array([0.0, size - 1.0]))


class SimplexSearch:
    """Runs an algorithm by ask and tell: suggests what it requests, and lets it go on when all of that was told.

    What was told before is not suggested. Where more is asked for than the algorithm needs, the answer is filled up
    with what it may need next, then with free configurations next to the best one.
    """

    def __init__(self, space: Space, seed: int, steps: Callable[[Landscape], Steps]) -> None:
        self._history, self._landscape, self._seed = History(space), Landscape(space, seed), seed
        self._steps = steps(self._landscape)
        self._over = False
        self._needed: list[Config] = []
        self._maybe_next: list[Config] = []
        self._go_on()

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        rng = self._history.generator(self._seed, running)
        taken = self._history.taken(running)
        chosen: list[Config] = []
        for config in (*self._needed, *self._maybe_next):
            if len(chosen) < count and config not in taken:
                chosen.append(config)
                taken.add(config)
        while len(chosen) < count and (spare := self._spare(taken, rng)) is not None:
            chosen.append(spare)
            taken.add(spare)
        return chosen

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials, and go on as far as they allow; one without a number is worse than any other."""
        self._history.tell(finished)
        for trial in finished:
            self._landscape.values[trial.config] = math.inf if trial.estimate is None else trial.estimate.value
            self._go_on()

    def _go_on(self) -> None:
        while not self._over and all(config in self._landscape.values for config in self._needed):
            request = next(self._steps, None)
            self._over = request is None
            self._needed = [] if request is None else self._landscape.space.configs(request.needed)
            later = None if request is None else request.maybe_next
            self._maybe_next = [] if later is None else self._landscape.space.configs(later)

    def _spare(self, taken: set[Config], rng: np.random.Generator) -> Config | None:
        space, values = self._landscape.space, self._landscape.values
        best = min(values, key=values.__getitem__, default=None)
        if best is None or values[best] == math.inf:
            return next(iter(space.sample(1, rng, exclude=taken)), None)
        return nearest_free(space, space.codes([best])[0], taken, rng)
