"""The plug point of the ways to turn what a run left behind into a number, and what is known about them by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from luthier.plugins import Registry
from luthier.trial import Execution, Outcome


class Measure(Protocol):
    """Turns an execution into an outcome; it reads files the run left behind, and never raises because of them."""

    def __call__(self, execution: Execution) -> Outcome:
        """Return the measured value, or the reason why it is missing."""
        ...


@dataclass(frozen=True, slots=True)
class About:
    """What is known about a measure: its usual goal, its unit (`s`, `B`, `B/s`), and the instruments that it needs.

    `quantity` says what it measures: the elapsed `time`, a `part` of it, an `amount` that is neither a time nor a rate,
    or something `else`.
    """

    goal: Literal["minimize", "maximize"] = "minimize"
    unit: str = ""
    quantity: Literal["time", "part", "amount", "else"] = "else"
    instruments: tuple[str, ...] = ()


_ELSE = About()


@dataclass(frozen=True, slots=True)
class MeasureKind:
    """Measures that are a word, a colon and an argument, such as `json:PATH`; `argument` says what that is called.

    `about` tells what is known about one of them by its argument.
    """

    make: Callable[[str], Measure]
    argument: str
    about: Callable[[str], About] = lambda _: _ELSE


# Imported when asked for: some of them need a library for patterns.
KINDS: Registry[MeasureKind] = Registry(
    "measure-kind",
    {
        "regex": "luthier.measures.output:REGEX",
        "json": "luthier.measures.json_output:JSON",
        "osu": "luthier.measures.osu:OSU",
    },
    fits=lambda thing: isinstance(thing, MeasureKind),
)

_SECONDS = About(unit="s")
_WORDS: Mapping[str, About] = {
    "wall": About(unit="s", quantity="time"),
    **dict.fromkeys(("user", "system", "cpu", "time"), _SECONDS),
    "memory": About(unit="B", quantity="amount"),
}


def about(measure: str) -> About:
    """What is known about a measure; it need not exist."""
    word, colon, argument = measure.partition(":")
    if not colon or word not in KINDS.own():
        return _WORDS.get(measure, _ELSE)
    return KINDS.get(word).about(argument)
