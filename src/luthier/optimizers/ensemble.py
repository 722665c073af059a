"""Several models at once, each trusted as far as it predicts what it has not seen."""

import math
from collections.abc import Sequence

import numpy as np

from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.learn.kernels import BoolArray, FloatArray
from luthier.optimizers.acquisition import log_expected_improvement
from luthier.optimizers.members import Member, Watched, all_members
from luthier.optimizers.surrogate import at_least, failed, observations
from luthier.optimizers.warp import Warp
from luthier.trial import Trial

_RECONSIDER = 5  # the weights are set anew when one in so many observations is new
_EFFECTIVE = 25.0  # evidence counts as that of so many observations at most, as the past of a search is no fair sample
_NEGLIGIBLE = 0.02
_DOUBT = 0.02  # no chance of success is below that, none of failure either
_LEAST_DEVIATION = 1e-3


class Blend:
    """Models of the same targets; the weight of each follows its predictions of observations left out."""

    def __init__(self, members: Sequence[Member], *, is_binary: bool) -> None:
        self._members, self._is_binary = members, is_binary
        self.weights = np.full(len(members), 1.0 / len(members))
        self._considered = 0

    def learn(self, data: Observations) -> None:
        """Take `data` for all that is known."""
        count = len(data.y)
        able = np.array([count <= member.most for member in self._members])
        due = count >= self._considered + max(1, self._considered // _RECONSIDER)
        for member, weight in zip(self._members, np.where(able, self.weights, 0.0), strict=True):
            if weight > 0.0 or (due and count <= member.most):
                member.learn(data)
        if due:
            self._considered = count
            self.weights = self._weigh(data.y, able)

    def _weigh(self, y: FloatArray, able: BoolArray) -> FloatArray:
        score = np.array(
            [self._score(member, y) if can else -np.inf for member, can in zip(self._members, able, strict=True)]
        )
        score -= score.max()
        weights = np.exp(score * min(1.0, _EFFECTIVE / len(y)))
        weights[weights < _NEGLIGIBLE * weights.sum()] = 0.0
        return np.asarray(weights / weights.sum(), dtype=np.float64)

    def _score(self, member: Member, y: FloatArray) -> float:
        """The log probability of the observations, each predicted without itself."""
        mean, deviation = member.unseen()
        y = y[: len(mean)]
        if self._is_binary:
            chance = _chance(mean, deviation, 0.0)
            return float(np.log(np.where(y > 0.5, chance, 1.0 - chance)).sum()) * len(y) / max(len(mean), 1)
        deviation = np.maximum(deviation, _LEAST_DEVIATION)
        return float(np.sum(-0.5 * ((y - mean) / deviation) ** 2 - np.log(deviation)))

    def active(self) -> list[tuple[float, Member]]:
        """The models that count, with their weights."""
        return [(float(w), m) for w, m in zip(self.weights, self._members, strict=True) if w > 0.0]

    def log_improvement(self, points: Watched) -> FloatArray:
        """The log of the expected improvement, expected over the models too."""
        parts = []
        for weight, member in self.active():
            mean, deviation, least = member.predict(points)
            parts.append(math.log(weight) + log_expected_improvement(mean, deviation, least))
        return np.asarray(np.logaddexp.reduce(parts, axis=0), dtype=np.float64)

    def log_chance(self, points: Watched) -> FloatArray:
        """The log of the chance that a target is 1."""
        total = np.zeros(len(points.units))
        for weight, member in self.active():
            mean, deviation, _ = member.predict(points)
            total += weight * _chance(mean, deviation, member.noise())
        return np.log(total)

    def believe(self, x: FloatArray) -> None:
        """Pretend that each row of `x` was measured as predicted."""
        for _, member in self.active():
            member.believe(x)

    def disbelieve(self) -> None:
        """Take back every `believe`."""
        for _, member in self.active():
            member.disbelieve()


def _chance(mean: FloatArray, deviation: FloatArray, noise: float) -> FloatArray:
    """The chance of a 1 by least-squares classification (Rasmussen & Williams 2006, section 6.5)."""
    from scipy.special import ndtr

    chance = ndtr((mean - 0.5) / np.maximum(np.hypot(deviation, noise), _LEAST_DEVIATION))
    return np.asarray(_DOUBT + (1.0 - 2.0 * _DOUBT) * chance, dtype=np.float64)


class Ensemble:
    """What `auto` believes: how good a configuration is, and how likely it is to run at all."""

    def __init__(self, ordered: BoolArray) -> None:
        self._values = Blend(all_members(ordered), is_binary=False)
        self._successes = Blend(all_members(ordered), is_binary=True)
        self._bounded = GaussianProcess(ordered)
        self._nothing = GaussianProcess(ordered)
        self._measured = self._failures = 0
        self.version: object = 0

    def learn(self, x: FloatArray, trials: Sequence[Trial]) -> None:
        """Take `trials` at the rows of `x` for all that is known."""
        measured = np.array([trial.estimate is not None for trial in trials], dtype=np.bool_)
        bounds = np.array([np.nan if trial.estimate else at_least(trial) for trial in trials])
        broken = np.array([failed(trial) for trial in trials], dtype=np.bool_)
        bounded = np.isfinite(bounds) & bool(measured.any())
        broken &= ~bounded
        self._measured, self._failures = int(measured.sum()), int(broken.sum())
        self.version = len(trials) // 10
        if self._measured:
            self._learn_values(x, trials, measured, bounds)
        if self._failures:
            known = measured | broken
            self._successes.learn(Observations.single(x[known], measured[known].astype(np.float64)))

    def _learn_values(self, x: FloatArray, trials: Sequence[Trial], measured: BoolArray, bounds: FloatArray) -> None:
        data = observations(x[measured], [trial.estimate for trial in trials if trial.estimate is not None])
        warp = Warp.of(data.y)
        data = Observations(data.x, warp(data.y), data.share, warp.errors(data.y, data.error))
        bounded = np.isfinite(bounds)
        if bounded.any():
            self._bounded.learn(data)
            known = measured | bounded
            y, share, error = np.empty(len(x)), np.ones(len(x)), np.zeros(len(x))
            y[measured], share[measured], error[measured] = data.y, data.share, data.error
            y[bounded] = _expected_above(self._bounded, x[bounded], warp(bounds[bounded]))
            data = Observations(x[known], y[known], share[known], error[known])
        self._values.learn(data)

    def log_promise(self, points: Watched) -> FloatArray:
        """How promising each point is: its log expected improvement plus the log chance that it yields a number.

        Before anything was measured, the points farthest from those tried are the most promising.
        """
        if self._measured:
            promise = self._values.log_improvement(points)
        else:
            promise = np.log(points.fixed(self._nothing).predict_standard(self._nothing)[1])
        return promise + self._successes.log_chance(points) if self._failures else promise

    def believe(self, x: FloatArray) -> None:
        """Pretend that each row of `x` was measured as predicted."""
        if self._measured:
            self._values.believe(x)
        else:
            self._nothing.believe(x)

    def disbelieve(self) -> None:
        """Take back every `believe`."""
        self._values.disbelieve()
        self._nothing.disbelieve()


def _expected_above(process: GaussianProcess, x: FloatArray, bound: FloatArray) -> FloatArray:
    """The mean of a normal prediction given that it lies above a bound: the E step of a Tobit model (Tobin 1958)."""
    from scipy.special import log_ndtr

    mean, deviation = process.predict(x)
    a = (bound - mean) / deviation
    hazard = np.exp(-0.5 * a * a - 0.5 * math.log(2.0 * math.pi) - log_ndtr(-a))
    return np.asarray(np.maximum(mean + deviation * hazard, bound), dtype=np.float64)
