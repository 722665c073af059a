"""Models of different kinds behind one interface, so that they can be compared and blended."""

import math
from collections.abc import Callable, Sequence
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np

from luthier.arrays import BoolArray, FloatArray, IntArray
from luthier.learn.forest import Forest
from luthier.learn.gaussian_process import FixedPoints, GaussianProcess, Observations
from luthier.learn.kernels import Family
from luthier.learn.points import PointSet

_LEAST_DEVIATION = 0.01  # targets have deviation 1: no model is more certain than that
_LEAST_CHANCE = 0.02  # and 1 minus it the largest: one of several models cannot exclude a configuration alone
_LEAST_TREE_CHANCE = 0.05  # the same for a forest


class CachedPoints:
    """Points to predict at; what each model computes for them is kept, unless they are needed `once` only."""

    def __init__(self, units: FloatArray, *, once: bool = False) -> None:
        self.units, self._once = units, once
        self._points = PointSet(units)
        # Weak keys: models are made anew at each snapshot, and what was kept for the old ones goes with them.
        self._fixed: WeakKeyDictionary[GaussianProcess, FixedPoints] = WeakKeyDictionary()
        self._leaves: WeakKeyDictionary[Forest, tuple[int, IntArray]] = WeakKeyDictionary()
        self._kept: WeakKeyDictionary[Callable[[FloatArray], FloatArray], FloatArray] = WeakKeyDictionary()

    def fixed(self, process: GaussianProcess) -> FixedPoints:
        """What is kept of `process` for the points."""
        if process not in self._fixed:
            self._fixed[process] = FixedPoints(self._points, in_blocks=not self._once)
        return self._fixed[process]

    def kept(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """The values of a function that never changes, at the points."""
        if function not in self._kept:
            self._kept[function] = function(self.units)
        return self._kept[function]

    def leaves(self, forest: Forest) -> IntArray:
        """The leaves of the points in the trees `forest` has now."""
        generation, leaves = self._leaves.get(forest, (-1, None))
        if leaves is None or generation != forest.generation:
            leaves = forest.leaves_of(self._points)
            self._leaves[forest] = (forest.generation, leaves)
        return leaves


class Surrogate(Protocol):
    """A model of targets that have mean 0 and deviation 1, or are 0 and 1.

    Its predictions depend only on the data of the last `fit` and of the last `condition`.
    """

    most: int
    """The number of observations above which it is too slow."""

    belief: float
    """Its initial weight in an ensemble."""

    def fit(self, data: Observations) -> None:
        """Replace all known data by `data`, and make the expensive choices (hyper-parameters, trees)."""
        ...

    def condition(self, data: Observations) -> None:
        """Replace all known data by `data`, and keep the choices of the last `fit`."""
        ...

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of each observation of the last `fit`, predicted without it."""
        ...

    def predict(self, points: CachedPoints) -> tuple[FloatArray, FloatArray, float]:
        """Mean and standard deviation at points, and the lowest mean so far."""
        ...

    def noise(self) -> float:
        """The standard deviation of a single measurement from what is predicted."""
        ...

    def log_chance(self, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """The logarithm of the chance of a 1, where targets are 0 or 1, given predictions of a measurement."""
        ...

    def assume(self, x: FloatArray) -> None:
        """Assume that each row of `x` was measured as predicted."""
        ...

    def forget_assumed(self) -> None:
        """Undo every `assume`."""
        ...


class GaussianSurrogate:
    """A Gaussian process."""

    most = 1_200
    belief = 1.0

    def __init__(self, ordered: BoolArray, family: Family, *, least_chance: float = _LEAST_CHANCE) -> None:
        self._process, self._least_chance = GaussianProcess(ordered, family), least_chance

    def fit(self, data: Observations) -> None:
        """Replace all known data by `data`, and choose the hyper-parameters."""
        self._process.fit(data, from_prior=True)

    def condition(self, data: Observations) -> None:
        """Replace all known data by `data`, and keep the hyper-parameters of the last `fit`."""
        self._process.condition(data)

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of each observation of the last `fit`, predicted without it."""
        return self._process.leave_one_out()

    def predict(self, points: CachedPoints) -> tuple[FloatArray, FloatArray, float]:
        """Mean and standard deviation at points, and the lowest mean at the points observed or assumed."""
        mean, deviation = points.fixed(self._process).predict(self._process)
        least = self._process.to_targets(np.array([self._process.incumbent_standard()]), np.zeros(1))[0]
        return mean, deviation, float(least[0])

    def noise(self) -> float:
        """The standard deviation of a single measurement from what is predicted."""
        return self._process.noise_deviation()

    def log_chance(self, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """The log chance of a 1 by least-squares classification (Rasmussen & Williams 2006, section 6.5)."""
        from scipy.special import log_ndtr

        log_chance = np.asarray(log_ndtr((mean - 0.5) / np.maximum(deviation, _LEAST_DEVIATION)), dtype=np.float64)
        if self._least_chance == 0.0:
            return log_chance
        # c + (1 - 2c) times the chance, in logarithms: between c and 1 - c.
        return np.logaddexp(math.log(self._least_chance), math.log1p(-2.0 * self._least_chance) + log_chance)

    def assume(self, x: FloatArray) -> None:
        """Assume that each row of `x` was measured as predicted."""
        self._process.assume(x)

    def forget_assumed(self) -> None:
        """Undo every `assume`."""
        self._process.forget_assumed()


class ForestSurrogate:
    """A forest. Its deviation has a lower limit, because trees that agree may all be wrong."""

    most = 1_000_000
    belief = 1.0

    def __init__(self, ordered: BoolArray, trees: int = 32) -> None:
        self._forest = Forest(ordered, trees)
        self._measured = Observations.single(np.empty((0, len(ordered))), np.empty(0))

    def fit(self, data: Observations) -> None:
        """Replace all known data by `data`, and grow trees."""
        self._measured = data
        self._forest.grow(data.x, data.y)

    def condition(self, data: Observations) -> None:
        """Replace all known data by `data`, and keep the trees of the last `fit`."""
        self._measured = data
        self._forest.fill(data.x, data.y)

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of each observation of the last `fit`, by the trees that did not draw it."""
        mean, deviation = self._forest.out_of_bag()
        return mean, np.maximum(deviation, _LEAST_DEVIATION)

    def predict(self, points: CachedPoints) -> tuple[FloatArray, FloatArray, float]:
        """Mean and standard deviation at points, and the lowest target so far."""
        mean, deviation = self._forest.predict(points.leaves(self._forest))
        return mean, np.maximum(deviation, _LEAST_DEVIATION), float(self._measured.y.min())

    def noise(self) -> float:
        """0: what trees cannot explain is part of their deviation."""
        return 0.0

    def log_chance(self, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """The log chance of a 1: the mean, kept away from 0 and 1."""
        del deviation
        return np.log(_LEAST_TREE_CHANCE + (1.0 - 2.0 * _LEAST_TREE_CHANCE) * mean)

    def assume(self, x: FloatArray) -> None:
        """Assume that each row of `x` was measured as predicted; the trees stay as they are."""
        if len(x):
            # Another target at the present mean leaves the mean as it is and lowers the variance of the leaf.
            leaves = self._forest.known_leaves(x)
            self._forest.add(leaves, self._forest.predict(leaves)[0])

    def forget_assumed(self) -> None:
        """Undo every `assume`."""
        self._forest.remove_added()


def all_surrogates(ordered: BoolArray) -> Sequence[Surrogate]:
    """One model for smooth functions, one for rough ones, one for functions with sharp borders."""
    # Each is the best on some measured systems: docs/research/2026-11-15-search-models.md.
    return GaussianSurrogate(ordered, "matern52"), GaussianSurrogate(ordered, "laplace"), ForestSurrogate(ordered)
