"""Measures by name; other packages add theirs through the entry point group `luthier.measures`."""

from collections.abc import Callable, Mapping, Sequence

from luthier.errors import InvalidInputError
from luthier.measures.base import KINDS, Measure
from luthier.measures.functions import Plugin, Returned
from luthier.measures.metrics import METRICS, Metric
from luthier.measures.osu import OsuLatency
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
