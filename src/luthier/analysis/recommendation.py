"""Which configuration to recommend: the one that is best on average, not the one with the luckiest run."""

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

_MOST = 1_000  # a model of more trials is slow; those with the lowest estimates are looked at
_FARTHEST = 3.0  # in deviations: what is farther away is an accident
_PRIOR_FREEDOM = 2.0  # how many degrees of freedom the noise common to all configurations is worth


def best_of(trials: Sequence[Trial]) -> int | None:
    """The position of the trial with the lowest estimate among those that never failed; the earliest of equals."""
    known = _lowest_first(trials)
    return known[0] if known else None


def is_reliable(trial: Trial) -> bool:
    """Whether every run that told anything ended well."""
    return all(isinstance(outcome, Completed | Lost) for outcome in trial.outcomes)


def winner_of(space: Space, trials: Sequence[Trial], estimator: str) -> int | None:
    """The trial that goes into the verification.

    The minimum is no mean, so there the lowest runs count, see `_low`. Where the model would stay with the default
    (the first trial), the lowest estimate counts: whether that is right is for the verification to say.
    """
    if estimator == "minimum":
        return min(_lowest_first(trials), key=lambda at: _low(trials[at]), default=None)
    return recommended(space, trials) or best_of(trials)


def recommended(space: Space, trials: Sequence[Trial]) -> int | None:
    """The position of the trial with the lowest expected value among those that never failed; None if there is none.

    Where the runs show a machine that is now fast, now slow, what is expected at the same speed counts. Else estimates
    are taken for means of their runs. The noise is what runs of the same configuration differ by; a Gaussian process
    then tells from all trials together what each would give on average. Where no configuration ran twice, or all
    repeats agree, noise cannot be told from a rough function, and the lowest estimate counts.
    """
    known = _lowest_first(trials)
    measured = [completed_values(trials[at]) for at in known]
    if all(len(values) == 1 or min(values) == max(values) for values in measured):
        return known[0] if known else None
    runs = [np.array(values) for values in measured]
    known, scale = known[:_MOST], _scale(np.concatenate(runs))
    x = space.to_unit(space.codes([trials[at].config for at in known]))
    groups = [scale(values) for values in runs]
    ordered = np.asarray(space.ordered, dtype=np.bool_)
    with one_thread():
        expected = expected_at_two_speeds(x, groups[: len(known)], ordered)
        if expected is None:
            y = scale(np.array([_value(trials[at]) for at in known]))
            expected = _expected_at_one_speed(x, y, _errors(_without_accidents(groups))[: len(y)], ordered)
    return known[int(np.argmin(expected))]


def _expected_at_one_speed(x: FloatArray, y: FloatArray, errors: FloatArray, ordered: BoolArray) -> FloatArray:
    """What each configuration gives on average if the noise of its mean has the deviation in `errors`."""
    # The nugget belongs to the function here: it makes neighbours differ, but is the same in every run.
    data = Observations(x, y, np.ones(len(y)), errors)
    process = GaussianProcess(ordered, "laplace")
    process.fit(data)
    return process.without_error(data)[0]


def _lowest_first(trials: Sequence[Trial]) -> list[int]:
    """The positions of the trials that never failed and have an estimate, the lowest first, the earliest of equals."""
    known = [at for at, trial in enumerate(trials) if trial.estimate is not None and is_reliable(trial)]
    return sorted(known, key=lambda at: _value(trials[at]))


def _low(trial: Trial) -> float:
    """The median of the three lowest runs of a trial, or of as many as it has.

    A single one that is far too fast did less than the others, and would win whatever its configuration is worth.
    """
    return median_of(sorted(completed_values(trial))[:3])


def _value(trial: Trial) -> float:
    return float("inf") if trial.estimate is None else trial.estimate.value


def _scale(values: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """A rising scale: logarithmic where all values have the same sign, as what disturbs a run does so by a factor."""
    if values.min() > 0.0 or values.max() < 0.0:
        return lambda some: np.sign(some) * np.log(np.abs(some))
    largest = float(np.max(np.abs(values)))
    return lambda some: some / largest


def _without_accidents(runs: Sequence[FloatArray]) -> list[FloatArray]:
    """The runs, each brought within `_FARTHEST` deviations of the middle of its group.

    What is farther away is no noise but an accident, and a single one would make the model doubt all that was measured.
    The deviation comes from the median of all distances, which accidents hardly move (Huber 1981, section 5.7). Of each
    group the least distance is left out, as the middle itself has none; then the others are too small by a factor of
    about sqrt((n - 1) / n).
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
    """The deviation of the mean of each group: by its own scatter, drawn towards that of all while runs are few."""
    scatter = scatter_of(runs)
    variances = (_PRIOR_FREEDOM * scatter.common + scatter.squares) / (_PRIOR_FREEDOM + scatter.counts - 1.0)
    return np.sqrt(variances / scatter.counts)
