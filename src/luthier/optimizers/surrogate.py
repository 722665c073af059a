"""What a search by model believes: how good a configuration is, and how likely it is to run at all."""

from collections.abc import Sequence

import numpy as np

from luthier.learn.gaussian_process import FixedPoints, GaussianProcess, Observations
from luthier.learn.kernels import BoolArray, Family, FloatArray
from luthier.optimizers.acquisition import log_expected_improvement
from luthier.trial import Estimate, Lost, Trial

_RECONSIDER = 4  # the scale is chosen anew when one in so many values is new
_PRIOR_FREEDOM = 2.0  # how many degrees of freedom the noise common to all configurations is worth


class Surrogate:
    """A Gaussian process over the values, or over their logarithms where these are predicted better."""

    def __init__(self, ordered: BoolArray, family: Family = "matern52") -> None:
        self._plain = GaussianProcess(ordered, family)
        self._logarithmic = GaussianProcess(ordered, family)
        self._use_logarithm = False
        self._considered = 0
        self._success = GaussianProcess(ordered, family)
        self._measured = self._failures = 0

    @property
    def process(self) -> GaussianProcess:
        """The model in use."""
        return self._logarithmic if self._use_logarithm else self._plain

    def learn(self, x: FloatArray, trials: Sequence[Trial]) -> None:
        """Take `trials` at the rows of `x` for all that is known."""
        failed = np.array([_failed(trial) for trial in trials], dtype=np.bool_)
        measured = np.array([trial.estimate is not None for trial in trials], dtype=np.bool_)
        self._measured, self._failures = int(measured.sum()), int(failed.sum())
        if self._measured:
            self._learn_values(x[measured], [trial.estimate for trial in trials if trial.estimate is not None])
        if self._failures:
            known = failed | measured
            self._success.learn(Observations.single(x[known], measured[known].astype(np.float64)))

    def log_promise(self, points: "Watched") -> FloatArray:
        """How promising each point is: its log expected improvement plus the log odds that it yields a number.

        Before anything was measured, the points farthest from those under way are the most promising.
        """
        mean, deviation = points.values.predict_standard(self.process)
        if self._measured:
            promise = log_expected_improvement(mean, deviation, self.process.incumbent_standard())
        else:
            promise = np.log(deviation)
        return promise + self._log_success(points) if self._failures else promise

    def _log_success(self, points: "Watched") -> FloatArray:
        """The log chance that a run yields a number: least-squares classification (Rasmussen & Williams 2006, 6.5)."""
        from scipy.special import log_ndtr

        mean, deviation = points.successes.predict(self._success)
        spread = np.hypot(deviation, self._success.noise_deviation())
        return np.asarray(log_ndtr((mean - 0.5) / spread), dtype=np.float64)

    def _learn_values(self, x: FloatArray, estimates: Sequence[Estimate]) -> None:
        data = _observations(x, estimates)
        positive = bool(np.all(data.y > 0.0))
        if len(data.y) >= self._considered + max(1, self._considered // _RECONSIDER):
            self._consider(data, positive=positive)
        else:
            self._use_logarithm = self._use_logarithm and positive
            self.process.learn(_logarithms(data) if self._use_logarithm else data)

    def _consider(self, data: Observations, *, positive: bool) -> None:
        self._considered = len(data.y)
        self._use_logarithm = False
        self._plain.learn(data)
        if not positive:
            return
        logarithms = _logarithms(data)
        self._logarithmic.learn(logarithms)
        # Densities of y itself: that of log y times the Jacobian 1/y.
        logarithmic = self._logarithmic.leave_one_out_log_density() - float(logarithms.y.sum())
        self._use_logarithm = logarithmic >= self._plain.leave_one_out_log_density()


class Watched:
    """Points whose promise is asked for again and again; what was computed for them is kept."""

    def __init__(self, units: FloatArray) -> None:
        self.values = FixedPoints(units)
        self.successes = FixedPoints(units)


def _failed(trial: Trial) -> bool:
    """Whether the trial says that its configuration does not work; a lost run says nothing about it."""
    return trial.estimate is None and any(not isinstance(outcome, Lost) for outcome in trial.outcomes)


def _observations(x: FloatArray, estimates: Sequence[Estimate]) -> Observations:
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
