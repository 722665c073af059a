"""The best configurations of an earlier experiment, to be tried first in the next one."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from luthier.analysis.recommendation import is_reliable
from luthier.analysis.result import Result
from luthier.analysis.trials import best_first
from luthier.errors import SpaceError
from luthier.space import Choice, Parameter, Space, parse_quantity
from luthier.trial import Config, Trial, Value

HANDED_ON = 3
"""How many of the best configurations of an experiment are used by the next one."""


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


def carried_over(config: Mapping[str, Value], space: Space) -> Config | None:
    """The configuration of `space` that is most similar to one of another space; None if there is none.

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
