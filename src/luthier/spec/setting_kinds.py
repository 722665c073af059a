"""The kinds of settings: how a value is read from a file, from Python or from the command line, and written again."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import ClassVar, Protocol

from luthier.errors import InvalidInputError
from luthier.spec.durations import format_duration, parse_duration
from luthier.spec.objectives import Objective
from luthier.texts import check_length, check_text, shown

_LONGEST = 10_000


def parse_value(text: str) -> bool | int | float | str:
    """The number or truth value that the text represents, else the text."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(check_length(text, "value", _LONGEST))
        except ValueError:
            continue
    return text


def format_value(value: object) -> str:
    """The text that `parse_value` reads as this value, where one exists."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class Kind(Protocol):
    """How the values of a setting are read and written."""

    @property
    def schema(self) -> Mapping[str, object]:
        """The JSON Schema of what a file may hold."""
        ...

    def read(self, given: object) -> object:
        """The checked value of what was given; an `InvalidInputError` does not repeat the setting's name."""
        ...

    def words(self, value: object) -> list[str]:
        """The value as arguments of the command line, one text for each time that the option is given."""
        ...


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number; with `optional` it may be None."""

    least: int
    optional: bool = False

    @property
    def schema(self) -> Mapping[str, object]:
        """An integer with its lower bound."""
        number = {"type": "integer", "minimum": self.least}
        return {"anyOf": [number, {"type": "null"}]} if self.optional else number

    def read(self, given: object) -> object:
        """Accept integers that are large enough."""
        if given is None and self.optional:
            return None
        if isinstance(given, bool) or not isinstance(given, int) or given < self.least:
            raise InvalidInputError(f"{shown(given)} is not a whole number of at least {self.least}")
        return given

    def words(self, value: object) -> list[str]:
        """The number."""
        return [] if value is None else [str(value)]


@dataclass(frozen=True, slots=True)
class Seconds:
    """A duration, such as 90s or 2h, stored in seconds; None means no limit."""

    schema: ClassVar[Mapping[str, object]] = {"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "null"}]}

    def read(self, given: object) -> object:
        """Accept positive numbers and durations with a unit."""
        if given is None:
            return None
        if isinstance(given, str):
            return parse_duration(given)
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < math.inf:
            raise InvalidInputError(f"{shown(given)} is not a duration; write for example 90s, 1.5m or 2h")
        return float(given)

    def words(self, value: object) -> list[str]:
        """The exact number of seconds."""
        return [format_duration(value)] if isinstance(value, float) else []


@dataclass(frozen=True, slots=True)
class RuleOrSeconds:
    """The name of a rule or a duration; None if neither is given."""

    schema: ClassVar[Mapping[str, object]] = Seconds.schema

    def read(self, given: object) -> object:
        """Read what begins with a digit as a duration."""
        return check_text(given, "it") if isinstance(given, str) and not given[:1].isdigit() else Seconds().read(given)

    def words(self, value: object) -> list[str]:
        """The rule, or the exact number of seconds."""
        return [value] if isinstance(value, str) else Seconds().words(value)


@dataclass(frozen=True, slots=True)
class Text:
    """A text on one line, such as a name or a rule."""

    schema: ClassVar[Mapping[str, object]] = {"type": "string"}

    def read(self, given: object) -> object:
        """Accept texts."""
        if not isinstance(given, str):
            raise InvalidInputError(f"{shown(given)} is not a text; put it in quotes")
        return check_text(given, "it")

    def words(self, value: object) -> list[str]:
        """The text."""
        return [str(value)]


@dataclass(frozen=True, slots=True)
class Folder:
    """The path of a folder, with any characters that a file system allows; None if none is given."""

    schema: ClassVar[Mapping[str, object]] = {"anyOf": [{"type": "string"}, {"type": "null"}]}

    def read(self, given: object) -> object:
        """Accept texts that can be a path."""
        if given is None:
            return None
        if not isinstance(given, str) or not given or "\0" in given:
            raise InvalidInputError(f"{shown(given)} is not the path of a folder")
        return given

    def words(self, value: object) -> list[str]:
        """The path."""
        return [] if value is None else [str(value)]


@dataclass(frozen=True, slots=True)
class Texts:
    """Any number of texts."""

    schema: ClassVar[Mapping[str, object]] = {
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
    }

    def read(self, given: object) -> object:
        """Accept a list of texts; a single text is a list of one."""
        return tuple(Text().read(one) for one in _listed(given, str))

    def words(self, value: object) -> list[str]:
        """The texts."""
        return [str(one) for one in _listed(value, str)]


@dataclass(frozen=True, slots=True)
class Objectives:
    """What to measure, as in `wall` or `max:json:iops`."""

    schema: ClassVar[Mapping[str, object]] = Texts.schema

    def read(self, given: object) -> object:
        """Accept objectives, texts, and objectives from `to_json`."""
        found = tuple(map(_objective, _listed(given, str | Objective)))
        if not found:
            raise InvalidInputError("nothing to measure; give at least one measure, such as wall")
        return found

    def words(self, value: object) -> list[str]:
        """Their notation."""
        return [_objective(one).text for one in _listed(value, str)]


@dataclass(frozen=True, slots=True)
class EarlierNumbers:
    """Numbers of earlier experiments; or `auto`, which finds some, or `none`."""

    schema: ClassVar[Mapping[str, object]] = {
        "anyOf": [
            {"type": "integer"},
            {"type": "string"},
            {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}},
        ]
    }

    def read(self, given: object) -> object:
        """Accept a number, a text such as `3,7`, `auto` or `none`, and lists of these."""
        parts = [
            part for one in _listed(given, int | str) for part in (one.split(",") if isinstance(one, str) else [one])
        ]
        words = [part.strip() if isinstance(part, str) else part for part in parts]
        if "none" in words or "auto" in words:
            if len(words) > 1:
                raise InvalidInputError(f"{shown(given)}: give numbers of experiments, or auto, or none")
            return () if words == ["none"] else ("auto",)
        return tuple(dict.fromkeys(map(_experiment_number, words)))

    def words(self, value: object) -> list[str]:
        """The numbers, or `auto`."""
        return [str(one) for one in _listed(value, int | str)]


@dataclass(frozen=True, slots=True)
class ValuesByName:
    """Values by name: the options of another setting."""

    schema: ClassVar[Mapping[str, object]] = {"type": "object"}

    def read(self, given: object) -> object:
        """Accept a mapping, or words such as `kernel=rbf`."""
        if isinstance(given, Mapping):
            return {str(name): _value(value) for name, value in given.items()}
        pairs = [_assignment(str(one)) for one in _listed(given, str)]
        return {name: parse_value(text) for name, text in pairs}

    def words(self, value: object) -> list[str]:
        """One `NAME=VALUE` for each option."""
        return [f"{name}={format_value(one)}" for name, one in value.items()] if isinstance(value, Mapping) else []


@dataclass(frozen=True, slots=True)
class Configs:
    """Configurations, each as values by parameter; the experiment checks them against its space."""

    schema: ClassVar[Mapping[str, object]] = {"type": "array", "items": {"type": "object"}}

    def read(self, given: object) -> object:
        """Accept a list of mappings or of texts such as `threads=4,block=64k`."""
        if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
            raise InvalidInputError(
                f"{shown(given)} is not a list of configurations; give a list, also for a single one"
            )
        return tuple(map(_config, given))

    def words(self, value: object) -> list[str]:
        """One text for each configuration."""
        configs = value if isinstance(value, Sequence) else ()
        return [",".join(f"{name}={format_value(one)}" for name, one in config.items()) for config in configs]


def _listed(given: object, alone: type | UnionType) -> Sequence[object]:
    """What was given as a list; a single value of type `alone` is a list of one."""
    if isinstance(given, alone):
        return [given]
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise InvalidInputError(f"{shown(given)} is not a list")
    return given


def _experiment_number(given: object) -> object:
    is_number = isinstance(given, str) and given.isascii() and given.isdigit()
    if isinstance(given, str) and not is_number:
        raise InvalidInputError(f"{shown(given)} is not the number of an experiment; write for example 3 or 3,7")
    return Whole(1).read(int(given) if isinstance(given, str) else given)


def _objective(given: object) -> Objective:
    if isinstance(given, Objective):
        return given
    if isinstance(given, Mapping) and set(given) == {"measure", "goal"}:
        return Objective(str(given["measure"]), given["goal"])
    return Objective.parse(str(Text().read(given)))


def _value(given: object) -> object:
    if not isinstance(given, bool | int | float | str) or (isinstance(given, float) and not math.isfinite(given)):
        raise InvalidInputError(f"{shown(given)} is not a value; give a number, a text, true or false")
    return check_text(given, "it") if isinstance(given, str) else given


def _config(given: object) -> Mapping[str, object]:
    if isinstance(given, Mapping):
        return {str(name): _value(value) for name, value in given.items()}
    if isinstance(given, str):
        return dict(_assignment(text) for text in given.split(","))
    raise InvalidInputError(f"{shown(given)} is not a configuration; give values by parameter")


def _assignment(text: str) -> tuple[str, str]:
    """The two parts of `NAME=VALUE`."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name:
        raise InvalidInputError(f"{shown(text)}: write NAME=VALUE, for example kernel=rbf")
    return name, value
