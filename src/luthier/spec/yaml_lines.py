"""YAML files as plain values that remember where they were written."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from luthier.errors import InvalidInputError, NotFoundError

if TYPE_CHECKING:
    import yaml

Step: TypeAlias = str | int
Place: TypeAlias = tuple[Step, ...]
"""The keys and indexes that lead to a value."""

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"

_MOST_VALUES = 100_000
_MOST_BITS = 256


@dataclass(frozen=True, slots=True)
class Document:
    """The values of a file, and for the place of each of them where it was written, such as `dd.yaml:12`.

    A key without a value counts as left out.
    """

    source: str
    values: dict[str, Plain]
    origins: Mapping[Place, str]

    def error(self, place: Place, problem: str) -> InvalidInputError:
        """The error for a value: where it was written, its path, what is wrong."""
        known = self._written(place)
        where = self.origins.get(known) or self.origins.get(known[:-1], self.source)
        path = ".".join(map(str, known))
        return InvalidInputError(f"{where}: {path}: {problem}" if path else f"{where}: {problem}")

    def _written(self, place: Place) -> Place:
        """The place without the steps that do not stand in the file; a last one may be missing there."""
        known: Place = ()
        for step in place[:-1]:
            known = (*known, step) if (*known, step) in self.origins else known
        missing = place[-1:] if place and isinstance(place[-1], str) else ()
        return (*known, *place[-1:]) if (*known, *place[-1:]) in self.origins else (*known, *missing)

    def with_value(self, place: Place, value: Plain, origin: str) -> "Document":
        """A copy in which one value is another; mappings on the way there are made if they are missing."""
        values = dict(self.values)
        here = values
        for number, step in enumerate(place[:-1], start=1):
            inner = here.get(str(step))
            if inner is not None and not isinstance(inner, dict):
                raise InvalidInputError(f"{origin}: {'.'.join(map(str, place[:number]))} holds no further settings")
            here[str(step)] = here = dict(inner or {})
        here[str(place[-1])] = value
        origins = {old: text for old, text in self.origins.items() if old[: len(place)] != place}
        return Document(self.source, values, {**origins, place: origin})


def read_document(path: Path) -> Document:
    """Read a YAML file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFoundError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInputError(f"{path}: cannot be read: {reason}") from error
    return parse_document(text, path.name)


def parse_document(text: str, source: str) -> Document:
    """Read YAML that holds settings by name; only plain values come out, and no key counts twice."""
    import yaml

    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        origins = {place: f"{source}:{line}" for place, line in _lines(root, source)}
        values: object = None if root is None else loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise InvalidInputError(f"{source}:{line}: this is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidInputError(f"{source}: this is not YAML: {str(error).splitlines()[0]}") from None
    except (KeyError, AttributeError):  # so PyYAML says that a tag such as !!bool does not fit
        raise InvalidInputError(f"{source}: this is not YAML: a value is not what its tag says") from None
    except RecursionError:
        raise InvalidInputError(f"{source}: is nested too deeply; make it flatter") from None
    document = Document(source, {}, origins)
    plain = _plain(values, (), document)
    if not isinstance(plain, dict) or not plain:
        raise InvalidInputError(f"{source}: holds no settings; expected lines such as 'components:'")
    return Document(source, plain, origins)


def parse_plain(text: str) -> Plain:
    """The value that a short text stands for in YAML: `3`, `true`, `[1, 2]`, `some words`."""
    values = parse_document(f"value: {text}", repr(text)).values
    if set(values) != {"value"}:
        raise InvalidInputError(f"{text!r} is more than one value; put it in quotes")
    return values["value"]


def _lines(root: object, source: str) -> Iterator[tuple[Place, int]]:
    """The place and line of every value, aliases followed; refuses repeated keys and what never ends."""
    import yaml

    waiting: list[tuple[Place, int, object, tuple[object, ...]]] = [((), 1, root, ())]
    seen = 0
    while waiting:
        place, line, here, above = waiting.pop()
        seen += 1
        if here in above or seen > _MOST_VALUES:
            raise InvalidInputError(f"{source}:{line}: an alias makes this file endless; write out what it stands for")
        yield place, line
        inner = (*above, here)
        if isinstance(here, yaml.SequenceNode):
            for number, item in enumerate(here.value):
                waiting.append(((*place, number), item.start_mark.line + 1, item, inner))
        elif isinstance(here, yaml.MappingNode):
            for name, at, item in _keys(here, source):
                waiting.append(((*place, name), at, item, inner))


def _keys(mapping: "yaml.MappingNode", source: str) -> Iterator[tuple[str, int, object]]:
    """The name, line and value of every key; the merge key `<<` is one, so that what it brings is counted too."""
    lines: dict[str, int] = {}
    for key, item in mapping.value:
        line = key.start_mark.line + 1
        name = key.value
        if not isinstance(name, str):
            raise InvalidInputError(f"{source}:{line}: a key is not a plain name")
        if name in lines:
            raise InvalidInputError(f"{source}:{line}: {name} is on line {lines[name]} already; remove one of them")
        lines[name] = line
        yield name, line, item


def _plain(value: object, place: Place, document: Document) -> Plain:
    """The value with nothing in it that JSON does not know, and without keys that have no value."""
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise document.error(place, f"the name {key!r} is not a text; put it in quotes")
        return {key: _plain(item, (*place, key), document) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_plain(item, (*place, number), document) for number, item in enumerate(value)]
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise document.error(place, f"is a number of {value.bit_length()} bits; {_MOST_BITS} are the most")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise document.error(place, f"{value} is a {type(value).__name__}; put it in quotes")
