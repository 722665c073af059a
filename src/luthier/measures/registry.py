"""Measures by name."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from luthier.errors import InvalidInputError, NotFoundError
from luthier.measures.base import Measure
from luthier.measures.functions import Plugin, Returned
from luthier.measures.json_output import JsonPath
from luthier.measures.metrics import METRICS, Metric
from luthier.measures.osu import OsuLatency
from luthier.measures.output import Regex
from luthier.measures.several import Several
from luthier.texts import check_length, check_text, closest, shown

PLUGINS = "luthier.measures"
"""The group of entry points through which other packages add measures: functions from an execution to a number."""

MEASURES: Mapping[str, Callable[[], Measure]] = {
    **{name: partial(Metric, name, parts) for name, parts in METRICS.items()},
    "osu": OsuLatency,
    "returned": Returned,
}
"""Measures that are a word."""

PATTERNS: Mapping[str, Callable[[str], Measure]] = {"regex": Regex, "json": JsonPath}
"""Measures that are a word, a colon, and what to look for in the output."""


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
    if text in MEASURES:
        return MEASURES[text]()
    word, colon, argument = text.partition(":")
    if word in PATTERNS:
        if not colon:
            raise InvalidInputError(f"measure: {word!r} needs what to look for; write {word}:{_USAGE[word]}")
        return PATTERNS[word](argument)
    return _plugin(text)


_USAGE: Mapping[str, str] = {"regex": "PATTERN", "json": "PATH"}


def _plugin(name: str) -> Measure:
    """Load a measure another package brought along; only what is installed can be named, never a dotted path."""
    from importlib.metadata import entry_points

    plugins = {entry.name: entry for entry in entry_points(group=PLUGINS)}
    if name not in plugins:
        choices = [*MEASURES, *(f"{word}:{usage}" for word, usage in _USAGE.items()), *sorted(plugins)]
        nearest = closest(name.partition(":")[0], [*MEASURES, *PATTERNS, *plugins])
        hint = f" did you mean {nearest!r}?" if nearest else ""
        raise NotFoundError(f"measure: there is no {shown(name)};{hint} there are: {', '.join(choices)}")
    try:
        function: object = plugins[name].load()
    except Exception as error:
        raise InvalidInputError(
            f"measure: the plug-in {name!r} ({plugins[name].value}) cannot be loaded: {error}; reinstall or remove it"
        ) from error
    if not callable(function):
        raise InvalidInputError(f"measure: the plug-in {name!r} ({plugins[name].value}) is no function")
    return Plugin(name, function)
