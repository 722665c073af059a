"""Where a search by model looks for its next configuration: in the whole space if that is small, else in a sample."""

from typing import Protocol, TypeAlias

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.optimizers.head_start import HeadStart, InformedSampler
from luthier.optimizers.history import History
from luthier.optimizers.surrogates import CachedPoints
from luthier.space import Space

# In a small space every configuration is looked at; chosen in docs/research/2026-11-15-search-models.md.
WHOLE_LIMIT = 12_000  # with 1,000 observations a model then keeps 100 MB
POOL = 2_000
"""How many random configurations are looked at in a larger space."""

_INFORMED = 500  # configurations drawn from earlier experiments
_CENTRES = 5  # points to look around: the best of the pool, and as many of the history
_MOVES = 40  # neighbours drawn for each of them
_ROUNDS = 5  # steps of a climb
_RENEWAL = 10  # trials after which another pool is drawn
# Of the suggestions of one ask, the first 16 and then every 16th are searched for by climbing, as a climb is slow.
# Measured in docs/research/2026-11-18-many-workers.md.
_CLIMBS = 16
_LARGEST_SHARE = 0.9  # of the turns, for informed configurations
_GOLDEN = 0.6180339887498949  # multiples of it, modulo 1, fill the unit interval evenly
_TIE = 1e-9  # promises that differ by less differ by rounding; one of them is drawn


_Found: TypeAlias = tuple[float, FloatArray] | None
"""How promising a configuration is, and its codes."""


class Model(Protocol):
    """What a search predicts of configurations, given as rows of the unit cube; it depends on the history only."""

    def learn(self, history: History, slots: int = 1) -> None:
        """Replace all that is known by `history`; a model that is too slow for so many `slots` is not used."""
        ...

    def log_promise(self, points: CachedPoints) -> FloatArray:
        """How promising each point is."""
        ...

    def assume(self, x: FloatArray) -> None:
        """Assume that each row of `x` was measured as predicted."""
        ...

    def forget_assumed(self) -> None:
        """Undo every `assume`."""
        ...


class Candidates(Protocol):
    """Finds the most promising configuration that is free."""

    def begin(self, running: FloatArray) -> None:
        """Note what was told, and the codes of what is running: none of it is free."""
        ...

    def best(self, model: Model, rng: np.random.Generator) -> FloatArray | None:
        """The codes of the most promising free configuration, which is taken from then on; None if nothing is left."""
        ...

    def take(self, codes: FloatArray) -> None:
        """Note that a configuration is not free any more."""
        ...


def _key(codes: FloatArray) -> bytes:
    # Adding 0 turns -0.0 into 0.0: they are equal, but their bytes are not.
    return (codes + 0.0).tobytes()


def _better(first: _Found, second: _Found) -> _Found:
    return first if second is None or (first is not None and second[0] <= first[0]) else second


def _highest(promise: FloatArray, rng: np.random.Generator) -> int:
    best = np.flatnonzero(promise >= promise.max() - _TIE)
    return int(best[rng.integers(len(best))])


class WholeGrid:
    """Looks at every configuration of a small space."""

    def __init__(self, history: History) -> None:
        self._history, self._space = history, history.space
        self._codes = self._space.grid()
        self._points = CachedPoints(self._space.to_unit(self._codes))
        self._row = {_key(codes): row for row, codes in enumerate(self._codes)}
        self._untold: BoolArray = np.ones(len(self._codes), dtype=np.bool_)
        self._free = self._untold
        self._seen = 0

    def begin(self, running: FloatArray) -> None:
        """Note what was told, and the codes of what is running: none of it is free."""
        for codes in self._history.codes(self._seen):
            if (row := self._row.get(_key(codes))) is not None:  # a narrowed space is told of others as well
                self._untold[row] = False
        self._seen = len(self._history)
        self._free = self._untold.copy()
        for codes in running:
            if (row := self._row.get(_key(codes))) is not None:
                self._free[row] = False

    def best(self, model: Model, rng: np.random.Generator) -> FloatArray | None:
        """The codes of the most promising free configuration, which is taken from then on; None if nothing is left."""
        if not self._free.any():
            return None
        promise = model.log_promise(self._points)
        row = _highest(np.where(self._free, promise, -np.inf), rng)
        self._free[row] = False
        return np.asarray(self._codes[row], dtype=np.float64)

    def take(self, codes: FloatArray) -> None:
        """Note that a configuration is not free any more."""
        self._free[self._row[_key(codes)]] = False


