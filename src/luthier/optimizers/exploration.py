"""When models see nothing, and where to look then."""

import numpy as np

from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.learn.kernels import BoolArray, FloatArray
from luthier.optimizers.members import Watched

_BY_CHANCE = 2.0  # observations: of n, a model may explain so many out of n of the variance by chance


def sees_nothing(y: FloatArray, unseen: FloatArray) -> bool:
    """Whether predictions, each made without its own observation, are hardly better than the mean of the others.

    On a plateau the values differ by noise alone. A model takes that for a slope and climbs it, where there is nothing.
    """
    unit = max(float(np.max(np.abs(y))), float(np.max(np.abs(unseen))))
    if unit == 0.0:
        return True
    y, unseen = y / unit, unseen / unit  # squares of values of any size
    others = len(y) / max(len(y) - 1, 1) * (y - y.mean())  # how far each is from the mean of the others
    return bool(np.sum((y - unseen) ** 2) >= (1.0 - _BY_CHANCE / len(y)) * np.sum(others**2))


class Exploration:
    """Looks at the point farthest from all known, and anywhere, in turns, whatever was measured.

    Far away means corners and edges, where systems often behave differently; chance looks in the middle as well.
    """

    def __init__(self, ordered: BoolArray, *, seed: int) -> None:
        self._seed = seed
        self._process = GaussianProcess(ordered)  # never fitted: its deviation grows with the distance

    def learn(self, x: FloatArray) -> None:
        """Take the rows of `x` for all that is known."""
        self._process.learn(Observations.single(x, np.zeros(len(x))))

    def believe(self, x: FloatArray) -> None:
        """Pretend that the rows of `x` are known, too."""
        self._process.believe(x)

    def disbelieve(self) -> None:
        """Take back every `believe`."""
        self._process.disbelieve()

    def log_promise(self, points: Watched) -> FloatArray:
        """How promising each point is, in this turn."""
        known = len(self._process.x)
        return self.by_chance(points, known) if known % 2 else self.by_distance(points)

    def by_chance(self, points: Watched, turn: int) -> FloatArray:
        """Each point as promising as any other, in another order each turn."""
        return np.random.default_rng([self._seed, turn]).random(len(points.units))

    def by_distance(self, points: Watched) -> FloatArray:
        """The farther, the more promising."""
        return np.log(points.fixed(self._process).predict_standard(self._process)[1])
