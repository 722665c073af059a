"""Measures by name, and those of what a runner noted or a function returned.

Other packages add theirs through the entry point group `luthier.measures`.
"""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real

from luthier.errors import InvalidInputError
from luthier.measures.base import KINDS, Measure
from luthier.measures.osu import OsuLatency
from luthier.measures.output import ShellTime
from luthier.plugins import Registry
from luthier.texts import check_length, check_text
from luthier.trial import Completed, Execution, Failed, Outcome, Pruned, TimedOut

_logger = logging.getLogger(__name__)

METRICS: Mapping[str, tuple[str, ...]] = {
    "wall": ("wall_s",),
    "user": ("user_s",),
    "system": ("system_s",),
    "cpu": ("user_s", "system_s"),
    "memory": ("peak_memory_bytes",),
}
"""The metrics of the runner that each measure adds up."""


@dataclass(frozen=True, slots=True)
class Metric:
    """The sum of some of the runner's metrics; each of them only grows during a run.

    That is why a run that was stopped is known to have a value of at least what it had reached by then. No run takes a
    wall time of 0 s, so that is a failure; the processor time of a small program may well be 0, as the system counts it
    in ticks. `memory` is the peak of the largest single process, not the sum over several.
    """

    name: str
    parts: tuple[str, ...]

    def __call__(self, execution: Execution) -> Outcome:
        """Return the metric, or the problem with the metric as its lower bound."""
        problem = execution.problem
        known = all(part in execution.metrics for part in self.parts)
        reached = math.fsum(execution.metrics[part] for part in self.parts) if known else math.nan
        if problem is None and not known:
            return Failed(
                f"this runner does not measure {self.name!r}, only: {', '.join(execution.metrics) or 'nothing'}"
            )
        if problem is None:
            return self._checked(reached)
        if isinstance(problem, TimedOut | Pruned) and math.isfinite(reached):
            return replace(problem, at_least=reached)
        return problem

    def _checked(self, value: float) -> Outcome:
        is_wall = "wall_s" in self.parts
        if not math.isfinite(value) or value < 0 or (is_wall and value == 0):
            return Failed(f"measured {self.name} = {value:g}, which cannot be; the run does not count")
        return Completed(value)


@dataclass(frozen=True, slots=True)
class Returned:
    """The number that the Python function under test returned, or its `count` numbers, one for each objective."""

    count: int = 1

    def __call__(self, execution: Execution) -> Outcome:
        """Return what it returned, or why that is not a measurement."""
        if execution.problem is not None:
            return execution.problem
        if execution.value is None:
            return Failed("'returned' needs a Python function's result, and this run has none")
        numbers = (execution.value, *execution.others)
        if len(numbers) != self.count:
            return Failed(f"returned {len(numbers)} numbers, expected {self.count}: one for each goal")
        if bad := [number for number in numbers if not math.isfinite(number)]:
            return Failed(f"returned {bad[0]}")
        return Completed(execution.value, execution.others)


@dataclass(frozen=True, slots=True)
class Plugin:
    """An installed function from an execution to a number; it is called for runs that ended well."""

    name: str
    function: Callable[[Execution], object]

    def __call__(self, execution: Execution) -> Outcome:
        """Return the function's number; if it raises or returns none, the run counts as failed."""
        if execution.problem is not None:
            return execution.problem
        try:
            value: object = self.function(execution)
        except Exception as error:  # a plug-in may fail in any way
            _logger.debug("measure %s raised", self.name, exc_info=True)
            return Failed(f"measure {self.name!r} raised {type(error).__name__}: {error}")
        if isinstance(value, bool) or not isinstance(value, Real):
            return Failed(f"measure {self.name!r} returned {value!r:.60}, expected a finite number")
        try:
            number = float(value)
        except OverflowError:  # a whole number has no limit
            number = math.inf
        if not math.isfinite(number):
            return Failed(f"measure {self.name!r} returned {number}, expected a finite number")
        return Completed(number)


@dataclass(frozen=True, slots=True)
class Several:
    """Takes every measure of a run: the first gives the value, the rest the others."""

    measures: tuple[Measure, ...]

    def __call__(self, execution: Execution) -> Outcome:
        """Return all the numbers, or why the first missing one is missing."""
        values: list[float] = []
        for measure in self.measures:
            outcome = measure(execution)
            if not isinstance(outcome, Completed):
                return outcome
            values.append(outcome.value)
        return Completed(values[0], tuple(values[1:]))


_WORDS: Mapping[str, Measure] = {
    **{name: Metric(name, parts) for name, parts in METRICS.items()},
    "osu": OsuLatency(),
    "time": ShellTime(),
    "returned": Returned(),
}

MEASURES: Registry[Callable[[Execution], object]] = Registry(
    "measure", _WORDS, notations=lambda: tuple(f"{word}:{KINDS.get(word).argument}" for word in KINDS.own())
)
"""Measures that are a word. A plug-in is a function from an execution to a number."""


def measures_from(texts: Sequence[str]) -> Measure:
    """Return the measure that takes every named one of a run; with one name, that one itself.

    A run is measured if each of them gives a number; if not, the first problem is the outcome.
    """
    if all(text == "returned" for text in texts):
        return Returned(len(texts))
    measures = tuple(measure_from(text) for text in texts)
    return measures[0] if len(measures) == 1 else Several(measures)


def measure_from(text: str) -> Measure:
    """Return the measure a user named: `wall`, `regex:PATTERN`, `json:PATH`, an installed plug-in's name."""
    check_text(check_length(text, "measure"), "measure")
    if text in _WORDS:
        return _WORDS[text]
    word, colon, argument = text.partition(":")
    if word not in KINDS.own():
        return Plugin(text, MEASURES.get(text))
    kind = KINDS.get(word)
    if not colon:
        raise InvalidInputError(f"measure: {word!r} needs what to look for; write {word}:{kind.argument}")
    return kind.make(argument)
