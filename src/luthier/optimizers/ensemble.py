"""One model or several; each has the more weight, the better it predicts observations left out.

While no model explains anything, the search explores.
"""

from collections.abc import Callable, Sequence

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.optimizers.acquisition import ACQUISITIONS, Acquisition
from luthier.optimizers.head_start import HeadStart
from luthier.optimizers.history import FEW_SLOTS, History
from luthier.optimizers.informed import InformedSurrogate, PooledSurrogate
from luthier.optimizers.scales import MakeScale, Warp, scaled
from luthier.optimizers.surrogates import CachedPoints, GaussianSurrogate, Surrogate, all_surrogates
from luthier.optimizers.targets import KnownTargets, expected_above
from luthier.trial import Trial

# The constants were chosen by experiment: docs/decisions/0004-search.md.
_EFFECTIVE = 15.0  # the weights follow so many observations at most: those of a search are no random sample
_EQUAL_SHARE = 0.3  # of the weight, divided equally, so that every model is used
_GOLDEN = 0.6180339887498949  # multiples of it, modulo 1, fill the unit interval evenly
# Deviations are enlarged by a factor, the doubt, while nothing better is found.
_PATIENCE = 5  # runs before it begins to grow
_RISE = 10.0  # further runs in which it grows by 1
_LARGEST_DOUBT = 3.0
# Chosen in docs/research/2026-11-16-random-suggestions.md.
_RANDOM_AFTER = 15  # runs without improvement before some suggestions are drawn at random
_RANDOM_EVERY = 4  # then every fourth
_IMPROVEMENT = 0.01  # of the best value: the least that counts as an improvement
_LARGEST_CHANCE = 1.0 - 1e-12  # a model that is certain and wrong is not infinitely bad
_SMALL = 1e-100
_LEAST_ERROR = 0.3  # of the typical error: the least deviation a prediction is given
_FARTHEST = 4.0  # deviations: larger errors count as this, so that one of them does not decide alone
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


class Blend:
    """Models of the same targets; the weight of each follows its predictions of observations left out.

    `explains_nothing` is true while no model predicts left-out observations better than their mean.
    """

    def __init__(self, surrogates: Sequence[Surrogate], *, is_binary: bool) -> None:
        self._surrogates, self._is_binary = surrogates, is_binary
        self._belief = np.array([surrogate.belief for surrogate in surrogates])
        self.weights = self._fit_weights = self._equal = self._belief / self._belief.sum()
        self.explains_nothing = True
        self._data: Observations | None = None
        self._outdated: set[int] = set()

    def fit(self, data: Observations, crowd: int) -> None:
        """Fit every model that is fast enough to `data`, and set the weights."""
        able = self._able(data, crowd)
        score, self.explains_nothing = np.full(len(able), -np.inf), True
        for at in np.flatnonzero(able).tolist():
            surrogate = self._surrogates[at]
            surrogate.fit(data)
            mean, deviation = surrogate.left_out()
            score[at] = self._score(surrogate, data.y, mean, deviation)
            self.explains_nothing = self.explains_nothing and explains_nothing(data.y, mean)
        # Bayes' rule with pseudo-likelihoods, each from observations that were left out (Geisser & Eddy 1979).
        weights = self._belief * np.exp((score - score.max()) * min(len(data.y), _EFFECTIVE))
        equal = able / able.sum()
        self._fit_weights = np.asarray((1.0 - _EQUAL_SHARE) * weights / weights.sum() + _EQUAL_SHARE * equal)

    def learn(self, data: Observations, crowd: int) -> None:
        """Replace all known data by `data`; a model is updated when it is needed."""
        self._data, self._outdated = data, set(range(len(self._surrogates)))
        able = self._able(data, crowd)
        self._equal = able / able.sum()
        weights = self._fit_weights * able
        self.weights = weights / weights.sum() if weights.any() else self._equal

    def _able(self, data: Observations, crowd: int) -> BoolArray:
        """Which models are fast enough for so much data; all of them if none is.

        While a model is fitted, every slot may wait: with `crowd` times as many, it has to be faster.
        """
        able = np.array([crowd * len(data.y) <= surrogate.most for surrogate in self._surrogates])
        return able if able.any() else ~able

    def _surrogate(self, at: int) -> Surrogate:
        """A model, updated with all known data."""
        if at in self._outdated and self._data is not None:
            self._surrogates[at].condition(self._data)
            self._outdated.remove(at)
        return self._surrogates[at]

    def _score(self, surrogate: Surrogate, y: FloatArray, mean: FloatArray, deviation: FloatArray) -> float:
        """The mean log probability of the observations, each predicted without itself."""
        if len(self._surrogates) == 1:
            return 0.0  # nothing to compare with
        if self._is_binary:
            log_chance = surrogate.log_chance(mean, deviation)
            chance = np.minimum(np.exp(log_chance), _LARGEST_CHANCE)
            return float(np.mean(np.where(y > 0.5, log_chance, np.log1p(-chance))))
        # Otherwise the log density of a normal prediction, without its constant.
        unit = float(np.max(np.abs(y)))
        if not _SMALL < unit < 1.0 / _SMALL:  # so that no square overflows or vanishes
            y, mean, deviation = (
                np.clip(each / (unit or 1.0), -1.0 / _SMALL, 1.0 / _SMALL) for each in (y, mean, deviation)
            )
        miss = y - mean
        # A model that misses often may not claim to be precise.
        deviation = np.maximum(np.hypot(deviation, _LEAST_ERROR * np.sqrt(np.mean(miss * miss))), 1e-9)
        return float(np.mean(-0.5 * np.minimum(np.abs(miss) / deviation, _FARTHEST) ** 2 - np.log(deviation)))

    def active(self) -> list[tuple[float, Surrogate]]:
        """The models with a weight above 0, and their weights."""
        return [(float(weight), self._surrogate(at)) for at, weight in enumerate(self.weights) if weight > 0.0]

    def of_turn(self, turn: int, doubt: float) -> Surrogate:
        """The model whose turn it is: turns are divided by weight, and the more evenly, the larger the `doubt`."""
        # 0 without doubt (1.0): turns by weight. The larger the doubt, the closer to equal turns.
        even = (min(doubt * _EQUAL_SHARE, 1.0) - _EQUAL_SHARE) / (1.0 - _EQUAL_SHARE)
        shares = np.cumsum((1.0 - even) * self.weights + even * self._equal)
        # After any number of turns, each model has had about its share of them; a random draw would scatter more.
        at = int(np.searchsorted(shares, (turn * _GOLDEN) % 1.0, side="right"))
        return self._surrogate(min(at, int(np.flatnonzero(self._equal)[-1])))

    def log_chance(self, points: CachedPoints) -> FloatArray:
        """The log of the chance that a target is 1."""
        # The chance by a mixture is the sum of weights times chances; here in logarithms.
        total = np.full(len(points.units), -np.inf)
        for weight, surrogate in self.active():
            mean, deviation, _ = surrogate.predict(points)
            log_chance = surrogate.log_chance(mean, np.hypot(deviation, surrogate.noise()))
            total = np.logaddexp(total, np.log(weight) + log_chance)
        return total

    def assume(self, x: FloatArray) -> None:
        """Assume that each row of `x` was measured as predicted."""
        for _, surrogate in self.active() if len(x) else []:
            surrogate.assume(x)

    def forget_assumed(self) -> None:
        """Undo every `assume`."""
        for surrogate in self._surrogates:
            surrogate.forget_assumed()


