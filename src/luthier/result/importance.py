"""Which parameters are important, and how the measured value depends on each of them."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.errors import InvalidInputError
from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.learn.importance import Swaps, at_most, averages, effects, with_uncertainty
from luthier.learn.linear import one_thread
from luthier.learn.permutation_test import chance_without_effect, chance_without_input
from luthier.result.result import Result
from luthier.space import Space
from luthier.trial import Config, Value

FEWEST = 5
FEWEST_A_PARAMETER = 2
"""With fewer measured configurations, in total or for each parameter, the wrong parameters would be named."""

NOTHING = "no effect of any parameter can be told from noise; more runs or repeats may show one"

_SEED = 20100  # any number: the same result always gets the same importances
_EVALUATIONS = 6144  # points predicted for the effects of all parameters together
_FEWEST_DRAWS, _MOST_DRAWS = 128, 1024  # points for each sample of the space
# Points for each value of a curve.
_CURVE_DRAWS = 256
_MOST_TESTED = 120  # configurations
# The chance of a claim where there is only noise; docs/research/2026-11-18-importance-of-noise.md says what it becomes.
_CHANCE = 0.02
_NO_SHARE = 1e-4  # shares below it count as 0, above 1 minus it as 1: their logits would be infinite
_CHANCE_EACH = 0.01  # that the interval of a parameter without effect begins above zero


@dataclass(frozen=True, slots=True)
class Importance:
    """How important one parameter is.

    `share` is the part of the variance of a run's value that would vanish if this parameter were fixed, including its
    interactions with others (the total Sobol index); shares may add up to more than 1. `alone` is the part without
    interactions (the first-order index). Noise is a part of the variance. `low` and `high` bound the share with 95 %
    confidence; `low` is 0 if the parameter may have no effect.
    """

    parameter: str
    share: float
    low: float
    high: float
    alone: float


@dataclass(frozen=True, slots=True)
class Importances:
    """The `parameters`, most important first, and the share of the variance that they leave `unexplained`.

    That share is noise. Where nothing is known, `parameters` is empty, and `note` says why.
    """

    parameters: tuple[Importance, ...] = ()
    unexplained: float | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """How the value depends on one parameter, on average over the others: one entry for each of `values`.

    The entries are None where no configuration with that value, or one close to it, gave a number.
    """

    parameter: str
    values: tuple[Value, ...]
    mean: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


def importances(result: Result) -> Importances:
    """How important the parameters are, or why that is unknown.

    Only the first objective counts. The variance is that of a Gaussian process fitted to the measured configurations,
    over all valid configurations of the space with equal weight, plus the noise; values of a choice that never gave a
    number are left out. If all values are positive, their logarithms are used, so that a factor of two counts the same
    everywhere. The same result always gives the same importances.
    """
    data, space = _measured(result), result.experiment.space
    if data is None:
        return Importances(note=f"fewer than {_fewest(space)} configurations gave a number")
    rng = np.random.default_rng(_SEED)
    with one_thread():
        if not _has_effects(data, space, rng):
            return Importances(unexplained=1.0, note=NOTHING)
        swaps = _swaps(space, _Support(result), rng)
        # The same swaps for every process: they differ by their data only.
        found = with_uncertainty(lambda process: _logits(effects(process, swaps)), data, space.ordered, rng)
        proven = _proven(data, space.ordered, rng)
    value, low, high = (_shares(part) for part in (found.value, found.low[0, :-1], found.high[0, :-1]))
    # A Gaussian process finds structure in any noise, so a lower bound above 0 needs a test.
    columns = (value[0, :-1], np.where(proven, low, 0.0), high, value[1, :-1])
    listed = [
        Importance(name, share, low, high, alone)
        for name, share, low, high, alone in zip(space.names, *(part.tolist() for part in columns), strict=True)
    ]
    ordered = tuple(sorted(listed, key=lambda importance: -importance.share))
    return Importances(ordered, 1.0 - float(value[0, -1]))


def _logits(shares: FloatArray) -> FloatArray:
    """The scale of the intervals: on it, bounds never leave the range of a share. Whether one is 0 is for a test."""
    inside = np.clip(shares, _NO_SHARE, 1.0 - _NO_SHARE)
    return np.asarray(np.log(inside / (1.0 - inside)), dtype=np.float64)


def _shares(logits: FloatArray) -> FloatArray:
    """The inverse of `_logits`; the smallest share is 0."""
    shares = 1.0 / (1.0 + np.exp(-logits))
    return np.asarray(np.where(shares <= 1.001 * _NO_SHARE, 0.0, shares), dtype=np.float64)


def _has_effects(data: Observations, space: Space, rng: np.random.Generator) -> bool:
    if np.ptp(data.y) == 0.0:
        return False
    return chance_without_effect(at_most(_MOST_TESTED, data, rng), space.ordered, rng) <= _CHANCE


def _proven(data: Observations, ordered: BoolArray, rng: np.random.Generator) -> BoolArray:
    """Of which parameters a test shows that they have an effect."""
    data, process = at_most(_MOST_TESTED, data, rng), GaussianProcess(ordered)
    process.fit(data)
    chances = [chance_without_input(process, data, column, rng) for column in range(len(ordered))]
    return np.array(chances) <= _CHANCE_EACH


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
    rng, support = np.random.default_rng(_SEED), _Support(result)
    column = space.names.index(parameter)
    with one_thread():
        if not _has_effects(data, space, rng):
            raise InvalidInputError(f"{parameter}: {NOTHING}")
        codes, group = _along(space, support, column, points, rng)
        found = with_uncertainty(partial(averages, points=space.to_unit(codes), group=group), data, space.ordered, rng)
    first = codes[np.unique(group, return_index=True)[1]]
    values = tuple(config[parameter] for config in space.configs(first))
    known = support.holds(column, first[:, column]).tolist()
    outward = np.exp if _positive(result) else np.asarray
    mean, low, high = (
        tuple(number if is_known else None for number, is_known in zip(outward(part).tolist(), known, strict=True))
        for part in (found.value, found.low, found.high)
    )
    return Curve(parameter, values, mean, low, high)


class _Support:
    """Where there are measurements: which values of each parameter were tried, and which of those gave a number."""

    def __init__(self, result: Result) -> None:
        self._space = result.experiment.space
        ended = [trial for trial in result.trials if trial.outcomes]
        self._tried = self._codes([trial.config for trial in ended])
        self.measured = self._codes([trial.config for trial in ended if trial.estimate is not None])

    def _codes(self, configs: list[Config]) -> FloatArray:
        return self._space.codes(configs)

    def holds(self, column: int, codes: FloatArray) -> BoolArray:
        """Whether a value, or of numbers the nearest value that was tried, gave a number, and none is outside."""
        measured, tried = np.unique(self.measured[:, column]), np.unique(self._tried[:, column])
        if not self._space.ordered[column]:
            return np.isin(codes, measured)
        gaps = np.abs(self._unit(column, codes)[:, None] - self._unit(column, tried))
        # Of two values that are equally near, one that gave a number is enough.
        near = gaps <= gaps.min(axis=1, keepdims=True) + 1e-9
        inside = (codes >= measured[0]) & (codes <= measured[-1])
        known: BoolArray = inside & np.any(near & np.isin(tried, measured), axis=1)
        return known

    def _unit(self, column: int, codes: FloatArray) -> FloatArray:
        return self._space.parameters[column].to_unit(codes)

    def sample(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Codes of valid configurations; values of choices that never gave a number are replaced by ones that did."""
        codes = self._space.sample_codes(count, rng)
        known = np.stack(
            [self._space.ordered[column] | self.holds(column, codes[:, column]) for column in range(codes.shape[1])],
            axis=1,
        )
        taken = self.measured[rng.integers(len(self.measured), size=count)]
        moved = np.where(known, codes, taken)
        # A measured configuration is always valid.
        return np.where(self._space.feasible(moved)[:, None], moved, taken)


