"""A model of the values of configurations that were sampled a few times under noise of any kind."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from luthier.arrays import BoolArray, FloatArray, IntArray
from luthier.learn.gaussian_process import FixedPoints, GaussianProcess, Observations
from luthier.learn.points import PointSet
from luthier.online.strategies.sample_noise import SampleNoise

_MOST_POINTS = 160  # the best ones and the latest ones: bounds the time of a fit
_REFIT = 1.15  # hyper-parameters are fitted again when there are so many times as many points
_FREEDOM = 3.0  # degrees of freedom of the Student distribution that is assumed for samples
_FEWEST_TO_DOUBT = 5  # points: with fewer, no sample is an outlier


def scaled(values: Sequence[float]) -> Callable[[FloatArray], FloatArray]:
    """The scale of the model: logarithms if all values have the same sign, else shares of the mean magnitude."""
    if min(values) > 0.0:
        return np.log
    if max(values) < 0.0:
        return lambda some: -np.log(-some)
    unit = float(np.mean(np.abs(values))) or 1.0
    return lambda some: some / unit


@dataclass(frozen=True, slots=True)
class KnownValues:
    """Configurations that were measured, by their `numbers` in the data: predictions without the noise of samples."""

    numbers: IntArray
    rows: FloatArray
    mean: FloatArray
    deviation: FloatArray


class ValueModel:
    """A Gaussian process of estimates that are more reliable the more samples they are made of.

    Estimates far above what their neighbours predict count less, as single samples have heavy tails. What it predicts
    depends on all calls of `learn` before.
    """

    def __init__(self, ordered: BoolArray, estimator: Callable[[Sequence[float]], float]) -> None:
        self._process, self._estimator = GaussianProcess(ordered), estimator
        self._fit_at = 0
        self._doubts: dict[bytes, tuple[int, float]] = {}  # by row: number of samples, factor of the deviation
        self._points: FixedPoints | None = None
        self.noise = SampleNoise(np.zeros(1), estimator)

    def learn(self, rows: FloatArray, samples: Sequence[Sequence[float]]) -> KnownValues:
        """Replace all known data: the points in the unit cube and the samples of each."""
        scale = scaled([value for values in samples for value in values])
        self.noise = SampleNoise.of([scale(np.array(values)) for values in samples], self._estimator)
        counts = np.array([len(values) for values in samples])
        # Estimates from few samples lie higher on average; without that, all are comparable.
        above, deviations = self.noise.of_estimates(counts)
        y = scale(np.array([self._estimator(values) for values in samples])) - above
        kept = _most_relevant(y)
        data = self._trusted(rows[kept], y[kept], counts[kept], deviations[kept])
        mean, deviation = self._process.without_error(data)
        # Without noise, what was measured is the truth, and rounding is not to change it.
        mean = np.where(data.error == 0.0, data.y, mean)
        return KnownValues(kept, rows[kept], mean, deviation)

    def _trusted(self, x: FloatArray, y: FloatArray, counts: IntArray, deviations: FloatArray) -> Observations:
        """Fit or condition the process; each estimate that its neighbours contradict gets a larger error."""
        rows, known = [row.tobytes() for row in x], counts.tolist()
        doubts = [self._doubt(row, count) for row, count in zip(rows, known, strict=True)]
        data = Observations(x, y, np.ones(len(y)), deviations * doubts)
        # Also if many points were dropped since the last fit, as after failures.
        if len(y) >= self._fit_at or len(y) < 0.8 * self._fit_at / _REFIT:
            self._process.fit(data, from_prior=True)
            self._fit_at = max(len(y) + 1, math.ceil(len(y) * _REFIT))
        else:
            self._process.condition(data)
        if len(y) >= _FEWEST_TO_DOUBT and deviations.any():
            mean, deviation = self._process.leave_one_out()
            # As if this estimate had its usual error, and not the enlarged one of the last time.
            usual = np.sqrt(np.maximum(deviation**2 - data.error**2 + deviations**2, 1e-18))
            far = np.maximum((y - mean) / usual, 0.0)
            # Student noise gives a residual the weight (freedom + 1) / (freedom + its square), see Lange et al. 1989;
            # the deviation grows by the root of the inverse.
            factors = np.maximum(np.sqrt((_FREEDOM + far * far) / (_FREEDOM + 1.0)), 1.0)
            self._doubts = dict(zip(rows, zip(known, factors.tolist(), strict=True), strict=True))
            data = Observations(x, y, np.ones(len(y)), deviations * factors)
            self._process.condition(data)
        return data

    def _doubt(self, row: bytes, count: int) -> float:
        known, factor = self._doubts.get(row, (0, 1.0))
        # A further sample makes it another estimate.
        return factor if known == count else 1.0

    def single_deviation(self) -> float:
        """The standard deviation of one sample."""
        return float(self.noise.of_estimates(np.array([1]))[1][0])

    def predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of points that were not measured; `assume` refers to them from then on."""
        self._points = FixedPoints(PointSet(rows), in_blocks=False)
        mean, deviation = self._points.predict(self._process)
        return mean, np.hypot(deviation, self._process.noise_deviation())

    def assume(self, row: FloatArray) -> FloatArray:
        """The standard deviations of the points predicted last, if a further one were measured."""
        if self._points is None:
            raise RuntimeError("predict first")
        self._process.assume(row[None, :])
        standard = self._points.deviation_standard(self._process)
        deviation = self._process.to_targets(np.zeros(len(standard)), standard)[1]
        return np.hypot(deviation, self._process.noise_deviation())

    def forget_assumed(self) -> None:
        """Undo every `assume`."""
        self._process.forget_assumed()


def _most_relevant(y: FloatArray) -> IntArray:
    """The rows that are modelled, in their order: all, or the best and the latest."""
    if len(y) <= _MOST_POINTS:
        return np.arange(len(y))
    half = _MOST_POINTS // 2
    best = np.argsort(y, kind="stable")[:half]
    return np.unique(np.concatenate((best, np.arange(len(y) - half, len(y)))))
