"""Models of different kinds behind one face, so that they can be compared and blended."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from luthier.learn.forest import Forest
from luthier.learn.gaussian_process import FixedPoints, GaussianProcess, Observations
from luthier.learn.kernels import BoolArray, Family, FloatArray
from luthier.learn.points import IntArray, PointSet

_LEAST_DEVIATION = 0.01
_DOUBT = 0.02  # no chance is below that, or above 1 minus that
_TREE_DOUBT = 0.05


class Watched:
    """Points that predictions are asked for again and again; what each model computed for them is kept."""

    def __init__(self, units: FloatArray) -> None:
        self.units = units
        self._points = PointSet(units)
        self._fixed: dict[GaussianProcess, FixedPoints] = {}
        self._leaves: dict[Forest, tuple[int, IntArray]] = {}

    def fixed(self, process: GaussianProcess) -> FixedPoints:
        """The points as `process` follows them."""
        if process not in self._fixed:
            self._fixed[process] = FixedPoints(self._points)
        return self._fixed[process]

    def leaves(self, forest: Forest) -> IntArray:
        """The leaves of the points in the trees `forest` has now."""
        generation, leaves = self._leaves.get(forest, (-1, None))
        if leaves is None or generation != forest.generation:
            leaves = forest.leaves_of(self._points)
            self._leaves[forest] = (forest.generation, leaves)
        return leaves


class Member(Protocol):
    """A model of targets that have mean 0 and deviation 1, or are 0 and 1."""

    most: int
    """It is too slow for more observations than that."""

    def learn(self, data: Observations) -> None:
        """Take `data` for all that is known."""
        ...

    def unseen(self) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation of each observation it has learnt, predicted without it."""
        ...

    def predict(self, points: Watched) -> tuple[FloatArray, FloatArray, float]:
        """Mean and deviation at points, and the least mean believed in so far."""
        ...

    def noise(self) -> float:
        """The deviation of a single measurement from what is predicted."""
        ...

    def chance(self, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """The chance of a 1, where targets are 0 or 1, given predictions of a measurement."""
        ...

    def believe(self, x: FloatArray) -> None:
        """Pretend that each row of `x` was measured as predicted."""
        ...

    def disbelieve(self) -> None:
        """Take back every `believe`."""
        ...


class GaussianMember:
    """A Gaussian process."""

    most = 1_200

    def __init__(self, ordered: BoolArray, family: Family) -> None:
        self._process = GaussianProcess(ordered, family)

    def learn(self, data: Observations) -> None:
        """Take `data` for all that is known."""
        self._process.learn(data)

    def unseen(self) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation of each observation it has learnt, predicted without it."""
        return self._process.leave_one_out()

    def predict(self, points: Watched) -> tuple[FloatArray, FloatArray, float]:
        """Mean and deviation at points, and the least mean believed in so far."""
        mean, deviation = points.fixed(self._process).predict(self._process)
        least = self._process.to_targets(np.array([self._process.incumbent_standard()]), np.zeros(1))[0]
        return mean, deviation, float(least[0])

    def noise(self) -> float:
        """The deviation of a single measurement from what is predicted."""
        return self._process.noise_deviation()

    def chance(self, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """The chance of a 1 by least-squares classification (Rasmussen & Williams 2006, section 6.5)."""
        from scipy.special import ndtr

        chance = ndtr((mean - 0.5) / np.maximum(deviation, _LEAST_DEVIATION))
        return np.asarray(_DOUBT + (1.0 - 2.0 * _DOUBT) * chance, dtype=np.float64)

    def believe(self, x: FloatArray) -> None:
        """Pretend that each row of `x` was measured as predicted."""
        self._process.believe(x)

    def disbelieve(self) -> None:
        """Take back every `believe`."""
        self._process.disbelieve()


class ForestMember:
    """A forest; its deviation has a floor, as trees that agree may all be wrong."""

    most = 1_000_000

    def __init__(self, ordered: BoolArray, trees: int = 32) -> None:
        self._forest = Forest(ordered, trees)
        self._real = Observations.single(np.empty((0, len(ordered))), np.empty(0))

    def learn(self, data: Observations) -> None:
        """Take `data` for all that is known."""
        self._real = data
        self._forest.learn(data.x, data.y)

    def unseen(self) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation of each observation it has learnt, predicted without it."""
        mean, deviation = self._forest.out_of_bag()
        return mean, np.maximum(deviation, _LEAST_DEVIATION)

    def predict(self, points: Watched) -> tuple[FloatArray, FloatArray, float]:
        """Mean and deviation at points, and the least target so far."""
        mean, deviation = self._forest.predict(points.leaves(self._forest))
        return mean, np.maximum(deviation, _LEAST_DEVIATION), float(self._real.y.min())

    def noise(self) -> float:
        """Nothing: what trees cannot explain is in their deviation."""
        return 0.0

    def chance(self, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """The chance of a 1: the mean, never quite certain."""
        del deviation
        return _TREE_DOUBT + (1.0 - 2.0 * _TREE_DOUBT) * mean

    def believe(self, x: FloatArray) -> None:
        """Pretend that each row of `x` was measured as predicted; the trees stay as they are."""
        if len(x):
            mean, _ = self._forest.predict(self._forest.leaves(x))
            self._forest.drop(x, mean)

    def disbelieve(self) -> None:
        """Take back every `believe`."""
        self._forest.lift(len(self._real.y))


def all_members(ordered: BoolArray) -> Sequence[Member]:
    """One model for smooth functions, one for rough ones, one for functions with sharp borders."""
    return (GaussianMember(ordered, "matern52"), GaussianMember(ordered, "laplace"), ForestMember(ordered))
