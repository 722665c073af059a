"""Which parameters are important, and how the measured value depends on each of them."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from luthier.analysis.result import Result
from luthier.arrays import FloatArray
from luthier.errors import InvalidInputError
from luthier.learn.gaussian_process import Observations
from luthier.learn.importance import Swaps, averages, effects, with_uncertainty
from luthier.learn.linear import one_thread
from luthier.space import Space
from luthier.trial import Value

FEWEST = 5
FEWEST_A_PARAMETER = 2
"""With fewer measured configurations, in total or for each parameter, the wrong parameters would be named."""

_SEED = 20100
_EVALUATIONS = 6144
_FEWEST_DRAWS, _MOST_DRAWS = 128, 1024
_CURVE_DRAWS = 256


@dataclass(frozen=True, slots=True)
class Importance:
    """How important one parameter is.

    `share` is the part of the values' variance that would vanish if this parameter were fixed, including its
    interactions with others (the total Sobol index); shares may add up to more than 1. `alone` is the part without
    interactions (the first-order index); those never add up to more than 1. `low` and `high` bound the share with 95 %
    confidence.
    """

    parameter: str
    share: float
    low: float
    high: float
    alone: float


@dataclass(frozen=True, slots=True)
class Curve:
    """How the value depends on one parameter, on average over the others: one entry for each of `values`."""

    parameter: str
    values: tuple[Value, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def importances(result: Result) -> tuple[Importance, ...]:
    """The parameters, the most important one first; empty if too little was measured or all values are equal.

    Only the first objective counts. The variance is that of a Gaussian process fitted to the measured configurations,
    over all valid configurations of the space with equal weight. If all values are positive, their logarithms are used,
    so that a factor of two counts the same everywhere. The same result always gives the same importances.
    """
    data, space = _measured(result), result.experiment.space
    if data is None or np.ptp(data.y) == 0.0:
        return ()
    rng = np.random.default_rng(_SEED)
    swaps = _swaps(space, rng)
    with one_thread():
        found = with_uncertainty(partial(effects, swaps=swaps), data, space.ordered, rng)
    columns = (found.value[0], found.low[0], found.high[0], found.value[1])
    listed = [
        Importance(name, share, low, high, alone)
        for name, share, low, high, alone in zip(space.names, *(column.tolist() for column in columns), strict=True)
    ]
    return tuple(sorted(listed, key=lambda importance: -importance.share))


def partial_dependence(result: Result, parameter: str, points: int = 20) -> Curve:
    """How the value depends on `parameter`, at up to `points` of its values, in the unit of the measure.

    Each mean is over the valid configurations with that value: the geometric mean if all measured values are positive,
    else the arithmetic mean. Values of the parameter without a valid configuration are left out.
    """
    data, space = _measured(result), result.experiment.space
    if parameter not in space.names:
        raise InvalidInputError(f"unknown parameter {parameter!r}; the parameters are {', '.join(space.names)}")
    if isinstance(points, bool) or not isinstance(points, int) or points < 2:
        raise InvalidInputError(f"points: {points!r} is not a whole number of at least 2")
    if data is None:
        raise InvalidInputError(
            f"{parameter}: fewer than {_fewest(space)} configurations gave a number; measure more of them first"
        )
    rng = np.random.default_rng(_SEED)
    column = space.names.index(parameter)
    codes, group = _along(space, column, points, rng)
    with one_thread():
        found = with_uncertainty(partial(averages, points=space.to_unit(codes), group=group), data, space.ordered, rng)
    first = codes[np.unique(group, return_index=True)[1]]
    values = tuple(config[parameter] for config in space.configs(first))
    outward = np.exp if _positive(result) else np.asarray
    mean, low, high = (tuple(outward(part).tolist()) for part in (found.value, found.low, found.high))
    return Curve(parameter, values, mean, low, high)


def _measured(result: Result) -> Observations | None:
    """The measured values as data for a model, with less noise where runs were repeated; None if too few."""
    known = [(trial.config, trial.estimate) for trial in result.trials if trial.estimate is not None]
    space = result.experiment.space
    if len(known) < _fewest(space):
        return None
    values = np.array([guess.value for _, guess in known])
    share = np.array([1.0 / guess.count for _, guess in known])
    x = space.to_unit(space.codes([config for config, _ in known]))
    return Observations(x, np.log(values) if _positive(result) else values, share, np.zeros(len(known)))


def _fewest(space: Space) -> int:
    return max(FEWEST, FEWEST_A_PARAMETER * len(space.names))


def _positive(result: Result) -> bool:
    return all(trial.estimate.value > 0.0 for trial in result.trials if trial.estimate is not None)


def _swaps(space: Space, rng: np.random.Generator) -> Swaps:
    draws = min(max(_EVALUATIONS // (len(space.names) + 2), _FEWEST_DRAWS), _MOST_DRAWS)
    base, other = space.sample_codes(draws, rng), space.sample_codes(draws, rng)
    allowed = np.empty((len(space.names), draws), dtype=np.bool_)
    for column in range(len(space.names)):
        moved = base.copy()
        moved[:, column] = other[:, column]
        allowed[column] = space.feasible(moved)
    return Swaps(space.to_unit(base), space.to_unit(other), allowed)


def _along(space: Space, column: int, points: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Codes of valid configurations for evenly spaced values of one parameter, and the number of the value of each."""
    parameter = space.parameters[column]
    few = parameter.size is not None and parameter.size <= points
    places = np.linspace(0.0, 1.0, points)
    steps = np.arange(float(parameter.size or 0)) if few else np.unique(parameter.from_unit(places))
    base = space.sample_codes(_CURVE_DRAWS, rng)
    codes = np.repeat(base[None, :, :], len(steps), axis=0)
    codes[:, :, column] = steps[:, None]
    group = np.repeat(np.arange(len(steps), dtype=np.float64), _CURVE_DRAWS)
    rows = codes.reshape(-1, base.shape[1])
    valid = space.feasible(rows)
    _, renumbered = np.unique(group[valid], return_inverse=True)
    return rows[valid], renumbered.astype(np.float64)
