"""When models explain nothing, and where to look then."""

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.optimizers.surrogates import CachedPoints

_BY_CHANCE = 2.0  # a model of n observations may explain 2 / n of the variance by chance


def explains_nothing(y: FloatArray, left_out: FloatArray) -> bool:
    """Whether predictions, each made without its own observation, are hardly better than the mean of the others.

    On a plateau the values differ by noise only. A model may take that for a slope and follow it.
    """
    unit = max(float(np.max(np.abs(y))), float(np.max(np.abs(left_out))))
    if unit == 0.0:
        return True
    y, left_out = y / unit, left_out / unit  # so that no square overflows or vanishes
    others = len(y) / max(len(y) - 1, 1) * (y - y.mean())  # how far each is from the mean of the others
    return bool(np.sum((y - left_out) ** 2) >= (1.0 - _BY_CHANCE / len(y)) * np.sum(others**2))


class Exploration:
    """Prefers the point farthest from all known ones and a random point in turns, whatever was measured.

    The farthest points are corners and edges, where systems often behave differently; random points cover the middle.
    """

    def __init__(self, ordered: BoolArray, *, seed: int) -> None:
        self._seed = seed
        self._process = GaussianProcess(ordered)  # never fitted: its deviation grows with the distance

    def learn(self, x: FloatArray) -> None:
        """Replace all known points by the rows of `x`."""
        self._process.condition(Observations.single(x, np.zeros(len(x))))

    def assume(self, x: FloatArray) -> None:
        """Assume that the rows of `x` are known, too."""
        self._process.assume(x)

    def forget_assumed(self) -> None:
        """Undo every `assume`."""
        self._process.forget_assumed()

    def log_promise(self, points: CachedPoints) -> FloatArray:
        """How promising each point is, in this turn."""
        known = len(self._process.x)
        return self.at_random(points, known) if known % 2 else self.by_distance(points)

    def at_random(self, points: CachedPoints, turn: int) -> FloatArray:
        """A random order of the points, another one each turn."""
        return np.random.default_rng([self._seed, turn]).random(len(points.units))

    def by_distance(self, points: CachedPoints) -> FloatArray:
        """The farther, the more promising."""
        return np.log(points.fixed(self._process).predict_standard(self._process)[1])
