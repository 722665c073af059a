"""Changing single values in the text of a configuration file; the rest, including comments, is unchanged."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Literal, TypeAlias

from luthier.errors import InvalidInputError
from luthier.measures.json_output import Step, is_index, parse_path
from luthier.spec.yaml_lines import loader_of
from luthier.texts import DEEPEST, check_nesting, check_text, shown, visible
from luthier.trial import Value

Format: TypeAlias = Literal["ini", "json", "yaml", "toml", "xml"]
_Steps: TypeAlias = tuple[Step, ...]
_Edit: TypeAlias = Callable[[str, _Steps, Value], str]

# Possessive repetitions (`*+`) never backtrack, so the time grows with the length of a line, not with its square.
_INI_SECTION = re.compile(r"\s*+\[(?P<name>[^\]]*+)\]")
_TOML_TABLE = re.compile(r"\s*+\[(?P<name>[^\[\]]++)\]\s*+(?:#.*+)?$")
_SEPARATOR = re.compile(r"[ \t]*+[=:][ \t]*+")
_QUOTED = re.compile(r"\"(?:[^\"\\]++|\\.)*+\"|'[^']*+'")
_TEXT_OR_COMMENT = re.compile(r"\"(?:[^\"\\\n]++|\\.)*+\"?+|'[^'\n]*+'?+|#[^\n]*+")
_ENDS_KEY = re.compile(r"[=,\[\]{}\n]")
_COMMENT = re.compile(r"(?<!\s)\s++[#;]")
_TAG = re.compile(r"""<(?:[^"'>]++|"[^"]*+"|'[^']*+')*+>""")
_ATTRIBUTE = re.compile(r"""\s(?P<name>[^\s=<>"'/]++)\s*+=\s*+(?P<value>"[^"]*+"|'[^']*+')""")
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_UNFIT = re.compile("[\x00-\x08\n-\x1f\x7f]")
"""Control characters other than a tab."""
_UNPRINTABLE = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def edited(text: str, kind: Format, changes: Mapping[str, Value]) -> str:
    """The text with the values at some places changed; each place must exist already.

    A place is written as in the measure `json:`, such as `server.port`, `hosts[0].name` or `['odd.name'].key`. In an
    INI file it is `section.key`. In an XML file it is the names of the elements below the root, with an index such as
    `[0]` for elements with the same name, and optionally an `@attribute`.
    """
    for place, value in changes.items():
        steps = parse_path(place)
        check_text(str(value), place)
        try:
            text = _EDITS[kind](text, steps, value)
        except LookupError as error:
            raise InvalidInputError(f"{place}: {error.args[0]}; it must exist in the file already") from None
    return text


def _plain_text(value: Value) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _literal(value: Value) -> str:
    """The value as JSON, YAML and TOML all read it."""
    if isinstance(value, float) and "." not in (text := repr(value)):
        return text.replace("e", ".0e")  # YAML reads 1e-07 as a text
    text = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _json(text: str, steps: _Steps, value: Value) -> str:
    try:
        json.loads(check_nesting(text, "the file"))
    except ValueError as error:
        raise InvalidInputError(f"this is not JSON: {error}") from None
    # JSON is YAML, whose parser reports positions; but YAML does not accept a tab as a space, and JSON does.
    start, end = _yaml_range(text.replace("\t", " "), steps)
    return text[:start] + _literal(value) + text[end:]


def _yaml(text: str, steps: _Steps, value: Value) -> str:
    start, end = _yaml_range(text, steps)
    before = " " if start == end and not text[:start].endswith((" ", "\t")) else ""  # a key without a value
    after = "\n" if text[start:end].endswith("\n") else ""  # a block of lines
    return text[:start] + before + _literal(value) + after + text[end:]


def _yaml_range(text: str, steps: _Steps) -> tuple[int, int]:
    """The start and the end of the value at a place."""
    import yaml

    try:
        node: object = loader_of(text).get_single_node()
    except yaml.YAMLError as error:
        raise InvalidInputError(f"this is not YAML: {' '.join(str(error).split())}") from None
    for step in steps:
        node = _inner(node, step)
    if not isinstance(node, yaml.ScalarNode):
        raise LookupError("is not a single value")
    return node.start_mark.index, node.end_mark.index


def _inner(node: object, step: Step) -> object:
    import yaml

    if isinstance(node, yaml.MappingNode):
        for key, item in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == str(step):
                return item
    if isinstance(node, yaml.SequenceNode) and is_index(step) and 0 <= int(step) < len(node.value):
        return node.value[int(step)]
    raise LookupError(f"there is no {shown(step)}")


def _ini(text: str, steps: _Steps, value: Value) -> str:
    written = _plain_text(value)
    if _UNFIT.search(written):
        raise InvalidInputError(f"{shown(written)} does not fit on a line of an INI file")
    return _line_edit(text, steps, _INI_SECTION, written)


def _toml(text: str, steps: _Steps, value: Value) -> str:
    import tomllib

    try:
        before = tomllib.loads(_checked_toml(text))
        after = _line_edit(text, steps, _TOML_TABLE, _literal(value))
        expected = _with(before, steps, value)
        if tomllib.loads(after) == expected:
            return after
    except ValueError as error:  # also for a number with thousands of digits
        raise InvalidInputError(f"this is not TOML, or the value takes several lines: {error}") from None
    except RecursionError:
        raise InvalidInputError("the file is nested too deeply; make it flatter") from None
    raise LookupError("is not a value on a line of its own")


def _checked_toml(text: str) -> str:
    """The text; raise if it is nested so deeply that reading it takes time by the square of its length."""
    check_nesting(text, "the file")
    depth = 0
    for part in _TEXT_OR_COMMENT.sub("", text).split("."):
        depth = 0 if _ENDS_KEY.search(part) else depth + 1
        if depth > DEEPEST:
            raise InvalidInputError(f"the file: a key has more than {DEEPEST} parts; make it flatter")
    return text


def _with(tree: object, steps: _Steps, value: Value) -> object:
    """A copy of the tree with one value changed."""
    if not steps:
        return value
    if not isinstance(tree, dict) or steps[0] not in tree:
        raise LookupError(f"there is no {shown(steps[0])}")
    return {**tree, steps[0]: _with(tree[steps[0]], steps[1:], value)}


def _line_edit(text: str, steps: _Steps, heading: re.Pattern[str], written: str) -> str:
    """Replace the value after `key =` in the section that the other steps name; a comment after it is kept."""
    section, key = ".".join(map(str, steps[:-1])), str(steps[-1])
    lines, here = list(StringIO(text, newline="")), ""
    found: tuple[int, int] | None = None
    for number, line in enumerate(lines):
        if (match := heading.match(line)) is not None:
            here = match["name"].strip()
        elif here == section and not line.lstrip().startswith(("#", ";")):
            start = _value_start(line, key)
            found = (
                found if start is None else (number, start)
            )  # the last one counts, as in programs that read such files
    if found is None:
        raise LookupError(f"there is no {shown(key)}" + (f" in [{visible(section)}]" if section else ""))
    number, start = found
    line = lines[number]
    lines[number] = f"{line[:start]}{written}{line[_value_end(line, start) :]}"
    return "".join(lines)


def _value_start(line: str, key: str) -> int | None:
    """Where the value begins on a line `key = value`; None if the line sets something else."""
    at = len(line) - len(line.lstrip())
    for name in (key, f'"{key}"'):
        if line.startswith(name, at):
            match = _SEPARATOR.match(line, at + len(name))
            if match is not None:
                return match.end()
    return None


def _value_end(line: str, start: int) -> int:
    """Where the value ends: before a comment, or at the end of the line."""
    body = line.rstrip("\r\n")
    quoted = _QUOTED.match(body, start)
    if quoted is not None and (not body[quoted.end() :].strip() or _COMMENT.match(body, quoted.end())):
        return quoted.end()
    comment = _COMMENT.search(body, start)
    return len(body) if comment is None else comment.start()


def _xml(text: str, steps: _Steps, value: Value) -> str:
    names = [str(step) for step in steps if not isinstance(step, int)]
    attribute = names[-1].removeprefix("@") if names and names[-1].startswith("@") else None
    start, inside, end = _xml_element(text, steps if attribute is None else steps[:-1])
    written = _xml_text(_plain_text(value))
    if attribute is None:
        if "<" in text[inside:end] or text[start:inside].endswith("/>"):
            raise LookupError("is not a single value")
        return text[:inside] + written.replace("&#10;", "\n").replace("&#9;", "\t") + text[end:]
    for match in _ATTRIBUTE.finditer(text, start, inside):
        if match["name"] == attribute:
            return f'{text[: match.start("value")]}"{written}"{text[match.end() :]}'
    raise LookupError(f"there is no attribute {shown(attribute)}")


def _xml_text(text: str) -> str:
    """The text as it is written between tags or quotes; line ends and tabs are escaped so that readers keep them."""
    from xml.sax.saxutils import escape

    if bad := _NOT_XML.search(text):
        raise InvalidInputError(f"{shown(text)} contains {shown(bad[0])}, which XML does not allow; remove it")
    return escape(text, {'"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"})


def _xml_element(text: str, steps: _Steps) -> tuple[int, int, int]:
    """The start and the end of the first tag of an element, and the start of its last tag."""
    from xml.parsers import expat

    wanted = _xml_path(steps)
    data = text.encode()
    path: list[tuple[str, int]] = []
    counts: list[dict[str, int]] = [{}]
    place: list[int] = []
    parser = expat.ParserCreate("utf-8")

    def opened(name: str, _: object) -> None:
        if len(path) >= DEEPEST:
            raise InvalidInputError(f"the file is nested more than {DEEPEST} levels deep; make it flatter")
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

    def declared(*_: object) -> None:
        raise InvalidInputError("the file declares entities, which are not supported; write the text itself")

    parser.StartElementHandler, parser.EndElementHandler, parser.EntityDeclHandler = opened, closed, declared
    try:
        parser.Parse(data, True)  # noqa: FBT003 - the parser takes it by position only
    except expat.ExpatError as error:
        raise InvalidInputError(f"this is not XML: {error}") from None
    if len(place) < 2:
        raise LookupError(f"there is no element {shown('.'.join(map(str, steps)))}")
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
    """The end of the tag that begins at `start`; there may be a > within quotes."""
    match = _TAG.match(text, start)
    if match is None:
        raise LookupError("has no end")
    return match.end()


_EDITS: Mapping[Format, _Edit] = {"ini": _ini, "json": _json, "yaml": _yaml, "toml": _toml, "xml": _xml}
FORMATS: Sequence[Format] = tuple(_EDITS)
