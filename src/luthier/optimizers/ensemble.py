"""Several models at once, each trusted as far as it predicts what it has not seen."""

from collections.abc import Callable, Sequence

import numpy as np

from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.learn.kernels import BoolArray, FloatArray
from luthier.optimizers.acquisition import ACQUISITIONS, Acquisition
from luthier.optimizers.exploration import Exploration, sees_nothing
from luthier.optimizers.members import GaussianMember, Member, Watched, all_members
from luthier.optimizers.surrogate import bounds_and_failures, expected_above, observations
from luthier.optimizers.warp import Warp
from luthier.trial import Trial

_RECONSIDER = 5  # the weights are set anew when one in so many observations is new
_EFFECTIVE = 15.0  # evidence counts as that of so many observations at most, as the past of a search is no fair sample
_FLOOR = 0.3  # this part of the weight is shared out equally: every model is heard
_GOLDEN = 0.6180339887498949  # multiples of it, modulo 1, fill the unit interval evenly
_RENEWAL = 10  # other candidates are looked at after so many trials
_PATIENCE, _RISE, _LARGEST_DOUBT = 5, 10.0, 3.0
_LOST, _BLIND = 15, 4  # after so many runs without news, one turn in so many asks no model: chance sees what none does
_NEWS = 0.01  # of the best value: what is better by less is no news
_HONEST = 0.3  # a deviation is taken to be at least this part of the typical error
_FARTHEST = 4.0  # in deviations; one surprise alone does not condemn a model


