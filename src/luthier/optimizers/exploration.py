"""When models explain nothing, and where to look then."""

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.optimizers.surrogates import CachedPoints

_BY_CHANCE = 2.0  # observations: of n, a model may explain so many out of n of the variance by chance


def explains_nothing(y: FloatArray, left_out: FloatArray) -> bool:
    """Whether predictions, each made without its own observation, are hardly better than the mean of the others.

    On a plateau the values differ by noise alone. A model takes that for a slope and follows it, where there is none.
    """
    unit = max(float(np.max(np.abs(y))), float(np.max(np.abs(left_out))))
    if unit == 0.0:
        return True
    y, left_out = y / unit, left_out / unit  # squares of values of any size
    others = len(y) / max(len(y) - 1, 1) * (y - y.mean())  # how far each is from the mean of the others
    return bool(np.sum((y - left_out) ** 2) >= (1.0 - _BY_CHANCE / len(y)) * np.sum(others**2))


class Exploration:
    """Looks at the point farthest from all known ones and at a random point, in turns, whatever was measured.

    Far away means corners and edges, where systems often behave differently; random points lie in the middle as well.
    """

    def __init__(self, ordered: BoolArray, *, seed: int) -> None:
        self._seed = seed
        self._process = GaussianProcess(ordered)  # never fitted: its deviation grows with the distance

    def learn(self, x: FloatArray) -> None:
        """Take the rows of `x` for all that is known."""
        self._process.condition(Observations.single(x, np.zeros(len(x))))

    def assume(self, x: FloatArray) -> None:
        """Assume that the rows of `x` are known, too."""
        self._process.assume(x)

    def forget_assumed(self) -> None:
        """Take back every `assume`."""
        self._process.forget_assumed()

    def log_promise(self, points: CachedPoints) -> FloatArray:
        """How promising each point is, in this turn."""
        known = len(self._process.x)
        return self.at_random(points, known) if known % 2 else self.by_distance(points)

    def at_random(self, points: CachedPoints, turn: int) -> FloatArray:
        """Each point as promising as any other, in another order each turn."""
        return np.random.default_rng([self._seed, turn]).random(len(points.units))

    def by_distance(self, points: CachedPoints) -> FloatArray:
        """The farther, the more promising."""
        return np.log(points.fixed(self._process).predict_standard(self._process)[1])
