"""Changing single values in the text of a configuration file; everything else, comments too, stays as it was."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from luthier.errors import InvalidInputError
from luthier.measures.json_output import Step, parse_path
from luthier.trial import Value

Format: TypeAlias = Literal["ini", "json", "yaml", "toml", "xml"]
_Steps: TypeAlias = tuple[Step, ...]
_Edit: TypeAlias = Callable[[str, _Steps, Value], str]

_INI_SECTION = re.compile(r"\s*\[(?P<name>[^\]]*)\]")
_TOML_TABLE = re.compile(r"\s*\[(?P<name>[^\[\]]+)\]\s*(?:#.*)?$")
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'[^']*'"
_COMMENT = re.compile(r"\s*[#;]")
_UNPRINTABLE = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def edited(text: str, kind: Format, changes: Mapping[str, Value]) -> str:
    """The text with the values at some places changed; each place must be there already.

    A place is written as in the measure `json:`, such as `server.port`, `hosts[0].name` or `['odd.name'].key`. In an
    INI file it is `section.key`, in an XML file it is the names of elements below the root, of which `[0]` tells
    equal ones apart, and perhaps an `@attribute`.
    """
    for place, value in changes.items():
        steps = parse_path(place)
        try:
            text = _EDITS[kind](text, steps, value)
        except LookupError as error:
            raise InvalidInputError(f"{place}: {error.args[0]}; it must stand in the file already") from None
    return text


def _plain_text(value: Value) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _literal(value: Value) -> str:
    """The value as JSON, YAML and TOML all read it."""
    if isinstance(value, float) and "." not in (text := repr(value)):
        return text.replace("e", ".0e")  # YAML takes 1e-07 for a text
    text = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _json(text: str, steps: _Steps, value: Value) -> str:
    try:
        json.loads(text)
    except ValueError as error:
        raise InvalidInputError(f"this is not JSON: {error}") from None
    # JSON is YAML, whose parser tells where each value stands; but there a tab is no blank, and in JSON it is.
    start, end = _yaml_range(text.replace("\t", " "), steps)
    return text[:start] + _literal(value) + text[end:]


def _yaml(text: str, steps: _Steps, value: Value) -> str:
    start, end = _yaml_range(text, steps)
    before = " " if start == end and not text[:start].endswith((" ", "\t")) else ""  # a key without a value
    after = "\n" if text[start:end].endswith("\n") else ""  # a block of lines
    return text[:start] + before + _literal(value) + after + text[end:]


def _yaml_range(text: str, steps: _Steps) -> tuple[int, int]:
    """From where to where the value at a place is written."""
    import yaml

    try:
        node: object = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise InvalidInputError(f"this is not YAML: {' '.join(str(error).split())}") from None
    for step in steps:
        node = _inner(node, step)
    if not isinstance(node, yaml.ScalarNode):
        raise LookupError("holds no single value")
    return node.start_mark.index, node.end_mark.index


def _inner(node: object, step: Step) -> object:
    import yaml

    if isinstance(node, yaml.MappingNode):
        for key, item in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == str(step):
                return item
    if isinstance(node, yaml.SequenceNode) and str(step).isdigit() and int(step) < len(node.value):
        return node.value[int(step)]
    raise LookupError(f"there is no {step!r}")


def _ini(text: str, steps: _Steps, value: Value) -> str:
    written = _plain_text(value)
    if "\n" in written or "\r" in written:
        raise InvalidInputError(f"{written!r} does not fit on a line of an INI file")
    return _line_edit(text, steps, _INI_SECTION, written)


def _toml(text: str, steps: _Steps, value: Value) -> str:
    import tomllib

    try:
        before = tomllib.loads(text)
        after = _line_edit(text, steps, _TOML_TABLE, _literal(value))
        expected = _with(before, steps, value)
        if tomllib.loads(after) == expected:
            return after
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"this is not TOML, or the value takes several lines: {error}") from None
    raise LookupError("is not a value on a line of its own")


def _with(tree: object, steps: _Steps, value: Value) -> object:
    """A copy of the tree with one value changed."""
    if not steps:
        return value
    if not isinstance(tree, dict) or steps[0] not in tree:
        raise LookupError(f"there is no {steps[0]!r}")
    return {**tree, steps[0]: _with(tree[steps[0]], steps[1:], value)}


def _line_edit(text: str, steps: _Steps, heading: re.Pattern[str], written: str) -> str:
    """Replace what follows `key =` in the section that the other steps name; a comment behind it stays."""
    section, key = ".".join(map(str, steps[:-1])), str(steps[-1])
    name = rf"(?:{re.escape(key)}|\"{re.escape(key)}\")"
    setting = re.compile(rf"(\s*{name}\s*[=:]\s*)({_QUOTED}|.*?)(\s+[#;].*)?(\r?\n?)$", re.DOTALL)
    lines, here, found = text.splitlines(keepends=True), "", None
    for number, line in enumerate(lines):
        if (match := heading.match(line)) is not None:
            here = match["name"].strip()
        elif here == section and not _COMMENT.match(line) and (match := setting.match(line)) is not None:
            found = (number, match)  # the last one counts, as it does for those who read such files
    if found is None:
        raise LookupError(f"there is no {key!r}" + (f" in [{section}]" if section else ""))
    number, match = found
    lines[number] = f"{match[1]}{written}{match[3] or ''}{match[4]}"
    return "".join(lines)


def _xml(text: str, steps: _Steps, value: Value) -> str:
    from xml.sax.saxutils import escape

    names = [str(step) for step in steps if not isinstance(step, int)]
    attribute = names[-1].removeprefix("@") if names and names[-1].startswith("@") else None
    start, inside, end = _xml_element(text, steps if attribute is None else steps[:-1])
    written = escape(_plain_text(value), {'"': "&quot;"})
    if attribute is None:
        if "<" in text[inside:end] or text[start:inside].endswith("/>"):
            raise LookupError("holds no single value")
        return text[:inside] + written + text[end:]
    pattern = re.compile(rf"""(\s{re.escape(attribute)}\s*=\s*)(?:"[^"]*"|'[^']*')""")
    match = pattern.search(text, start, inside)
    if match is None:
        raise LookupError(f"there is no attribute {attribute!r}")
    return f'{text[: match.start()]}{match[1]}"{written}"{text[match.end() :]}'