def _measured(result: Result) -> Observations | None:
    """The measured values as data for a model, with less noise where runs were repeated; None if too few."""
    known = [(trial.config, trial.estimate) for trial in result.trials if trial.estimate is not None]
    space = result.experiment.space
    if len(known) < _fewest(space):
        return None
    values = np.array([guess.value for _, guess in known])
    # The mean of n runs has an n-th of the noise variance of one.
    share = np.array([1.0 / guess.count for _, guess in known])
    x = space.to_unit(space.codes([config for config, _ in known]))
    return Observations(x, np.log(values) if _positive(result) else values, share, np.zeros(len(known)))


def _fewest(space: Space) -> int:
    return max(FEWEST, FEWEST_A_PARAMETER * len(space.names))


def _positive(result: Result) -> bool:
    return all(trial.estimate.value > 0.0 for trial in result.trials if trial.estimate is not None)


def _swaps(space: Space, support: _Support, rng: np.random.Generator) -> Swaps:
    # Two samples of the space, and one more for each parameter (Saltelli et al. 2010).
    draws = min(max(_EVALUATIONS // (len(space.names) + 2), _FEWEST_DRAWS), _MOST_DRAWS)
    base, other = support.sample(draws, rng), support.sample(draws, rng)
    allowed = np.empty((len(space.names), draws), dtype=np.bool_)
    for column in range(len(space.names)):
        moved = base.copy()
        moved[:, column] = other[:, column]
        allowed[column] = space.feasible(moved)
    return Swaps(space.to_unit(base), space.to_unit(other), allowed)


def _along(
    space: Space, support: _Support, column: int, points: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Codes of valid configurations for evenly spaced values of one parameter, and the number of the value of each."""
    parameter = space.parameters[column]
    few = parameter.size is not None and parameter.size <= points
    places = np.linspace(0.0, 1.0, points)
    steps = np.arange(float(parameter.size or 0)) if few else np.unique(parameter.from_unit(places))
    base = support.sample(_CURVE_DRAWS, rng)
    codes = np.repeat(base[None, :, :], len(steps), axis=0)
    codes[:, :, column] = steps[:, None]
    group = np.repeat(np.arange(len(steps), dtype=np.float64), _CURVE_DRAWS)
    rows = codes.reshape(-1, base.shape[1])
    valid = space.feasible(rows)
    _, renumbered = np.unique(group[valid], return_inverse=True)
    return rows[valid], renumbered.astype(np.float64)
