"""Figures of the parameters: importance, effects, and the values that were tried."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from luthier.errors import InvalidInputError
from luthier.figures.figure import SHADES, Axis, Figure, Panel, Trace
from luthier.figures.scales import ValueScale, thinned, trial_of, value_scale
from luthier.result.importance import Curve, importances, partial_dependence
from luthier.result.result import Result
from luthier.result.text import config_text, estimate_text
from luthier.result.trials import best_first
from luthier.space import Choice, Parameter
from luthier.trial import Estimate, Trial, Value

MOST_PANELS = 6
"""If there are more parameters, only the most important ones are shown."""

_MOST_LINES = 250
_MOST_TICKS = 8
_MOST_NAMES = 12
_FEWEST_A_PANEL = 100
_FIFTHS = ("best fifth", "second", "third", "fourth", "worst fifth")


def importance(result: Result, _points: int) -> Figure | None:
    """The share of the variance that each parameter explains, with its interval."""
    if len(result.experiment.space.names) < 2:
        return None
    known = importances(result)
    if known.unexplained is None:
        return None
    found = known.parameters[::-1]
    bars = Trace(
        kind="bars",
        role="search",
        x=[100.0 * one.share for one in found],
        y=[float(place) for place in range(len(found))],
        low=[100.0 * one.low for one in found],
        high=[100.0 * one.high for one in found],
        texts=[f"{one.parameter}: {one.share:.0%} ({one.low:.0%} to {one.high:.0%})" for one in found],
    )
    rest = Trace(
        kind="bars",
        role="default",
        x=[100.0 * known.unexplained],
        y=[-1.0],
        low=[None],
        high=[None],
        texts=[f"noise: {known.unexplained:.0%}"],
    )
    names = ((-1.0, "noise"), *((float(place), one.parameter) for place, one in enumerate(found)))
    panel = Panel(Axis("share of the variance [%]"), Axis(ticks=names))
    return Figure("Parameter importance", (panel,), (bars, rest) if found else (rest,), known.note or "")


def dependence(result: Result, _points: int) -> Figure | None:
    """How the value depends on each parameter, averaged over the others."""
    names: tuple[str, ...] = result.experiment.space.names
    if len(names) > MOST_PANELS:
        names = tuple(one.parameter for one in importances(result).parameters[:MOST_PANELS])
    try:
        curves = [partial_dependence(result, name) for name in names]
    except InvalidInputError:  # too few measurements, or nothing but noise
        return None
    known = [number for curve in curves for number in (*curve.low, *curve.high) if number is not None]
    if not known or min(known) == max(known):
        return None
    scale = value_scale(result.experiment, known)
    parameters = {parameter.name: parameter for parameter in result.experiment.space.parameters}
    panels, traces = [], []
    for number, curve in enumerate(curves):
        parameter = parameters[curve.parameter]
        panels.append(Panel(_axis(parameter), scale.axis if number == 0 else Axis(scale=scale.scale), parameter.name))
        traces += [trace for part in _stretches(parameter, curve) for trace in _drawn(parameter, part, scale, number)]
    gaps = any(None in curve.mean for curve in curves)
    note = "values without a measurement are left out" if gaps else ""
    return Figure("Effect of each parameter", tuple(panels), tuple(traces), note)


_Point: TypeAlias = tuple[Value, float, float, float]


def _stretches(parameter: Parameter, curve: Curve) -> list[list[_Point]]:
    """The parts of a curve between values that are not known: value, mean, low, high; a choice has a single part."""
    parts: list[list[_Point]] = [[]]
    for value, mean, low, high in zip(curve.values, curve.mean, curve.low, curve.high, strict=True):
        if mean is not None and low is not None and high is not None:
            parts[-1].append((value, mean, low, high))
        elif parts[-1] and not isinstance(parameter, Choice):
            parts.append([])
    return [part for part in parts if part]


def _drawn(parameter: Parameter, points: Sequence[_Point], scale: ValueScale, panel: int) -> list[Trace]:
    x = [_place(parameter, value) for value, *_ in points]
    mean, low, high = (scale.places(part) for part in zip(*(point[1:] for point in points), strict=True))
    texts = [f"{parameter.name}={parameter.format(value)}: {scale.text(middle)}" for value, middle, *_ in points]
    line = Trace(kind="line", role="search", x=x, y=mean, texts=texts, panel=panel)
    if len(points) == 1:
        return [replace(line, kind="points", low=low, high=high)]
    return [Trace(kind="band", role="search", x=x, low=low, high=high, panel=panel), line]


def scatter(result: Result, points: int) -> Figure | None:
    """The estimates of all configurations against the value of each parameter."""
    known = _estimated(result.trials)
    if len(known) < 2:
        return None
    parameters = result.experiment.space.parameters
    values = [guess.value for _, guess in known]
    scale = value_scale(result.experiment, values)
    shown = [known[at] for at in thinned(values, max(points // len(parameters), _FEWEST_A_PANEL))]
    winner = None if result.winner is None else trial_of(result, result.winner.config)
    best = [pair for pair in known if pair[0] is winner]
    panels, traces = [], []
    for number, parameter in enumerate(parameters):
        upwards = scale.axis if number == 0 else Axis(scale=scale.scale)
        panels.append(Panel(_axis(parameter), upwards, parameter.name))
        dots = Trace(kind="points", role="search", name="configuration", faint=True, x=())
        star = Trace(kind="points", role="best", name="best", symbol="diamond", x=())
        for trace, pairs in ((dots, shown), (star, best)):
            if pairs:
                placed = _against(parameter, pairs, scale)
                x, y, texts = [one[0] for one in placed], [one[1] for one in placed], [one[2] for one in placed]
                name = trace.name if number == 0 else ""
                traces.append(replace(trace, name=name, x=x, y=y, texts=texts, panel=number))
    return Figure("Values tried", tuple(panels), tuple(traces))


def parallel(result: Result, points: int) -> Figure | None:
    """All configurations as lines over the parameters to the value; better ones are drawn on top."""
    known = _estimated([trial for _, trial in best_first(result.experiment, result.trials)])
    space = result.experiment.space
    if len(known) < 2 or len(space.names) < 2:
        return None
    scale = value_scale(result.experiment, [guess.value for _, guess in known])
    most = min(points, _MOST_LINES, len(known))
    shown = [known[at * (len(known) - 1) // max(most - 1, 1)] for at in range(most)]
    heights = _heights(result, shown, scale)
    places = [float(place) for place in range(len(space.parameters) + 1)]
    traces = [Trace(kind="line", role="grid", x=[place, place], y=[0.0, 1.0]) for place in places]
    for fifth in reversed(range(len(SHADES))):
        rows = range(fifth * most // len(SHADES), (fifth + 1) * most // len(SHADES))
        if rows:
            lines = Trace(
                kind="line",
                role=SHADES[fifth],
                name=_FIFTHS[fifth],
                x=[place for _ in rows for place in (*places, places[-1])],
                y=[height for row in rows for height in (*heights[row], None)],
                texts=[text for row in rows for text in [_pair_text(result, shown[row])] * (len(places) + 1)],
                faint=fifth > 0,
            )
            traces.append(lines)
    traces.append(_labels(result, shown, scale))
    names = tuple(zip(places, (*space.names, scale.name), strict=True))
    return Figure("Parallel coordinates", (Panel(Axis(ticks=names), Axis(visible=False)),), tuple(traces))


def _estimated(trials: Sequence[Trial]) -> list[tuple[Trial, Estimate]]:
    return [(trial, trial.estimate) for trial in trials if trial.estimate is not None]


def _against(
    parameter: Parameter, pairs: Sequence[tuple[Trial, Estimate]], scale: ValueScale
) -> list[tuple[float, float, str]]:
    """The positions and texts of configurations against one parameter."""
    placed = []
    for trial, guess in pairs:
        value = trial.config[parameter.name]
        text = f"{parameter.name}={parameter.format(value)}: {estimate_text(guess, scale.measure)}"
        placed.append((_place(parameter, value), scale.place(guess.value), text))
    return placed


def _heights(result: Result, shown: Sequence[tuple[Trial, Estimate]], scale: ValueScale) -> list[list[float]]:
    """The height of each line on every axis, from 0 to 1; on the last axis, the best value is at the top."""
    space = result.experiment.space
    unit = space.to_unit(space.codes([trial.config for trial, _ in shown])).tolist()
    ends = [_position(guess.value, scale) for _, guess in shown]
    worst, span = ends[-1], (ends[0] - ends[-1]) or 1.0
    return [[*row, (end - worst) / span] for row, end in zip(unit, ends, strict=True)]


def _labels(result: Result, shown: Sequence[tuple[Trial, Estimate]], scale: ValueScale) -> Trace:
    """The labels of the axes: all values of a parameter with few values, else the first and the last."""
    placed = [
        (float(place), float(parameter.to_unit(np.array([parameter.code(value)]))[0]), parameter.format(value))
        for place, parameter in enumerate(result.experiment.space.parameters)
        for value in _marked(parameter)
    ]
    last = float(len(result.experiment.space.parameters))
    placed += [(last, 1.0, scale.text(shown[0][1].value)), (last, 0.0, scale.text(shown[-1][1].value))]
    x, y, texts = zip(*placed, strict=True)
    return Trace(kind="labels", role="text", x=x, y=y, texts=texts)


def _marked(parameter: Parameter) -> list[Value]:
    """The values with a label: all if there are few, else the first and the last."""
    if parameter.size is None:
        return [parameter.low, parameter.high]
    few = parameter.size <= _MOST_TICKS
    return [parameter.value(index) for index in (range(parameter.size) if few else (0, parameter.size - 1))]


def _position(value: float, scale: ValueScale) -> float:
    return math.log(value) if scale.scale == "log" else value


def _pair_text(result: Result, pair: tuple[Trial, Estimate]) -> str:
    trial, guess = pair
    said = estimate_text(guess, result.experiment.objective.measure)
    return f"{said}\n{config_text(trial.config, result.experiment.space)}"


def _place(parameter: Parameter, value: Value) -> float:
    """The position of a value on the parameter's axis: its number, or its index in a choice."""
    return parameter.code(value) if isinstance(parameter, Choice) else float(value)


def _axis(parameter: Parameter) -> Axis:
    """The axis of a parameter."""
    if isinstance(parameter, Choice):
        step = -(-parameter.size // _MOST_NAMES)
        return Axis(
            ticks=tuple((float(at), parameter.format(parameter.value(at))) for at in range(0, parameter.size, step))
        )
    values = _marked(parameter) if parameter.size is not None and parameter.size <= _MOST_TICKS else []
    ticks = tuple((float(value), parameter.format(value)) for value in values)
    return Axis(scale=parameter.scale, ticks=ticks)
