"""What a new experiment can learn from earlier ones: their best configurations, and all of their trials."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from luthier.errors import SpaceError
from luthier.optimizers.earlier import HANDED_ON, Earlier, EarlierTrial, read_transfer
from luthier.optimizers.scales import Warp
from luthier.result.recommendation import is_reliable
from luthier.result.result import Result
from luthier.result.trials import best_first
from luthier.space import Choice, Parameter, Space, parse_quantity
from luthier.trial import Config, Estimate, Pruned, TimedOut, Trial, Value

MOST_TRIALS = 200
"""How many trials of an earlier experiment are handed on at most."""

_MOST_FAILED = 50  # of them without a number


def best_configs(result: Result, count: int = HANDED_ON) -> list[Config]:
    """The best configurations, best first: the winner if it is proven to be better, then by estimate.

    With a Pareto front: the recommended one, then both ends and the middle of the front.
    """
    if result.experiment.has_front:
        front = result.front
        ranked: Sequence[Trial] = [front[0], front[-1], front[len(front) // 2]] if front else []
    else:
        known = [trial for _, trial in best_first(result.experiment, result.trials) if trial.estimate is not None]
        ranked = [trial for trial in known if is_reliable(trial)]
    if result.winner is not None and (result.improved or result.experiment.has_front):
        ranked = [result.winner, *ranked]
    return list(dict.fromkeys(trial.config for trial in ranked))[:count]


def lower_is_better(result: Result) -> list[Trial]:
    """The trials of an experiment with a single objective, as an optimizer is told them."""
    if not result.experiment.objective.maximizes:
        return list(result.trials)
    return [
        trial
        if trial.estimate is None
        else replace(trial, estimate=Estimate(-trial.estimate.value, trial.estimate.count))
        for trial in result.trials
    ]


def earlier_from(
    histories: Sequence[Sequence[Trial]], space: Space, transfer: str = "auto", notes: Sequence[str] = ()
) -> Earlier:
    """What a search of `space` can learn from earlier histories; lower estimates are better.

    Their configurations may be of other spaces: see `values_for`. `transfer` is the setting of this name. `notes` tell
    people what each history is.
    """
    kind, share = read_transfer(transfer)
    trials = [each for source, history in enumerate(histories) for each in _earlier_trials(history, space, source)]
    return Earlier(tuple(trials), kind, share, tuple(notes))


def values_for(config: Mapping[str, Value], space: Space) -> dict[str, Value]:
    """The values of a configuration of another space that `space` has, too, by parameter name.

    A number outside of a range or between two values is replaced by the nearest one; a category that does not exist
    any more is left out.
    """
    found: dict[str, Value] = {}
    for parameter in space.parameters:
        value = _nearest(parameter, config[parameter.name]) if parameter.name in config else None
        if value is not None:
            found[parameter.name] = value
    return found


def _earlier_trials(history: Sequence[Trial], space: Space, source: int) -> list[EarlierTrial]:
    """The trials of one history: at most `MOST_TRIALS`, the best ones and some of the others."""
    measured = sorted((t for t in history if t.estimate is not None), key=_value)
    if not measured:
        return []
    scale = Warp.of(np.array([_value(trial) for trial in measured]))
    failed = _spread([t for t in history if t.estimate is None and t.outcomes], _MOST_FAILED)
    best = measured[: (MOST_TRIALS - len(failed)) // 2]
    chosen = [*best, *_spread(measured[len(best) :], MOST_TRIALS - len(failed) - len(best)), *failed]
    found = []
    for trial in chosen:
        bound = _bound(trial)
        known = bound if trial.estimate is None else trial.estimate.value
        score = None if known is None else round(float(scale(np.array([known]))[0]), 4)
        is_bound = trial.estimate is None and bound is not None
        found.append(EarlierTrial(values_for(trial.config, space), score, is_bound, source))
    return [each for each in found if each.values]


def _spread(trials: Sequence[Trial], most: int) -> list[Trial]:
    """At most this many of the trials, at equal distances."""
    if len(trials) <= most:
        return list(trials)
    return [trials[at * len(trials) // most] for at in range(most)]


def _bound(trial: Trial) -> float | None:
    """The largest lower bound that a run cut short gives."""
    bounds = [o.at_least for o in trial.outcomes if isinstance(o, TimedOut | Pruned) and o.at_least is not None]
    return max(bounds, default=None)


def _value(trial: Trial) -> float:
    return math.inf if trial.estimate is None else trial.estimate.value


def carried_over(config: Mapping[str, Value], space: Space) -> Config | None:
    """The configuration of `space` that is most similar to one of another space; None without one.

    Values are assigned by parameter name; a parameter without a value has its default. A number that is not a value of
    an ordered parameter is replaced by the nearest one; any other value must exist, and constraints must hold.
    """
    values: dict[str, Value] = {}
    for parameter in space.parameters:
        value = _nearest(parameter, config[parameter.name]) if parameter.name in config else parameter.default
        if value is None:
            return None
        values[parameter.name] = value
    return space.check(values) if space.contains(values) else None


def _nearest(parameter: Parameter, wanted: Value) -> Value | None:
    """The value or the nearest one (by ratio on a log scale, else by difference); None if there is no order."""
    if parameter.contains(wanted):
        return wanted
    number = _number(wanted)
    if number is None or not parameter.ordered:
        return None
    if isinstance(parameter, Choice):
        magnitudes = parameter.magnitudes()
        if magnitudes is None:
            return None
        return min(zip(magnitudes, parameter.values, strict=True), key=lambda pair: abs(pair[0] - number))[1]
    if parameter.size is None:
        return min(max(number, parameter.low), parameter.high)
    above = bisect_left(range(parameter.size), number, key=parameter.value)
    nearby = [parameter.value(index) for index in (above - 1, above) if 0 <= index < parameter.size]
    if parameter.scale == "log" and number > 0:
        return min(nearby, key=lambda value: abs(math.log(value) - math.log(number)))
    return min(nearby, key=lambda value: abs(value - number))


def _number(value: Value) -> int | float | None:
    """The number that a value is or, like 64k, represents."""
    if isinstance(value, bool):
        return None
    if not isinstance(value, str):
        return value
    try:
        return parse_quantity(value)[0]
    except SpaceError:
        return None
