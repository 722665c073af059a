"""What a search by model believes: how good a configuration is, and how likely it is to run at all."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.learn.kernels import BoolArray, Family, FloatArray
from luthier.optimizers.acquisition import (
    ACQUISITIONS,
    Acquisition,
    NoisyAcquisition,
    effective_best,
    log_augmented_expected_improvement,
    log_expected_quantile_improvement,
    log_noisy_expected_improvement,
    lowest_quantile,
)
from luthier.optimizers.exploration import Exploration, sees_nothing
from luthier.optimizers.members import Watched
from luthier.trial import Estimate, Lost, Pruned, TimedOut, Trial

_RECONSIDER = 4  # the scale is chosen anew when one in so many values is new
_PRIOR_FREEDOM = 2.0  # how many degrees of freedom the noise common to all configurations is worth


class Surrogate:
    """A Gaussian process over the values, or over their logarithms where these are predicted better."""

    def __init__(
        self,
        ordered: BoolArray,
        family: Family = "matern52",
        acquisition: Acquisition | NoisyAcquisition = "ei",
        *,
        seed: int,
    ) -> None:
        self._acquisition = acquisition
        self._plain = GaussianProcess(ordered, family)
        self._logarithmic = GaussianProcess(ordered, family)
        self._use_logarithm = False
        self._considered = 0
        self._exploration, self._is_blind = Exploration(ordered, seed=seed), True
        self._success = GaussianProcess(ordered, family)
        self._measured = self._failures = 0

    @property
    def process(self) -> GaussianProcess:
        """The model in use."""
        return self._logarithmic if self._use_logarithm else self._plain

    @property
    def version(self) -> object:
        """Changes with the hyper-parameters."""
        return self.process.hyper

    def believe(self, x: FloatArray) -> None:
        """Pretend that each row of `x` was measured as predicted."""
        self.process.believe(x)
        if self._is_blind:
            self._exploration.believe(x)

    def disbelieve(self) -> None:
        """Take back every `believe`."""
        self.process.disbelieve()
        self._exploration.disbelieve()

    def learn(self, x: FloatArray, trials: Sequence[Trial]) -> None:
        """Take `trials` at the rows of `x` for all that is known."""
        measured = np.array([trial.estimate is not None for trial in trials], dtype=np.bool_)
        bounds, broken = bounds_and_failures(trials)
        self._measured, self._failures = int(measured.sum()), int(broken.sum())
        if self._measured:
            data = self._learn_values(x[measured], [trial.estimate for trial in trials if trial.estimate is not None])
            self._learn_bounds(data, x, bounds)
        if self._is_blind:
            self._exploration.learn(x[measured | broken | np.isfinite(bounds)])
        if self._failures:
            known = broken | measured
            self._success.learn(Observations.single(x[known], measured[known].astype(np.float64)))

    def log_promise(self, points: Watched) -> FloatArray:
        """How promising each point is: its acquisition plus the log odds that it yields a number.

        Before anything was measured, and where the model sees nothing in what was, it explores.
        """
        if self._is_blind:
            promise = self._exploration.log_promise(points)
        elif self._acquisition in NOISY_ACQUISITIONS:
            promise = NOISY_ACQUISITIONS[self._acquisition](self.process, points)
        else:
            mean, deviation = points.fixed(self.process).predict_standard(self.process)
            promise = ACQUISITIONS[self._acquisition](mean, deviation, self.process.incumbent_standard())
        return promise + self._log_success(points) if self._failures else promise

    def _log_success(self, points: Watched) -> FloatArray:
        """The log chance that a run yields a number: least-squares classification (Rasmussen & Williams 2006, 6.5)."""
        from scipy.special import log_ndtr

        mean, deviation = points.fixed(self._success).predict(self._success)
        spread = np.hypot(deviation, self._success.noise_deviation())
        return np.asarray(log_ndtr((mean - 0.5) / spread), dtype=np.float64)

    def _learn_values(self, x: FloatArray, estimates: Sequence[Estimate]) -> Observations:
        data = observations(x, estimates)
        positive = bool(np.all(data.y > 0.0))
        if len(data.y) >= self._considered + max(1, self._considered // _RECONSIDER):
            self._consider(data, positive=positive)
        else:
            self._use_logarithm = self._use_logarithm and positive
            self.process.learn(_logarithms(data) if self._use_logarithm else data)
        return _logarithms(data) if self._use_logarithm else data

    def _learn_bounds(self, data: Observations, x: FloatArray, bounds: FloatArray) -> None:
        """Add the points of which a lower bound is known, each with the value expected above it."""
        bounded = np.isfinite(bounds) & ((bounds > 0.0) | (not self._use_logarithm))
        if not bounded.any():
            return
        bound = np.log(bounds[bounded]) if self._use_logarithm else bounds[bounded]
        y = expected_above(self.process, x[bounded], bound)
        ones = np.ones(len(y))
        self.process.learn(
            Observations(
                np.concatenate((data.x, x[bounded])),
                np.concatenate((data.y, y)),
                np.concatenate((data.share, ones)),
                np.concatenate((data.error, 0.0 * ones)),
            )
        )

    def _consider(self, data: Observations, *, positive: bool) -> None:
        self._considered = len(data.y)
        self._use_logarithm = False
        self._plain.learn(data)
        if positive:
            self._choose_scale(data)
        targets = np.log(data.y) if self._use_logarithm else data.y
        self._is_blind = sees_nothing(targets, self.process.leave_one_out()[0])

    def _choose_scale(self, data: Observations) -> None:
        logarithms = _logarithms(data)
        self._logarithmic.learn(logarithms)
        # Densities of y itself: that of log y times the Jacobian 1/y.
        logarithmic = self._logarithmic.leave_one_out_log_density() - float(logarithms.y.sum())
        self._use_logarithm = logarithmic >= self._plain.leave_one_out_log_density()


def _noisy_improvement(process: GaussianProcess, points: Watched) -> FloatArray:
    exact, draws = process.without_noise(), process.possible_targets()
    watched = points.fixed(exact)
    least = np.min(draws @ exact.lower.T, axis=1)
    return log_noisy_expected_improvement(draws @ watched.rows(exact), watched.deviation_standard(exact), least)


def _augmented_improvement(process: GaussianProcess, points: Watched) -> FloatArray:
    mean, deviation = points.fixed(process).predict_standard(process)
    best, noise = effective_best(*process.known_standard()), math.sqrt(process.hyper.noise)
    return log_augmented_expected_improvement(mean, deviation, best, noise)


def _quantile_improvement(process: GaussianProcess, points: Watched) -> FloatArray:
    mean, deviation = points.fixed(process).predict_standard(process)
    lowest, noise = lowest_quantile(*process.known_standard()), math.sqrt(process.hyper.noise)
    return log_expected_quantile_improvement(mean, deviation, lowest, noise)


NOISY_ACQUISITIONS: Mapping[str, Callable[[GaussianProcess, Watched], FloatArray]] = {
    "nei": _noisy_improvement,
    "aei": _augmented_improvement,
    "eqi": _quantile_improvement,
}
"""Acquisitions that also ask how sure the measured points themselves are; a Gaussian process can say."""


def bounds_and_failures(trials: Sequence[Trial]) -> tuple[FloatArray, BoolArray]:
    """For each trial the largest lower bound known of its value (NaN: none), and whether it failed.

    A run that was cut short is known by its bound and did not fail, if anything was measured to compare the bound with;
    a measured trial has neither. A lost run says nothing about its configuration.
    """
    measured = any(trial.estimate is not None for trial in trials)
    bounds = np.full(len(trials), np.nan)
    broken = np.zeros(len(trials), dtype=np.bool_)
    for row, trial in enumerate(trials):
        if trial.estimate is None:
            known = [o.at_least for o in trial.outcomes if isinstance(o, TimedOut | Pruned) and o.at_least is not None]
            if known and measured:
                bounds[row] = max(known)
            else:
                broken[row] = any(not isinstance(outcome, Lost) for outcome in trial.outcomes)
    return bounds, broken


def expected_above(process: GaussianProcess, x: FloatArray, bound: FloatArray) -> FloatArray:
    """The mean of a normal prediction given that it lies above a bound: the E step of a Tobit model (Tobin 1958)."""
    from scipy.special import log_ndtr

    mean, deviation = process.predict(x)
    a = (bound - mean) / deviation
    hazard = np.exp(-0.5 * a * a - 0.5 * math.log(2.0 * math.pi) - log_ndtr(-a))
    above = mean + deviation * hazard
    return np.asarray(np.where(np.isfinite(above), np.maximum(above, bound), bound), dtype=np.float64)


def observations(x: FloatArray, estimates: Sequence[Estimate]) -> Observations:
    """Each estimate with the variance of its mean: its own, drawn towards the common noise while its runs are few.

    With v the common variance, s² the sample's over c runs and p degrees of freedom for v, one run's variance is taken
    to be (p v + (c - 1) s²) / (p + c - 1), the usual shrinkage of a sample variance (Gelman et al. 2013, section 2.6).
    """
    counts = np.array([estimate.count for estimate in estimates], dtype=np.float64)
    deviations = np.array([estimate.deviation or 0.0 for estimate in estimates])
    freedom = np.array([0.0 if estimate.deviation is None else estimate.count - 1.0 for estimate in estimates])
    share = _PRIOR_FREEDOM / (_PRIOR_FREEDOM + freedom) / counts
    error = deviations * np.sqrt(freedom / (_PRIOR_FREEDOM + freedom) / counts)
    return Observations(x, np.array([estimate.value for estimate in estimates]), share, error)


def _logarithms(data: Observations) -> Observations:
    """The same data on a logarithmic scale; errors by the derivative of the logarithm."""
    return Observations(data.x, np.log(data.y), data.share, data.error / data.y)
