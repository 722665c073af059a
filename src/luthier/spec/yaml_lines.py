"""YAML files as JSON values with the line of each value."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from luthier.errors import InvalidInputError, NotFoundError
from luthier.texts import DEEPEST, check_text, shown, visible
from luthier.trial import Json

if TYPE_CHECKING:
    import yaml

Step: TypeAlias = str | int
Place: TypeAlias = tuple[Step, ...]
"""The keys and indexes that lead to a value."""


_MOST_VALUES = 100_000
_MOST_BITS = 256
_LONGEST_NUMBER = 400


@dataclass(frozen=True, slots=True)
class Document:
    """The values of a file, and the origin of each of them, such as `dd.yaml:12`.

    A key without a value is treated as if it were missing.
    """

    source: str
    values: dict[str, Json]
    origins: Mapping[Place, str]

    def error(self, place: Place, problem: str) -> InvalidInputError:
        """The error for a value: its file and line, its path and the problem."""
        known = self._written(place)
        where = self.origins.get(known) or self.origins.get(known[:-1], self.source)
        path = ".".join(map(str, known))
        return InvalidInputError(f"{where}: {path}: {problem}" if path else f"{where}: {problem}")

    def _written(self, place: Place) -> Place:
        """The place without the steps that are not in the file, except the last one."""
        known: Place = ()
        for step in place[:-1]:
            known = (*known, step) if (*known, step) in self.origins else known
        missing = place[-1:] if place and isinstance(place[-1], str) else ()
        return (*known, *place[-1:]) if (*known, *place[-1:]) in self.origins else (*known, *missing)

    def with_value(self, place: Place, value: Json, origin: str) -> "Document":
        """A copy with one value changed; missing mappings on its path are created."""
        values = dict(self.values)
        here = values
        for number, step in enumerate(place[:-1], start=1):
            inner = here.get(str(step))
            if inner is not None and not isinstance(inner, dict):
                raise InvalidInputError(
                    f"{origin}: {'.'.join(map(str, place[:number]))} is a single value and has no settings"
                )
            here[str(step)] = here = dict(inner or {})
        here[str(place[-1])] = value
        origins = {old: text for old, text in self.origins.items() if old[: len(place)] != place}
        return Document(self.source, values, {**origins, place: origin})

    def moved(self, old: Place, new: Place) -> "Document":
        """A copy with a value at another place; the origins of what it contains move with it."""
        value: Json = self.values
        for step in old:
            value = value[str(step)] if isinstance(value, dict) else None
        origins = {(*new, *place[len(old) :]): text for place, text in self.origins.items() if place[: len(old)] == old}
        moved = self.without(old).with_value(new, value, origins.get(new, self.source))
        return Document(moved.source, moved.values, {**moved.origins, **origins})

    def without(self, place: Place) -> "Document":
        """A copy without one value; its origin is kept for errors about the setting that replaces it."""
        values = dict(self.values)
        here = values
        for step in place[:-1]:
            inner = here[str(step)]
            here[str(step)] = here = dict(inner) if isinstance(inner, dict) else {}
        here.pop(str(place[-1]), None)
        return Document(self.source, values, self.origins)


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
    """Read YAML with settings by name; repeated keys and values that JSON cannot represent are errors."""
    import yaml

    try:
        loader = loader_of(text)
        root = loader.get_single_node()
        origins = {place: f"{source}:{line}" for place, line in _lines(root, source)}
        values: object = None if root is None else loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise InvalidInputError(f"{source}:{line}: this is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidInputError(f"{source}: this is not YAML: {str(error).splitlines()[0]}") from None
    except (KeyError, AttributeError):  # raised by PyYAML if a tag such as !!bool does not match the value
        raise InvalidInputError(f"{source}: this is not YAML: a value does not match its tag") from None
    except OverflowError:
        raise InvalidInputError(f"{source}: contains a number that is too large; put it in quotes") from None
    document = Document(source, {}, origins)
    plain = _plain(values, (), document)
    if not isinstance(plain, dict) or not plain:
        raise InvalidInputError(f"{source}: contains no settings; expected lines such as 'components:'")
    return Document(source, plain, origins)


def loader_of(text: str) -> "yaml.SafeLoader":
    """PyYAML's safe loader, which rejects deep nesting and long numbers, because they take very long."""
    import yaml

    loader = yaml.SafeLoader(text)
    compose_node, construct_object = loader.compose_node, loader.construct_object
    depth = 0

    def composed(parent: yaml.Node | None, index: int) -> yaml.Node | None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            problem = f"it is nested more than {DEEPEST} levels deep; make it flatter"
            mark = loader.peek_event().start_mark  # type: ignore[no-untyped-call]  # types-PyYAML leaves it out
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
        node = compose_node(parent, index)
        depth -= 1
        return node

    def constructed(node: yaml.Node, deep: bool = False) -> object:
        # 1:1:1 is a number in base 60, which takes time by the square of its length.
        if node.tag.endswith((":int", ":float")) and len(node.value) > _LONGEST_NUMBER:
            problem = f"a number has {len(node.value)} characters; put it in quotes"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return construct_object(node, deep)

    loader.compose_node, loader.construct_object = composed, constructed  # type: ignore[method-assign]  # for this text
    return loader