class Pool:
    """Looks at random configurations and around the best known ones, and climbs from the most promising of them.

    Some of the configurations come from the `sampler`, if there is one.
    """

    def __init__(
        self, history: History, size: int = POOL, *, seed: int, sampler: InformedSampler | None = None
    ) -> None:
        self._history, self._space, self._size = history, history.space, size
        self._seed, self._sampler = seed, sampler
        self._taken: set[bytes] = set()
        self._running: set[bytes] = set()
        self._seen = 0
        self._drawn_for: int | None = None
        self._codes = np.empty((0, len(self._space.names)))
        self._points = CachedPoints(self._codes)
        self._picked = 0
        self._near: tuple[FloatArray, CachedPoints] | None = None

    def begin(self, running: FloatArray) -> None:
        """Note what was told, and the codes of what is running: none of it is free."""
        self._taken.update(_key(codes) for codes in self._history.codes(self._seen))
        self._seen = len(self._history)
        self._running = {_key(codes) for codes in running}
        self._picked, self._near = 0, None

    def best(self, model: Model, rng: np.random.Generator) -> FloatArray | None:
        """The codes of the most promising free configuration, which is taken from then on; None if nothing is left."""
        self._draw()
        promise = model.log_promise(self._points)
        found = self._free_best(self._codes, promise, rng)
        if self._picked < _CLIMBS or self._picked % _CLIMBS == 0 or self._near is None:
            found = self._climb(model, promise, found, rng)
        else:
            # Without a climb: the best of the pool and of the neighbours that the last climb has predicted already.
            codes, points = self._near
            found = _better(found, self._free_best(codes, model.log_promise(points), rng))
        self._picked += 1
        chosen = found[1] if found is not None else self._any(rng)
        if chosen is not None:
            self.take(chosen)
        return chosen

    def take(self, codes: FloatArray) -> None:
        """Note that a configuration is not free any more."""
        self._running.add(_key(codes))

    def _climb(self, model: Model, promise: FloatArray, found: _Found, rng: np.random.Generator) -> _Found:
        """Look around the most promising points of the pool, then around the best point found, while that improves."""
        around = self._space.to_unit(self._codes[np.argsort(-promise, kind="stable")[:_CENTRES]])
        around = np.concatenate((around, self._history.best(_CENTRES)))
        for _ in range(_ROUNDS):
            codes = neighbourhood(self._space, around, rng)
            points = CachedPoints(self._space.to_unit(codes), once=True)
            self._near = codes, points
            better = self._free_best(codes, model.log_promise(points), rng)
            if better is None or _better(found, better) is found:
                break
            found = better
            around = self._space.to_unit(found[1][None, :])
        return found

    def _draw(self) -> None:
        # A pool is kept for some trials: predictions for it then cost little more than a row for each of them.
        number = len(self._history) // _RENEWAL
        if number != self._drawn_for:
            self._drawn_for = number
            rng = np.random.default_rng([self._seed, number, 5])
            self._codes = self._space.sample_codes(self._size, rng)
            if self._sampler is not None:
                self._codes = np.concatenate((self._codes, self._sampler.codes(_INFORMED, rng)))
            self._points = CachedPoints(self._space.to_unit(self._codes))

    def _free_best(self, codes: FloatArray, promise: FloatArray, rng: np.random.Generator) -> _Found:
        ordered = np.argsort(-promise, kind="stable")  # mostly the first one is free, and the others are not checked
        best = next((row for row in ordered if self._is_free(codes[row])), None)
        if best is None:
            return None
        free = [row for row in np.flatnonzero(promise >= promise[best] - _TIE) if self._is_free(codes[row])]
        row = free[_highest(promise[free], rng)]
        return float(promise[row]), codes[row]

    def _is_free(self, codes: FloatArray) -> bool:
        key = _key(codes)
        return key not in self._taken and key not in self._running

    def _any(self, rng: np.random.Generator) -> FloatArray | None:
        running = (self._space.decode(np.frombuffer(key)) for key in self._running)
        left = self._space.sample(1, rng, exclude=self._history.taken(running))
        return self._space.codes(left)[0] if left else None


