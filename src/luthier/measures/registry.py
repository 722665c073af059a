"""Measures by name; other packages add theirs through the entry point group `luthier.measures`."""

from collections.abc import Callable, Mapping, Sequence

from luthier.errors import InvalidInputError
from luthier.io.measures import IoMeasure
from luthier.measures.base import Measure
from luthier.measures.functions import Plugin, Returned
from luthier.measures.json_output import JsonPath
from luthier.measures.metrics import METRICS, Metric
from luthier.measures.osu import OsuLatency
from luthier.measures.output import Regex
from luthier.measures.several import Several
from luthier.measures.shell_time import ShellTime
from luthier.plugins import Registry
from luthier.texts import check_length, check_text
from luthier.trial import Execution

_WORDS: Mapping[str, Measure] = {
    **{name: Metric(name, parts) for name, parts in METRICS.items()},
    "osu": OsuLatency(),
    "time": ShellTime(),
    "returned": Returned(),
}

PATTERNS: Mapping[str, tuple[Callable[[str], Measure], str]] = {
    "regex": (Regex, "PATTERN"),
    "json": (JsonPath, "PATH"),
    "osu": (OsuLatency.of_size, "SIZE"),
    "io": (IoMeasure.named, "NAME"),
}
"""Measures that are a word, a colon, and what to look for in the output; each with what that is called."""

MEASURES: Registry[Callable[[Execution], object]] = Registry(
    "measure", _WORDS, notations=tuple(f"{word}:{argument}" for word, (_, argument) in PATTERNS.items())
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
    if word not in PATTERNS:
        return Plugin(text, MEASURES.get(text))
    make, expected = PATTERNS[word]
    if not colon:
        raise InvalidInputError(f"measure: {word!r} needs what to look for; write {word}:{expected}")
    return make(argument)