class Blend:
    """Models of the same targets; the weight of each follows its predictions of observations left out.

    It `is_blind` while none of them sees anything in what was observed.
    """

    def __init__(self, members: Sequence[Member], *, is_binary: bool) -> None:
        self._members, self._is_binary = members, is_binary
        self.weights = self._equal = np.full(len(members), 1.0 / len(members))
        self.is_blind = True
        self._considered = 0
        self._data: Observations | None = None
        self._behind: set[int] = set()

    def learn(self, data: Observations) -> None:
        """Take `data` for all that is known; a model follows when it is needed."""
        self._data, self._behind = data, set(range(len(self._members)))
        count = len(data.y)
        able = np.array([count <= member.most for member in self._members])
        due = count >= self._considered + max(1, self._considered // _RECONSIDER)
        if due or np.any(~able & (self.weights > 0.0)):
            self._considered = count
            self.weights = self._weigh(data.y, able)

    def _member(self, at: int) -> Member:
        """A model that knows all there is to know."""
        if at in self._behind and self._data is not None:
            self._members[at].learn(self._data)
            self._behind.remove(at)
        return self._members[at]

    def _weigh(self, y: FloatArray, able: BoolArray) -> FloatArray:
        score, self.is_blind = np.full(len(able), -np.inf), True
        for at in np.flatnonzero(able).tolist():
            member = self._member(at)
            mean, deviation = member.unseen()
            known = y[: len(mean)]
            score[at] = self._score(member, known, mean, deviation)
            self.is_blind = self.is_blind and sees_nothing(known, mean)
        score -= score.max()
        weights = np.exp(score * min(len(y), _EFFECTIVE))
        self._equal = able / able.sum()
        return np.asarray((1.0 - _FLOOR) * weights / weights.sum() + _FLOOR * self._equal, dtype=np.float64)

    def _score(self, member: Member, y: FloatArray, mean: FloatArray, deviation: FloatArray) -> float:
        """The mean log probability of the observations, each predicted without itself."""
        if self._is_binary:
            chance = member.chance(mean, deviation)
            return float(np.mean(np.log(np.where(y > 0.5, chance, 1.0 - chance))))
        miss = y - mean
        deviation = np.maximum(np.hypot(deviation, _HONEST * np.sqrt(np.mean(miss * miss))), 1e-9)
        return float(np.mean(-0.5 * np.minimum(np.abs(miss) / deviation, _FARTHEST) ** 2 - np.log(deviation)))

    def active(self) -> list[tuple[float, Member]]:
        """The models that count, with their weights."""
        return [(float(weight), self._member(at)) for at, weight in enumerate(self.weights) if weight > 0.0]

    def of_turn(self, turn: int, doubt: float) -> Member:
        """The model whose turn it is: turns are shared out by weight, and the more evenly, the larger the `doubt`."""
        even = (min(doubt * _FLOOR, 1.0) - _FLOOR) / (1.0 - _FLOOR)
        shares = np.cumsum((1.0 - even) * self.weights + even * self._equal)
        at = int(np.searchsorted(shares, (turn * _GOLDEN) % 1.0, side="right"))
        return self._member(min(at, int(np.flatnonzero(self._equal)[-1])))

    def log_chance(self, points: Watched) -> FloatArray:
        """The log of the chance that a target is 1."""
        total = np.zeros(len(points.units))
        for weight, member in self.active():
            mean, deviation, _ = member.predict(points)
            total += weight * member.chance(mean, np.hypot(deviation, member.noise()))
        return np.log(total)

    def believe(self, x: FloatArray) -> None:
        """Pretend that each row of `x` was measured as predicted."""
        for _, member in self.active() if len(x) else []:
            member.believe(x)

    def disbelieve(self) -> None:
        """Take back every `believe`."""
        for member in self._members:
            member.disbelieve()


class Ensemble:
    """How good a configuration is by several models in turns, and how likely it is to run at all by all of them."""

    def __init__(
        self,
        ordered: BoolArray,
        members: Callable[[BoolArray], Sequence[Member]] = all_members,
        acquisition: Acquisition = "ei",
        *,
        seed: int,
    ) -> None:
        self._values = Blend(members(ordered), is_binary=False)
        self._successes = Blend(members(ordered), is_binary=True)
        self._acquisition = ACQUISITIONS[acquisition]
        self._doubt, self._is_lost = 1.0, False
        self._bounded = GaussianProcess(ordered)
        self._exploration = Exploration(ordered, seed=seed)
        self._measured = self._failures = self._told = self._turn = self._renewed = 0
        self.version = object()

    def learn(self, x: FloatArray, trials: Sequence[Trial]) -> None:
        """Take `trials` at the rows of `x` for all that is known."""
        measured = np.array([trial.estimate is not None for trial in trials], dtype=np.bool_)
        bounds, broken = bounds_and_failures(trials)
        self._measured, self._failures = int(measured.sum()), int(broken.sum())
        if len(trials) >= self._renewed + _RENEWAL:
            self._renewed, self.version = len(trials), object()
        self._told = self._turn = len(trials)
        if self._measured:
            self._learn_values(x, trials, measured, bounds)
        if self._values.is_blind:
            self._exploration.learn(x[measured | broken | np.isfinite(bounds)])
        if self._failures:
            known = measured | broken
            self._successes.learn(Observations.single(x[known], measured[known].astype(np.float64)))

    def _learn_values(self, x: FloatArray, trials: Sequence[Trial], measured: BoolArray, bounds: FloatArray) -> None:
        data = observations(x[measured], [trial.estimate for trial in trials if trial.estimate is not None])
        warp = Warp.of(data.y)
        self._doubt, self._is_lost = _doubt(data.y), _idle(data.y, _NEWS) >= _LOST
        data = Observations(data.x, warp(data.y), data.share, warp.errors(data.y, data.error))
        bounded = np.isfinite(bounds)
        if bounded.any():
            known = measured | bounded
            y, share, error = np.empty(len(x)), np.ones(len(x)), np.zeros(len(x))
            y[measured], share[measured], error[measured] = data.y, data.share, data.error
            y[bounded] = warp(bounds[bounded])
            if self._measured <= GaussianMember.most:
                self._bounded.learn(data)
                y[bounded] = expected_above(self._bounded, x[bounded], y[bounded])
            data = Observations(x[known], y[known], share[known], error[known])
        self._values.learn(data)

    def log_promise(self, points: Watched) -> FloatArray:
        """How promising each point is: by the model whose turn it is, plus the log chance that it yields a number.

        When nothing new was found for long, some turns are left to chance, which knows no plateaus. Before anything was
        measured, and where no model sees anything in what was, it explores.
        """
        if self._measured and self._is_lost and self._turn % _BLIND == 0:
            promise = self._exploration.by_chance(points, self._turn)
        elif not self._values.is_blind:
            mean, deviation, least = self._values.of_turn(self._turn, self._doubt).predict(points)
            promise = self._acquisition(mean, self._doubt * deviation, least)
        else:
            promise = self._exploration.log_promise(points)
        return promise + self._successes.log_chance(points) if self._failures else promise

    def believe(self, x: FloatArray) -> None:
        """Pretend that each row of `x` was measured as predicted."""
        self._turn += len(x)
        if self._measured:
            self._values.believe(x)
        if self._values.is_blind:
            self._exploration.believe(x)

    def disbelieve(self) -> None:
        """Take back every `believe`."""
        self._turn = self._told
        self._values.disbelieve()
        self._exploration.disbelieve()


def _doubt(y: FloatArray) -> float:
    """How much more uncertain than it says a model is taken to be: the more, the longer nothing better was found."""
    return min(1.0 + max(_idle(y, 0.0) - _PATIENCE, 0) / _RISE, _LARGEST_DOUBT)


def _idle(y: FloatArray, margin: float) -> int:
    """How many runs there were since the best value was known but for a `margin`, a part of its size."""
    best = float(np.min(y))
    return len(y) - 1 - int(np.argmax(y <= best + margin * abs(best)))
