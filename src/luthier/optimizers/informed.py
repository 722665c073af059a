"""Models that begin with what earlier experiments predict, and correct it by the new values."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from luthier.arrays import BoolArray, FloatArray, IntArray
from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.optimizers.earlier import Earlier, units_of
from luthier.optimizers.surrogates import CachedPoints, Surrogate
from luthier.space import Space

# The constants were chosen by experiment: docs/research/2026-11-18-transfer.md.
_FEWEST = 4  # trials of a source that a model is fitted to
_MOST = 250  # observations; with more of them the earlier ones hardly matter, and two models cost too much
_BELIEF = 3.0  # the assumption that the slope is 1 counts as so many observations
_STEEPEST = 2.0
_EQUAL = 1e-13  # targets that differ by less are equal
_ODDS = 4.0  # how much more likely an informed model is believed to be the better one, before anything is known


class EarlierMean:
    """What earlier experiments predict at points of the unit cube: the mean of one Gaussian process for each source.

    A process sees only the parameters that its source has. Rows with an unknown value among them are left out.
    """

    def __init__(self, ordered: BoolArray, sources: Sequence[tuple[FloatArray, FloatArray]]) -> None:
        self._ordered = ordered
        self._data: list[tuple[IntArray, Observations]] = []
        for units, y in sources:
            known = np.isfinite(units)
            # A parameter that most trials of the source lack is left out, because rows with unknown values are.
            columns = np.flatnonzero(known.mean(axis=0) >= 0.5) if len(units) else np.empty(0, dtype=np.intp)
            rows = known[:, columns].all(axis=1)
            if len(columns) and rows.sum() >= _FEWEST and np.ptp(y[rows]) > 0.0:
                self._data.append((columns, Observations.single(units[rows][:, columns], y[rows])))

    def __bool__(self) -> bool:
        return bool(self._data)

    @cached_property
    def _models(self) -> list[tuple[IntArray, GaussianProcess]]:
        """Fitted when they are first needed."""
        models = []
        for columns, data in self._data:
            process = GaussianProcess(self._ordered[columns])
            process.fit(data, from_prior=True)
            models.append((columns, process))
        return models

    def __call__(self, units: FloatArray) -> FloatArray:
        """The prediction at each row."""
        if not len(units):
            return np.empty(0)
        return np.asarray(np.mean([p.predict(units[:, c])[0] for c, p in self._models], axis=0), dtype=np.float64)


def earlier_values(space: Space, earlier: Earlier) -> EarlierMean:
    """What the earlier experiments predict of values; a lower bound counts as a value."""
    sources = []
    for source in range(earlier.sources):
        scored = [trial for trial in earlier.of_source(source) if trial.score is not None]
        sources.append((units_of(space, scored), np.array([trial.score for trial in scored], dtype=np.float64)))
    return EarlierMean(np.asarray(space.ordered, dtype=np.bool_), sources)


def earlier_successes(space: Space, earlier: Earlier, *, seed: int) -> Observations | None:
    """1 for each earlier trial that succeeded, 0 for one that failed or was cut short; None if all succeeded.

    Unknown values are drawn at random, so that models find that they do not matter.
    """
    succeeded = np.array([float(trial.score is not None and not trial.is_bound) for trial in earlier.trials])
    if succeeded.all():
        return None
    units = units_of(space, earlier.trials)
    drawn = np.random.default_rng([seed, len(units), 4]).random(units.shape)
    # Onto the grid, where all measured points are.
    drawn = space.to_unit(space.from_unit(drawn))
    return Observations.single(np.where(np.isfinite(units), units, drawn), succeeded)


class InformedSurrogate:
    """A model of what the earlier experiments did not predict.

    The targets are slope times the earlier prediction, plus what the inner model learns. The slope begins at 1 and
    follows the observations; it is 0 where the earlier prediction is wrong.
    """

    def __init__(self, inner: Surrogate, mean: EarlierMean) -> None:
        self._inner, self._mean = inner, mean
        self.most, self.belief = min(inner.most, _MOST), _ODDS * inner.belief
        self._slope = 1.0
        self._fitted = self._x = np.empty((0, 0))
        self._known = 0
        self._least: float | None = None

    def fit(self, data: Observations) -> None:
        """Replace all known data by `data`, find the slope, and fit the inner model."""
        mean = self._mean(data.x)
        self._slope = _slope(mean, data.y)
        self._fitted = self._slope * mean
        # The inner model learns only what the earlier experiments did not predict.
        self._inner.fit(replace(data, y=data.y - self._fitted))
        self._keep(data.x)

    def condition(self, data: Observations) -> None:
        """Replace all known data by `data`, and keep the choices of the last `fit`."""
        self._inner.condition(replace(data, y=data.y - self._slope * self._mean(data.x)))
        self._keep(data.x)

    def _keep(self, x: FloatArray) -> None:
        self._x, self._known, self._least = x, len(x), None

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of each observation of the last `fit`, predicted without it."""
        mean, deviation = self._inner.left_out()
        return mean + self._fitted, deviation

    def predict(self, points: CachedPoints) -> tuple[FloatArray, FloatArray, float]:
        """Mean and standard deviation at points, and the lowest mean at the points observed or assumed."""
        mean, deviation, _ = self._inner.predict(points)
        # Computed once for each state of knowledge, because it needs predictions at all known points.
        if self._least is None:
            known, _, _ = self._inner.predict(CachedPoints(self._x, once=True))
            self._least = float(np.min(known + self._slope * self._mean(self._x)))
        return mean + self._slope * points.kept(self._mean), deviation, self._least

    def noise(self) -> float:
        """The standard deviation of a single measurement from what is predicted."""
        return self._inner.noise()

    def log_chance(self, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """The logarithm of the chance of a 1, where targets are 0 or 1, given predictions of a measurement."""
        return self._inner.log_chance(mean, deviation)

    def assume(self, x: FloatArray) -> None:
        """Assume that each row of `x` was measured as predicted."""
        self._inner.assume(x)
        self._x, self._least = np.concatenate((self._x, x)), None

    def forget_assumed(self) -> None:
        """Undo every `assume`."""
        self._inner.forget_assumed()
        self._x, self._least = self._x[: self._known], None


def _slope(mean: FloatArray, y: FloatArray) -> float:
    """The slope of `y` over `mean`, by ridge regression towards the standard deviation of `y`; never below 0."""
    largest = float(np.max(np.abs(y))) or 1.0  # so that no square overflows
    spread = float(np.std(y / largest))
    if spread < _EQUAL:
        return 1.0
    # Ridge regression (Hoerl & Kennard 1970) towards 1 instead of 0, in units of the deviation of y:
    # the belief counts as much as observations with a sum of squares of `_BELIEF`.
    x, away = mean - mean.mean(), (y / largest - np.mean(y / largest)) / spread
    return float(np.clip((_BELIEF + x @ away) / (_BELIEF + x @ x), 0.0, _STEEPEST)) * spread * largest


class PooledSurrogate:
    """A model of new and earlier observations together."""

    def __init__(self, inner: Surrogate, earlier: Observations) -> None:
        self._inner, self._earlier = inner, earlier
        self.most, self.belief = min(inner.most, _MOST), _ODDS * inner.belief

    def _pooled(self, data: Observations) -> Observations:
        """The earlier observations come first: models keep what they have computed for the first rows."""
        old = self._earlier
        return Observations(
            np.concatenate((old.x, data.x)),
            np.concatenate((old.y, data.y)),
            np.concatenate((old.share, data.share)),
            np.concatenate((old.error, data.error)),
        )

    def fit(self, data: Observations) -> None:
        """Replace all known data but the earlier by `data`, and make the expensive choices."""
        self._inner.fit(self._pooled(data))

    def condition(self, data: Observations) -> None:
        """Replace all known data but the earlier by `data`, and keep the choices of the last `fit`."""
        self._inner.condition(self._pooled(data))

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of each new observation of the last `fit`, predicted without it."""
        mean, deviation = self._inner.left_out()
        # How well a model predicts the earlier observations says nothing about the new system.
        return mean[len(self._earlier.y) :], deviation[len(self._earlier.y) :]

    def predict(self, points: CachedPoints) -> tuple[FloatArray, FloatArray, float]:
        """Mean and standard deviation at points, and the lowest mean so far."""
        return self._inner.predict(points)

    def noise(self) -> float:
        """The standard deviation of a single measurement from what is predicted."""
        return self._inner.noise()

    def log_chance(self, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """The logarithm of the chance of a 1, where targets are 0 or 1, given predictions of a measurement."""
        return self._inner.log_chance(mean, deviation)

    def assume(self, x: FloatArray) -> None:
        """Assume that each row of `x` was measured as predicted."""
        self._inner.assume(x)

    def forget_assumed(self) -> None:
        """Undo every `assume`."""
        self._inner.forget_assumed()
