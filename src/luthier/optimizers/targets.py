"""Turns trials into the targets that models learn."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.trial import Estimate, Lost, Pruned, TimedOut, Trial

_PRIOR_FREEDOM = 2.0  # how many degrees of freedom the noise common to all configurations is worth


@dataclass(frozen=True, slots=True)
class KnownTargets:
    """Trials at the rows of `x`, and what is known of each: estimate, lower bound (NaN: none), failure, nothing."""

    x: FloatArray
    trials: Sequence[Trial]
    measured: BoolArray
    bounds: FloatArray
    failed: BoolArray

    @staticmethod
    def of(x: FloatArray, trials: Sequence[Trial]) -> "KnownTargets":
        """What is known of trials; row i of `x` belongs to trial i."""
        measured = np.array([trial.estimate is not None for trial in trials], dtype=np.bool_)
        return KnownTargets(x[: len(trials)], trials, measured, *bounds_and_failures(trials))

    @property
    def bounded(self) -> BoolArray:
        """Which trials are known by a lower bound only."""
        return np.isfinite(self.bounds)

    def estimates(self) -> Observations:
        """The trials that were measured."""
        return observations(self.x[self.measured], [t.estimate for t in self.trials if t.estimate is not None])

    def successes(self) -> Observations:
        """1 for each trial that was measured, 0 for each that failed."""
        told = self.measured | self.failed
        return Observations.single(self.x[told], self.measured[told].astype(np.float64))


def bounds_and_failures(trials: Sequence[Trial]) -> tuple[FloatArray, BoolArray]:
    """For each trial the largest lower bound known of its value (NaN: none), and whether it failed.

    A run that was cut short has a bound and did not fail, provided that something was measured to compare the bound
    with; a measured trial has neither. A lost run says nothing about its configuration.
    """
    measured = any(trial.estimate is not None for trial in trials)
    bounds = np.full(len(trials), np.nan)
    failed = np.zeros(len(trials), dtype=np.bool_)
    for row, trial in enumerate(trials):
        if trial.estimate is None:
            known = [o.at_least for o in trial.outcomes if isinstance(o, TimedOut | Pruned) and o.at_least is not None]
            if known and measured:
                bounds[row] = max(known)
            else:
                failed[row] = any(not isinstance(outcome, Lost) for outcome in trial.outcomes)
    return bounds, failed


def expected_above(process: GaussianProcess, x: FloatArray, bound: FloatArray) -> FloatArray:
    """The mean of a normal prediction given that it lies above a bound: the E step of a Tobit model (Tobin 1958)."""
    from scipy.special import log_ndtr

    mean, deviation = process.predict(x)
    a = (bound - mean) / deviation
    # Density over remaining probability, from logarithms: both vanish far above the mean.
    hazard = np.exp(-0.5 * a * a - 0.5 * math.log(2.0 * math.pi) - log_ndtr(-a))
    above = mean + deviation * hazard
    return np.asarray(np.where(np.isfinite(above), np.maximum(above, bound), bound), dtype=np.float64)


def observations(x: FloatArray, estimates: Sequence[Estimate]) -> Observations:
    """Each estimate with the variance of its mean: its own, shrunk towards the common noise while its runs are few.

    With v the common variance, s² the sample's over c runs and p degrees of freedom for v, one run's variance is taken
    to be (p v + (c - 1) s²) / (p + c - 1), the usual shrinkage of a sample variance (Gelman et al. 2013, section 2.6).
    """
    counts = np.array([estimate.count for estimate in estimates], dtype=np.float64)
    deviations = np.array([estimate.deviation or 0.0 for estimate in estimates])
    freedom = np.array([0.0 if estimate.deviation is None else estimate.count - 1.0 for estimate in estimates])
    # The two parts of that variance, over the number of runs: of the common noise, and of the sample's own.
    share = _PRIOR_FREEDOM / (_PRIOR_FREEDOM + freedom) / counts
    error = deviations * np.sqrt(freedom / (_PRIOR_FREEDOM + freedom) / counts)
    return Observations(x, np.array([estimate.value for estimate in estimates]), share, error)
