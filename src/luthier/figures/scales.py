"""Conversion of values, times and long histories to positions on an axis."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from luthier.figures.figure import Axis
from luthier.result.result import Result
from luthier.result.text import measure_names, value_text
from luthier.result.verdict import ratio_text
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Goal
from luthier.trial import Completed, Config, Run, Trial

_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_UNITS = {"ms": 1e-3, "s": 1.0, **{unit: 1024.0**power for power, unit in enumerate(_BYTES)}}
_WIDE = 20.0  # values that differ by more than this factor need a logarithmic axis


@dataclass(frozen=True, slots=True)
class ValueScale:
    """How the values of one objective are drawn: divided by the size of `unit`."""

    name: str
    measure: str
    goal: Goal
    unit: str
    size: float
    scale: Literal["linear", "log"]

    @property
    def axis(self) -> Axis:
        """The axis for such values."""
        unit = f" [{self.unit}]" if self.unit else ""
        return Axis(f"{self.name}{unit}, {'higher' if self.goal == 'maximize' else 'lower'} is better", self.scale)

    def place(self, value: float) -> float:
        """The position of a value on the axis."""
        return value / self.size

    def places(self, values: Sequence[float | None]) -> list[float | None]:
        """The positions of values on the axis; None stays None."""
        return [None if value is None else value / self.size for value in values]

    def text(self, value: float) -> str:
        """The value with its unit."""
        return value_text(value, self.measure)

    def is_better(self, value: float, other: float) -> bool:
        """Whether a value is better than another one."""
        return value > other if self.goal == "maximize" else value < other

    def best(self, values: Sequence[float]) -> float:
        """The best value."""
        return max(values) if self.goal == "maximize" else min(values)


def value_scale(experiment: Experiment, values: Sequence[float], position: int = 0) -> ValueScale:
    """The scale of the objective at `position`, suited to these values."""
    objective = experiment.objectives[position]
    unit = value_text(max(map(abs, values), default=1.0), objective.measure).partition(" ")[2]
    name = measure_names(experiment)[position]
    return ValueScale(name, objective.measure, objective.goal, unit, _UNITS.get(unit, 1.0), suited(values))


def suited(values: Sequence[float]) -> Literal["linear", "log"]:
    """The scale of an axis for these values: logarithmic if they are positive and differ by a large factor."""
    wide = bool(values) and min(values) > 0.0 and max(values) / min(values) > _WIDE
    return "log" if wide else "linear"


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Times since the start of the first run, in a suitable unit."""

    began_s: float
    size_s: float
    unit: str

    def place(self, at_s: float) -> float:
        """The position of a time on the axis."""
        return (at_s - self.began_s) / self.size_s

    @property
    def axis(self) -> Axis:
        """The axis for times."""
        return self.axis_without("")

    def axis_without(self, omitted: str) -> Axis:
        """The axis for times of which some were omitted."""
        return Axis(f"time since the start of the first run{omitted and f', without {omitted}'} [{self.unit}]")


def time_scale(runs: Sequence[Run]) -> TimeScale:
    """The time scale of these runs, at least one."""
    return span_scale(min(run.began_at for run in runs), max(run.began_at + (run.duration_s or 0.0) for run in runs))


def span_scale(began: float, ended: float) -> TimeScale:
    """The time scale from the start of the first run to the end of the last one."""
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if ended - began > 3.0 * size:
            return TimeScale(began, size, unit)
    return TimeScale(began, 1.0, "s")


def measured(runs: Iterable[Run]) -> Iterator[tuple[Run, float]]:
    """The completed runs with their values, in order."""
    return ((run, run.outcome.value) for run in runs if isinstance(run.outcome, Completed))


def trial_of(result: Result, config: Config) -> Trial | None:
    """The trial of a configuration with its estimate from the search, without the runs of the verification."""
    known = hash(config)  # compare hashes first: comparing thousands of mappings is slow
    return next((trial for trial in result.trials if hash(trial.config) == known and trial.config == config), None)


def records(values: Sequence[float], is_better: Callable[[float, float], bool]) -> list[int]:
    """The positions at which a value is better than all before it."""
    found: list[int] = []
    for position, value in enumerate(values):
        if not found or is_better(value, values[found[-1]]):
            found.append(position)
    return found


def steps(x: Sequence[float], y: Sequence[float], end: float) -> tuple[list[float], list[float]]:
    """The corners of a step line that keeps its height until the next x, and the last height until `end`."""
    corners = [place for place in x for _ in (0, 1)]
    return [*corners[1:], end][: len(corners)], [height for height in y for _ in (0, 1)]


def thinned(values: Sequence[float], points: int) -> list[int]:
    """The positions of the values to show, at most `points` of them.

    The values are divided into equal sections. Of each section, the lowest, the highest and two fixed ones are kept, so
    that frequent values stay visible.
    """
    count = len(values)
    if count <= points:
        return list(range(count))
    stretches = max(points // 4, 1)
    kept: set[int] = set()
    for number in range(stretches):
        stretch = range(number * count // stretches, (number + 1) * count // stretches)
        extremes = (min(stretch, key=values.__getitem__), max(stretch, key=values.__getitem__))
        kept |= {*extremes, stretch[0], stretch[len(stretch) // 2]}
    return sorted(kept)


def gain(default: float, value: float, goal: Goal, *, ratio: bool) -> float:
    """The ratio of improvement over the default; without `ratio`, the difference."""
    if ratio:
        over, under = (value, default) if goal == "maximize" else (default, value)
        return over / under if under else math.inf
    return value - default if goal == "maximize" else default - value


def gain_axis(*, ratio: bool) -> Axis:
    """The axis for gains."""
    return Axis("times as good as the default" if ratio else "better than the default by")


def gain_text(number: float, *, ratio: bool) -> str:
    """A gain in the same format as in the verdict."""
    return ratio_text(number) if ratio else f"{number:+.4g}"