class Ensemble:
    """Predicts values of configurations by one of its models in turn, and by all models whether they succeed.

    Predictions depend on the history only. Hyper-parameters, trees and weights come from the last snapshot; then the
    models are conditioned on all trials.

    The models see values on a scale that `choose_scale` picks at a snapshot. If it `explores_when_stuck`, deviations
    are enlarged while nothing better is found, and after a while some suggestions are drawn at random.
    """

    def __init__(
        self,
        ordered: BoolArray,
        surrogates: Callable[[BoolArray], Sequence[Surrogate]] = all_surrogates,
        acquisition: Acquisition = "ei",
        *,
        seed: int,
        explores_when_stuck: bool = True,
        choose_scale: Callable[[Observations], MakeScale] = lambda _: Warp.of,
        head_start: HeadStart | None = None,
    ) -> None:
        self._ordered, self._make, self._head_start = ordered, surrogates, head_start
        self._explores_when_stuck, self._choose_scale = explores_when_stuck, choose_scale
        self._acquisition = ACQUISITIONS[acquisition]
        self._exploration = Exploration(ordered, seed=seed)
        self._snapshot: Sequence[Trial] | None = None
        self._crowd = 1
        self._doubt, self._is_stuck = 1.0, False
        self._measured = self._told = self._turn = 0
        self._predicts_failures = False
        self._forget_fit()

    def _forget_fit(self) -> None:
        self._values = Blend(self._models_of_values(), is_binary=False)
        self._successes = Blend(self._models_of_successes(), is_binary=True)
        self._bounded = GaussianProcess(self._ordered)
        self._scale: MakeScale = Warp.of

    def _models_of_values(self) -> list[Surrogate]:
        """The models; with a head start, each of them informed by earlier experiments and not."""
        mean = None if self._head_start is None else self._head_start.values
        informed = [InformedSurrogate(inner, mean) for inner in self._make(self._ordered)] if mean else []
        return [*informed, *self._make(self._ordered)]

    def _models_of_successes(self) -> list[Surrogate]:
        earlier = None if self._head_start is None else self._head_start.successes
        pooled = [] if earlier is None else [PooledSurrogate(inner, earlier) for inner in self._make(self._ordered)]
        return [*pooled, *self._make(self._ordered)]

    def learn(self, history: History, slots: int = 1) -> None:
        """Replace all that is known by `history`; a model that is too slow for so many `slots` is not used."""
        units, crowd = history.units(), max(1, slots // FEW_SLOTS)
        # Hyper-parameters follow snapshots of the history, so a resumed search fits the same models.
        if history.snapshot is not self._snapshot or crowd != self._crowd:
            self._snapshot, self._crowd = history.snapshot, crowd
            self._fit(KnownTargets.of(units, history.snapshot))
        known = KnownTargets.of(units, history.trials)
        self._measured = int(known.measured.sum())
        self._told = self._turn = len(known.trials)
        if self._measured:
            if self._explores_when_stuck:
                values = known.estimates().y
                self._doubt = _doubt(values, crowd)
                self._is_stuck = _idle(values, _IMPROVEMENT) >= _RANDOM_AFTER * crowd
            self._values.learn(self._targets(known), crowd)
        if self._values.explains_nothing and crowd == 1:
            self._exploration.learn(units[known.measured | known.failed | known.bounded])
        self._predicts_failures = self._expects_failures(known)
        if self._predicts_failures:
            self._successes.learn(known.successes(), crowd)

    def _fit(self, known: KnownTargets) -> None:
        self._forget_fit()
        if known.measured.any():
            data = known.estimates()
            self._scale = self._choose_scale(data)
            # A pruned run gives only a lower bound; this process says what to expect above it, see `_targets`.
            if known.bounded.any() and self._crowd * len(data.y) <= GaussianSurrogate.most:
                self._bounded.fit(scaled(data, self._scale(data.y)), from_prior=True)
            self._values.fit(self._targets(known), self._crowd)
        if self._expects_failures(known):
            self._successes.fit(known.successes(), self._crowd)

    def _expects_failures(self, known: KnownTargets) -> bool:
        """Whether runs failed, here or in earlier experiments."""
        told = bool((known.measured | known.failed).any())
        return bool(known.failed.any()) or (
            told and self._head_start is not None and self._head_start.successes is not None
        )

    def _targets(self, known: KnownTargets) -> Observations:
        """The values on the scale of the models; for a lower bound, the value that is expected above it."""
        estimates, bounded = known.estimates(), known.bounded
        scale = self._scale(estimates.y)
        data = scaled(estimates, scale)
        if not bounded.any():
            return data
        y, share, error = np.empty(len(known.x)), np.ones(len(known.x)), np.zeros(len(known.x))
        y[known.measured], share[known.measured], error[known.measured] = data.y, data.share, data.error
        y[bounded] = scale(known.bounds[bounded])
        if self._crowd * len(data.y) <= GaussianSurrogate.most:
            self._bounded.condition(data)
            y[bounded] = expected_above(self._bounded, known.x[bounded], y[bounded])
        told = known.measured | bounded
        return Observations(known.x[told], y[told], share[told], error[told])

    def log_promise(self, points: CachedPoints) -> FloatArray:
        """How promising each point is: by the model whose turn it is, plus the log chance that it yields a number.

        Before anything was measured, and while no model explains what was, it explores.
        """
        # Stuck: what no model expects can be found by chance only.
        if self._measured and self._is_stuck and self._turn % _RANDOM_EVERY == 0:
            promise = self._exploration.at_random(points, self._turn)
        elif not self._values.explains_nothing:
            mean, deviation, least = self._values.of_turn(self._turn, self._doubt).predict(points)
            promise = self._acquisition(mean, self._doubt * deviation, least)
        elif self._crowd == 1:
            promise = self._exploration.log_promise(points)
        else:  # distances to all that run would take long
            promise = self._exploration.at_random(points, self._turn)
        # Expected improvement times the probability of success (Schonlau et al. 1998), as a sum of logarithms.
        return promise + self._successes.log_chance(points) if self._predicts_failures else promise

    def assume(self, x: FloatArray) -> None:
        """Assume that each row of `x` was measured as predicted."""
        self._turn += len(x)
        if self._measured:
            self._values.assume(x)
        if self._values.explains_nothing and self._crowd == 1:
            self._exploration.assume(x)

    def forget_assumed(self) -> None:
        """Undo every `assume`."""
        self._turn = self._told
        self._values.forget_assumed()
        self._exploration.forget_assumed()


def _doubt(y: FloatArray, crowd: int) -> float:
    """By which factor deviations are enlarged: the more, the longer nothing better was found."""
    return min(1.0 + max(_idle(y, 0.0) / crowd - _PATIENCE, 0) / _RISE, _LARGEST_DOUBT)


def _idle(y: FloatArray, margin: float) -> int:
    """How many runs there were since the first value within `margin` (a part of its size) of the best one."""
    best = float(np.min(y))
    return len(y) - 1 - int(np.argmax(y <= best + margin * abs(best)))
