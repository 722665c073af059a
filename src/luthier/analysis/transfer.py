"""What an earlier experiment found, as configurations for the next one to try first."""

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
"""How many of its best configurations an experiment hands on."""


def best_configs(result: Result, count: int = HANDED_ON) -> list[Config]:
    """The best configurations, the best one first: a winner that was proven to be better, then by their estimates.

    Of a Pareto front: the recommended one, then both ends and the middle.
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
    """The configuration of `space` that resembles one of another space most; None if there is none.

    Values go by the names of parameters. A parameter without one has its default. A number that is not among the values
    of a parameter with an order becomes the nearest of them; any other value must be there, and constraints must hold.
    """
    values: dict[str, Value] = {}
    for parameter in space.parameters:
        value = _nearest(parameter, config[parameter.name]) if parameter.name in config else parameter.default
        if value is None:
            return None
        values[parameter.name] = value
    return space.check(values) if space.contains(values) else None


def _nearest(parameter: Parameter, wanted: Value) -> Value | None:
    """The value, or the nearest one by difference, on a log scale by ratio; None where nothing is near."""
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
    """The number that a value is or, like 64k, stands for."""
    if isinstance(value, bool):
        return None
    if not isinstance(value, str):
        return value
    try:
        return parse_quantity(value)[0]
    except SpaceError:
        return None
