"""Where a search by model looks for its next configuration: in the whole space if that is small, else in a sample."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.optimizers.head_start import HeadStart, InformedSampler
from luthier.optimizers.history import History
from luthier.optimizers.surrogates import CachedPoints
from luthier.space import Space
from luthier.trial import Config

WHOLE_LIMIT = 12_000  # with 1,000 observations a model then keeps 100 MB
_POOL = 2_000
_INFORMED = 500
_CENTRES = 5
_MOVES = 40
_ROUNDS = 5
_RENEWAL = 10  # trials after which another pool is drawn
_LARGEST_SHARE = 0.9  # of the turns, for informed configurations
_GOLDEN = 0.6180339887498949  # multiples of it, modulo 1, fill the unit interval evenly
_TIE = 1e-9  # promises that differ by less differ by rounding; one of them is drawn


class Model(Protocol):
    """What a search predicts of configurations, given as rows of the unit cube; it depends on the history only."""

    def learn(self, history: History) -> None:
        """Replace all that is known by `history`."""
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

    def begin(self, running: Sequence[Config]) -> None:
        """Note what was told and what is running: none of it is free."""
        ...

    def best(self, model: Model, rng: np.random.Generator) -> FloatArray | None:
        """The codes of the most promising free configuration, which is taken from then on; None if nothing is left."""
        ...


def _key(codes: FloatArray) -> bytes:
    return (codes + 0.0).tobytes()


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

    def begin(self, running: Sequence[Config]) -> None:
        """Note what was told and what is running: none of it is free."""
        for codes in self._history.codes(self._seen):
            self._untold[self._row[_key(codes)]] = False
        self._seen = len(self._history)
        self._free = self._untold.copy()
        for codes in self._space.codes(list(running)):
            self._free[self._row[_key(codes)]] = False

    def best(self, model: Model, rng: np.random.Generator) -> FloatArray | None:
        """The codes of the most promising free configuration, which is taken from then on; None if nothing is left."""
        if not self._free.any():
            return None
        promise = model.log_promise(self._points)
        row = _highest(np.where(self._free, promise, -np.inf), rng)
        self._free[row] = False
        return np.asarray(self._codes[row], dtype=np.float64)


class Pool:
    """Looks at random configurations and around the best known ones, and climbs from the most promising of them.

    Some of the configurations come from the `sampler`, if there is one.
    """

    def __init__(self, history: History, *, seed: int, sampler: InformedSampler | None = None) -> None:
        self._history, self._space, self._seed, self._sampler = history, history.space, seed, sampler
        self._taken: set[bytes] = set()
        self._running: set[bytes] = set()
        self._seen = 0
        self._drawn_for: int | None = None
        self._codes = np.empty((0, len(self._space.names)))
        self._points = CachedPoints(self._codes)

    def begin(self, running: Sequence[Config]) -> None:
        """Note what was told and what is running: none of it is free."""
        self._taken.update(_key(codes) for codes in self._history.codes(self._seen))
        self._seen = len(self._history)
        self._running = {_key(codes) for codes in self._space.codes(list(running))}

    def best(self, model: Model, rng: np.random.Generator) -> FloatArray | None:
        """The codes of the most promising free configuration, which is taken from then on; None if nothing is left."""
        self._draw()
        promise = model.log_promise(self._points)
        found = self._free_best(self._codes, promise, rng)
        around = self._space.to_unit(self._codes[np.argsort(-promise, kind="stable")[:_CENTRES]])
        around = np.concatenate((around, self._best_told()))
        for _ in range(_ROUNDS):
            codes = neighbourhood(self._space, around, rng)
            promise = model.log_promise(CachedPoints(self._space.to_unit(codes), once=True))
            better = self._free_best(codes, promise, rng)
            if better is None or (found is not None and better[0] <= found[0]):
                break
            found = better
            around = self._space.to_unit(found[1][None, :])
        chosen = found[1] if found is not None else self._any(rng)
        if chosen is not None:
            self._running.add(_key(chosen))
        return chosen

    def _draw(self) -> None:
        # A pool is kept for some trials: predictions for it then cost little more than a row for each of them.
        number = len(self._history) // _RENEWAL
        if number != self._drawn_for:
            self._drawn_for = number
            rng = np.random.default_rng([self._seed, number, 5])
            self._codes = self._space.sample_codes(_POOL, rng)
            if self._sampler is not None:
                self._codes = np.concatenate((self._codes, self._sampler.codes(_INFORMED, rng)))
            self._points = CachedPoints(self._space.to_unit(self._codes))

    def _best_told(self) -> FloatArray:
        measured = [row for row, trial in enumerate(self._history.trials) if trial.estimate is not None]
        measured.sort(key=self._value)
        return self._history.units()[measured[:_CENTRES]]

    def _value(self, row: int) -> float:
        estimate = self._history.trials[row].estimate
        return np.inf if estimate is None else estimate.value

    def _free_best(
        self, codes: FloatArray, promise: FloatArray, rng: np.random.Generator
    ) -> tuple[float, FloatArray] | None:
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
    """Looks at informed configurations only, or at all, in turns; the share of the former follows their success."""

    def __init__(self, history: History, others: Candidates, head_start: HeadStart, *, seed: int) -> None:
        self._history, self._others, self._head_start, self._seed = history, others, head_start, seed
        self._busy: list[Config] = []
        self._share = 0.0
        self._drawn_for: int | None = None
        self._codes = np.empty((0, len(history.space.names)))
        self._points = CachedPoints(self._codes)

    def begin(self, running: Sequence[Config]) -> None:
        """Note what was told and what is running: none of it is free."""
        self._others.begin(running)
        self._busy = list(running)
        self._share = _LARGEST_SHARE * self._head_start.trust(self._history)

    def best(self, model: Model, rng: np.random.Generator) -> FloatArray | None:
        """The codes of the most promising free configuration, which is taken from then on; None if nothing is left."""
        turn = len(self._history) + len(self._busy)
        chosen = self._informed(model) if (turn * _GOLDEN) % 1.0 < self._share else None
        if chosen is None:
            chosen = self._others.best(model, rng)
        if chosen is not None:
            self._busy.append(self._history.space.decode(chosen))
            self._others.begin(self._busy)
        return chosen

    def _informed(self, model: Model) -> FloatArray | None:
        number, space, sampler = len(self._history) // _RENEWAL, self._history.space, self._head_start.sampler
        if sampler is None:
            return None
        if number != self._drawn_for:
            self._drawn_for = number
            self._codes = sampler.codes(_INFORMED, np.random.default_rng([self._seed, number, 6]))
            self._points = CachedPoints(space.to_unit(self._codes))
        promise, taken = model.log_promise(self._points), self._history.taken(self._busy)
        for row in np.argsort(-promise, kind="stable"):
            if space.decode(self._codes[row]) not in taken:
                return np.asarray(self._codes[row], dtype=np.float64)
        return None


def candidates_of(history: History, head_start: HeadStart | None, *, seed: int) -> Candidates:
    """Where to look in the space of `history`."""
    size = history.space.size
    sampler = None if head_start is None else head_start.sampler
    small = size is not None and size <= WHOLE_LIMIT
    others: Candidates = WholeGrid(history) if small else Pool(history, seed=seed, sampler=sampler)
    if sampler is None or head_start is None or not head_start.draws_candidates:
        return others
    return GuardedCandidates(history, others, head_start, seed=seed)


def neighbourhood(space: Space, centres: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Codes of valid points around `centres` (rows of the unit cube): one or two parameters moved, near or far."""
    units = np.repeat(centres, _MOVES, axis=0)
    moved = np.zeros(units.shape, dtype=np.bool_)
    for _ in range(2):
        moved[np.arange(len(units)), rng.integers(units.shape[1], size=len(units))] = True
    sizes = np.array([np.inf if parameter.size is None else parameter.size for parameter in space.parameters])
    # Steps of many sizes, but of one grid cell at least; categories have no near and far.
    steps = np.maximum(1.0 / sizes, 0.5 * rng.random(units.shape) ** 4)
    near = units + np.where(rng.random(units.shape) < 0.5, -steps, steps)
    target = np.where(np.asarray(space.ordered), np.clip(near, 0.0, 1.0), rng.random(units.shape))
    codes = space.from_unit(np.where(moved, target, units))
    return codes[space.feasible(codes)]