class GuardedCandidates:
    """Looks in turns at informed configurations only, or at all; the share of the former follows their success."""

    def __init__(self, history: History, others: Candidates, head_start: HeadStart, *, seed: int) -> None:
        self._history, self._others, self._head_start, self._seed = history, others, head_start, seed
        self._taken: set[bytes] = set()
        self._share = 0.0
        self._drawn_for: int | None = None
        self._codes = np.empty((0, len(history.space.names)))
        self._points = CachedPoints(self._codes)

    def begin(self, running: FloatArray) -> None:
        """Note what was told, and the codes of what is running: none of it is free."""
        self._others.begin(running)
        self._taken = {_key(codes) for codes in (*self._history.codes(), *running)}
        self._share = _LARGEST_SHARE * self._head_start.trust(self._history)

    def best(self, model: Model, rng: np.random.Generator) -> FloatArray | None:
        """The codes of the most promising free configuration, which is taken from then on; None if nothing is left."""
        # Informed turns are spread evenly, in the same way as the turns of models in `ensemble`.
        chosen = self._informed(model) if (len(self._taken) * _GOLDEN) % 1.0 < self._share else None
        if chosen is None:
            chosen = self._others.best(model, rng)
        if chosen is not None:
            self.take(chosen)
        return chosen

    def take(self, codes: FloatArray) -> None:
        """Note that a configuration is not free any more."""
        self._taken.add(_key(codes))
        self._others.take(codes)

    def _informed(self, model: Model) -> FloatArray | None:
        number, space, sampler = len(self._history) // _RENEWAL, self._history.space, self._head_start.sampler
        if sampler is None:
            return None
        if number != self._drawn_for:
            self._drawn_for = number
            self._codes = sampler.codes(_INFORMED, np.random.default_rng([self._seed, number, 6]))
            self._points = CachedPoints(space.to_unit(self._codes))
        ordered = np.argsort(-model.log_promise(self._points), kind="stable")
        return next((self._codes[row] for row in ordered if _key(self._codes[row]) not in self._taken), None)


def candidates_of(history: History, head_start: HeadStart | None, pool: int, *, seed: int) -> Candidates:
    """Where to look in the space of `history`: in a large one, at `pool` random configurations and around the best."""
    size = history.space.size
    sampler = None if head_start is None else head_start.sampler
    small = size is not None and size <= WHOLE_LIMIT
    others: Candidates = WholeGrid(history) if small else Pool(history, pool, seed=seed, sampler=sampler)
    if sampler is None or head_start is None or not head_start.draws_candidates:
        return others
    return GuardedCandidates(history, others, head_start, seed=seed)


def neighbourhood(space: Space, centres: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Codes of valid points around `centres` (rows of the unit cube): one or two parameters moved, near or far."""
    units = np.repeat(centres, _MOVES, axis=0)
    moved = np.zeros(units.shape, dtype=np.bool_)
    columns = np.flatnonzero(space.movable) if space.movable.any() else np.arange(units.shape[1])
    # Both draws may hit the same column: one or two parameters move.
    for _ in range(2):
        moved[np.arange(len(units)), columns[rng.integers(len(columns), size=len(units))]] = True
    sizes = np.array([np.inf if parameter.size is None else parameter.size for parameter in space.parameters])
    # Steps of many sizes, but of one grid cell at least; categories have no near and far.
    steps = np.maximum(1.0 / sizes, 0.5 * rng.random(units.shape) ** 4)
    near = units + np.where(rng.random(units.shape) < 0.5, -steps, steps)
    # The fourth power above makes most steps small.
    target = np.where(np.asarray(space.ordered), np.clip(near, 0.0, 1.0), rng.random(units.shape))
    codes = space.from_unit(np.where(moved, target, units))
    return codes[space.feasible(codes)]