def _xml_element(text: str, steps: _Steps) -> tuple[int, int, int]:
    """Where the element's first tag begins and ends, and where its last tag begins."""
    from xml.parsers import expat

    wanted = _xml_path(steps)
    data = text.encode()
    path: list[tuple[str, int]] = []
    counts: list[dict[str, int]] = [{}]
    place: list[int] = []
    parser = expat.ParserCreate("utf-8")

    def opened(name: str, _: object) -> None:
        number = counts[-1].get(name, 0)
        counts[-1][name] = number + 1
        path.append((name, number))
        counts.append({})
        if path[1:] == wanted and not place:
            place.append(parser.CurrentByteIndex)

    def closed(_: str) -> None:
        if path[1:] == wanted and len(place) == 1:
            place.append(parser.CurrentByteIndex)
        path.pop()
        counts.pop()

    parser.StartElementHandler, parser.EndElementHandler = opened, closed
    try:
        parser.Parse(data, True)  # noqa: FBT003 - the parser takes it by position only
    except expat.ExpatError as error:
        raise InvalidInputError(f"this is not XML: {error}") from None
    if len(place) < 2:
        raise LookupError(f"there is no element {'.'.join(map(str, steps))!r}")
    start, end = (len(data[:index].decode()) for index in place)
    inside = _tag_end(text, start)
    return start, inside, max(inside, end)


def _xml_path(steps: _Steps) -> list[tuple[str, int]]:
    wanted: list[tuple[str, int]] = []
    for step in steps:
        if isinstance(step, int) and wanted:
            wanted[-1] = (wanted[-1][0], step)
        else:
            wanted.append((str(step), 0))
    return wanted


def _tag_end(text: str, start: int) -> int:
    """Where the tag that begins at `start` ends; a > may stand within quotes."""
    match = re.compile(r"""<(?:[^"'>]|"[^"]*"|'[^']*')*>""").match(text, start)
    if match is None:
        raise LookupError("has no end")
    return match.end()


_EDITS: Mapping[Format, _Edit] = {"ini": _ini, "json": _json, "yaml": _yaml, "toml": _toml, "xml": _xml}
FORMATS: Sequence[Format] = tuple(_EDITS)
