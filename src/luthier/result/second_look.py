"""Configurations whose only run may have been an outlier."""

from collections.abc import Sequence

import numpy as np

from luthier.arrays import FloatArray
from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.learn.linear import one_thread
from luthier.policies.base import completed_values
from luthier.result.recommendation import is_reliable, log_scale
from luthier.space import Space
from luthier.trial import Trial

_FEWEST = 6  # trials: a model of fewer says nothing about one of them
_MOST = 500  # a model of more trials is slow
_SURPRISING = 2.0  # in standard deviations: how much worse than expected an outlier looks
_PROMISING = -1.0  # in standard deviations: how far the expected value may be above the best one


def second_look(space: Space, trials: Sequence[Trial], best: int | None) -> int | None:
    """The trial to run again: worse than expected from all others, which expect it to be about as good as the best.

    A disturbed run can hide a good configuration, which no search suggests a second time. If the second run of such a
    trial beats the best one, it runs a third time: then the median decides which of the two runs was the outlier.
    """
    guess = None if best is None else trials[best].estimate
    if guess is None:
        return None
    for number, trial in enumerate(trials):
        values = completed_values(trial)
        if number != best and len(values) == 2 and values[1] < guess.value < values[0] and is_reliable(trial):
            return number
    known = [number for number, trial in enumerate(trials) if trial.estimate is not None and is_reliable(trial)]
    known = known[-_MOST:]
    if len(known) < _FEWEST:
        return None
    return _suspect(space, trials, known, guess.value)


def _suspect(space: Space, trials: Sequence[Trial], known: Sequence[int], best: float) -> int | None:
    estimates = [guess.value for number in known if (guess := trials[number].estimate) is not None]
    scale = log_scale(np.array([*estimates, best]))
    y, lowest = scale(np.array(estimates)), float(scale(np.array([best]))[0])
    counts = np.array([len(completed_values(trials[number])) for number in known])
    if np.ptp(y) == 0.0:
        return None
    data = Observations(
        space.to_unit(space.codes([trials[number].config for number in known])), y, 1.0 / counts, np.zeros(len(y))
    )
    with one_thread():
        process = GaussianProcess(np.asarray(space.ordered, dtype=np.bool_))
        process.fit(data)
        expected, deviation = process.leave_one_out()
    surprise: FloatArray = (y - expected) / deviation
    promise: FloatArray = (lowest - expected) / deviation
    candidates = np.flatnonzero((counts == 1) & (surprise >= _SURPRISING) & (promise >= _PROMISING) & (y > lowest))
    return known[int(candidates[np.argmax(promise[candidates])])] if len(candidates) else None