def parse_plain(text: str) -> Json:
    """The value of a short text in YAML: `3`, `true`, `[1, 2]`, `some words`."""
    values = parse_document(f"value: {text}", repr(text)).values
    if set(values) != {"value"}:
        raise InvalidInputError(f"{text!r} is more than one value; put it in quotes")
    return values["value"]


def _lines(root: object, source: str) -> Iterator[tuple[Place, int]]:
    """The place and line of every value, with aliases expanded; raise for repeated keys and endless aliases."""
    import yaml

    waiting: list[tuple[Place, int, object, tuple[object, ...]]] = [((), 1, root, ())]
    seen = 0
    while waiting:
        place, line, here, above = waiting.pop()
        seen += 1
        if any(here is one for one in above) or seen > _MOST_VALUES or len(above) > DEEPEST:
            raise InvalidInputError(
                f"{source}:{line}: an alias makes this file endless or too large; write its value instead"
            )
        yield place, line
        inner = (*above, here)
        if isinstance(here, yaml.SequenceNode):
            for number, item in enumerate(here.value):
                waiting.append(((*place, number), item.start_mark.line + 1, item, inner))
        elif isinstance(here, yaml.MappingNode):
            for name, at, item in _keys(here, source):
                waiting.append(((*place, name), at, item, inner))


def _keys(mapping: "yaml.MappingNode", source: str) -> Iterator[tuple[str, int, object]]:
    """The name, line and value of every key, including the merge key `<<`, so that merged values are counted."""
    lines: dict[str, int] = {}
    for key, item in mapping.value:
        line = key.start_mark.line + 1
        name = key.value
        if not isinstance(name, str):
            raise InvalidInputError(f"{source}:{line}: a key is not a single name")
        if name in lines:
            raise InvalidInputError(
                f"{source}:{line}: {visible(name)} is already on line {lines[name]}; remove one of them"
            )
        lines[name] = line
        yield name, line, item


def _plain(value: object, place: Place, document: Document) -> Json:
    """The value without keys that have no value; raise if JSON cannot represent it."""
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise document.error(place, f"the name {shown(key)} is not a text; put it in quotes")
            _checked(key, place, document)
        return {key: _plain(item, (*place, key), document) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_plain(item, (*place, number), document) for number, item in enumerate(value)]
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise document.error(place, f"is a number of {value.bit_length()} bits; at most {_MOST_BITS} are allowed")
    if isinstance(value, str):
        return _checked(value, place, document)
    if value is None or isinstance(value, bool | int | float):
        return value
    raise document.error(place, f"{shown(str(value))[1:-1]} is a {type(value).__name__}; put it in quotes")


def _checked(text: str, place: Place, document: Document) -> str:
    try:
        return check_text(text, "it")
    except InvalidInputError as error:
        raise document.error(place, str(error)) from None
