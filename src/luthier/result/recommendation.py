"""Which configuration to recommend: the one that is best on average, not the one with the best single run."""

from collections.abc import Callable, Sequence

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.learn.linear import one_thread
from luthier.learn.scatter import scatter_of
from luthier.learn.two_speeds import expected_at_two_speeds
from luthier.policies.base import completed_values
from luthier.space import Space
from luthier.statistics.estimate import TO_DEVIATION, median_of
from luthier.trial import Completed, Lost, Trial

_MOST = 1_000  # a model of more trials is slow; only those with the lowest estimates are used
_FARTHEST = 3.0  # in standard deviations: a value farther away is an outlier
_PRIOR_FREEDOM = 2.0  # weight of the noise of all configurations, in degrees of freedom


def best_of(trials: Sequence[Trial]) -> int | None:
    """The position of the trial with the lowest estimate among those that never failed; the earliest of equals."""
    known = _lowest_first(trials)
    return known[0] if known else None


def is_reliable(trial: Trial) -> bool:
    """Whether all runs completed; lost runs do not count."""
    return all(isinstance(outcome, Completed | Lost) for outcome in trial.outcomes)


def winner_of(space: Space, trials: Sequence[Trial], estimator: str) -> int | None:
    """The trial that goes into the verification.

    The estimator `minimum` is not a mean, so there the lowest runs count, see `_low`. If the model prefers the default
    (the first trial), the trial with the lowest estimate is taken, and the verification decides.
    """
    if estimator == "minimum":
        return min(_lowest_first(trials), key=lambda at: _low(trials[at]), default=None)
    # 0 is the default: the next in line is compared with it.
    return recommended(space, trials) or best_of(trials)


def challenger_of(space: Space, trials: Sequence[Trial], estimator: str) -> int | None:
    """The trial to compare with the default: the winner or, if the default leads, the best of the others.

    The default may lead because of one lucky run, or because the other had an unlucky one. 0 or None if there is no
    other to compare.
    """
    return winner_of(space, trials, estimator) or min(_lowest_first(trials)[:2], key=lambda at: at == 0, default=None)


def recommended(space: Space, trials: Sequence[Trial]) -> int | None:
    """The position of the trial with the lowest expected value among those that never failed; None without one.

    If the runs show a machine with two speeds, the values expected at the same speed are compared. Otherwise each
    estimate is taken as the mean of its runs, the noise is estimated from repeated runs, and a Gaussian process
    predicts from all trials what each one gives on average. If no configuration ran twice, or all repeats agree, noise
    cannot be separated from a rough function, and the lowest estimate counts.
    """
    known = _lowest_first(trials)
    measured = [completed_values(trials[at]) for at in known]
    # Without a repeat that differs, noise and a rough function look the same.
    if all(len(values) == 1 or min(values) == max(values) for values in measured):
        return known[0] if known else None
    runs = [np.array(values) for values in measured]
    known, scale = known[:_MOST], log_scale(np.concatenate(runs))
    x = space.to_unit(space.codes([trials[at].config for at in known]))
    groups = [scale(values) for values in runs]
    ordered = np.asarray(space.ordered, dtype=np.bool_)
    with one_thread():
        expected = expected_at_two_speeds(x, groups[: len(known)], ordered)
        if expected is None:
            y = scale(np.array([_value(trials[at]) for at in known]))
            expected = _expected_at_one_speed(x, y, _errors(_without_outliers(groups))[: len(y)], ordered)
    return known[int(np.argmin(expected))]


def _expected_at_one_speed(x: FloatArray, y: FloatArray, errors: FloatArray, ordered: BoolArray) -> FloatArray:
    """The expected value of each configuration if the noise of its mean has the deviation in `errors`."""
    # The nugget is part of the function here: neighbours differ by it, but it is the same in every run.
    data = Observations(x, y, np.ones(len(y)), errors)
    # The kernel that did best there: docs/research/2026-11-16-recommendation-by-model.md.
    process = GaussianProcess(ordered, "laplace")
    process.fit(data)
    return process.without_error(data)[0]


def _lowest_first(trials: Sequence[Trial]) -> list[int]:
    """The positions of the trials that have an estimate and never failed: the lowest first, then the earliest."""
    known = [at for at, trial in enumerate(trials) if trial.estimate is not None and is_reliable(trial)]
    return sorted(known, key=lambda at: _value(trials[at]))


def _low(trial: Trial) -> float:
    """The median of the three lowest runs of a trial, or of as many as it has.

    A single run that is far too fast probably did less work than the others, and would win with any configuration.
    """
    return median_of(sorted(completed_values(trial))[:3])


def _value(trial: Trial) -> float:
    return float("inf") if trial.estimate is None else trial.estimate.value


def log_scale(values: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """A monotonic scale: logarithmic if all values have the same sign, because disturbances multiply a run's time."""
    if values.min() > 0.0 or values.max() < 0.0:
        return lambda some: np.sign(some) * np.log(np.abs(some))
    largest = float(np.max(np.abs(values)))
    return lambda some: some / largest


def _without_outliers(runs: Sequence[FloatArray]) -> list[FloatArray]:
    """The runs, each clipped to `_FARTHEST` deviations from the median of its group.

    A value farther away is an outlier, and a single one would make the noise of all runs look larger. The deviation is
    estimated from the median of all distances, which outliers hardly change (Huber 1981, section 5.7). The smallest
    distance of each group is left out, because the median itself has none; the others are then too small by a factor
    of about sqrt((n - 1) / n).
    """
    middles = [float(np.median(values)) for values in runs]
    away = [
        np.sort(np.abs(values - middle))[1:] * np.sqrt(len(values) / (len(values) - 1.0))
        for values, middle in zip(runs, middles, strict=True)
        if len(values) > 1
    ]
    reach = _FARTHEST * TO_DEVIATION * float(np.median(np.concatenate(away)))
    return [np.clip(values, middle - reach, middle + reach) for values, middle in zip(runs, middles, strict=True)]


def _errors(runs: Sequence[FloatArray]) -> FloatArray:
    """The deviation of the mean of each group: from its own scatter, and from that of all groups if it has few runs."""
    scatter = scatter_of(runs)
    # Gelman et al. 2013, section 3.2: common noise and own scatter, weighted by their degrees of freedom.
    variances = (_PRIOR_FREEDOM * scatter.common + scatter.squares) / (_PRIOR_FREEDOM + scatter.counts - 1.0)
    return np.sqrt(variances / scatter.counts)
