"""Texts from users and programs: checked on input, with control characters made visible on output.

All functions take time in proportion to the length of the text, whatever it contains.
"""

import json
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from luthier.errors import InvalidInputError

LONGEST_NAME = 200
"""Most characters of the name of an experiment, a component or a parameter."""

LONGEST_RULE = 2000
"""Most characters of a rule, a constraint, a pattern or a path into a document."""

DEEPEST = 64
"""Most levels of nested lists and mappings in a document."""

NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
"""A number as programs print it. No two parts of it can match the same digits, so it does not backtrack far."""

_LONGEST_SHOWN = 80
_LONGEST_COMPARED = 100
_MOST_COMPARED = 500
_MOST_BITS_SHOWN = 256
_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?+|[\[{]|[\]}]', re.DOTALL)


def check_text(text: str, what: str) -> str:
    """Return the text; raise if it cannot be written as UTF-8 or given to a program."""
    if "\0" in text:
        raise InvalidInputError(f"{what}: contains a NUL character, which cannot be passed to a program; remove it")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        bad = f"U+{ord(text[error.start]):04X}"
        raise InvalidInputError(f"{what}: contains {bad}, half of a character; write the whole character") from None
    return text


def check_name(name: str, what: str) -> str:
    """Return the name; raise unless it is one line of printable characters that can be written as UTF-8."""
    check_text(name, what)
    if len(name) > LONGEST_NAME:
        raise InvalidInputError(f"{what}: has {len(name)} characters; at most {LONGEST_NAME} are allowed")
    if not name.isprintable():
        bad = next(sign for sign in name if not sign.isprintable())
        raise InvalidInputError(f"{what}: {shown(name)} contains {_escaped(bad)}, which is not printable; remove it")
    return name


def check_length(text: str, what: str, longest: int = LONGEST_RULE) -> str:
    """Return the text; raise if it is too long."""
    if len(text) > longest:
        raise InvalidInputError(f"{what}: {shown(text)} has {len(text)} characters; at most {longest} are allowed")
    return text


def is_argument(text: str) -> bool:
    """Whether the text can be an argument of a program; it may represent bytes that are not UTF-8."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def visible(text: str) -> str:
    r"""One line that is safe to print: line ends, escape sequences and so on are written as `\n`, `\x1b`, `\u202e`.

    Characters that change the direction of a line or cannot be encoded are escaped too.
    """
    return text if text.isprintable() else "".join(sign if sign.isprintable() else _escaped(sign) for sign in text)


def visible_lines(text: str) -> str:
    """Several lines that are safe to print; tabs are kept."""
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))


def visible_json(text: str) -> str:
    """JSON that is safe to print and has the same meaning: unprintable characters are escaped."""
    lines = text.split("\n")
    return "\n".join(line if line.isprintable() else "".join(map(_in_json, line)) for line in lines)


def shown(value: object) -> str:
    """The value as it is shown in messages: printable, short, and quoted if it is a text."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS_SHOWN:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, str) and len(value) > _LONGEST_SHOWN:
        return f"{value[:_LONGEST_SHOWN]!r}..."
    if isinstance(value, str | int | float | None):
        return repr(value)
    try:
        text = visible(repr(value))
    except (ValueError, RecursionError):  # it contains a number with thousands of digits, or itself
        return f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def closest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that is most similar to a mistyped one; takes time proportional to the square of the lengths."""
    if len(name) > _LONGEST_COMPARED:
        return None
    short = [one for one in known if len(one) <= _LONGEST_COMPARED][:_MOST_COMPARED]
    return next(iter(get_close_matches(name, short, n=1, cutoff=cutoff)), None)


def brackets(text: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """The position after each opening (1) and closing (-1) bracket of JSON, outside of its strings."""
    for match in _BRACKET.finditer(text, start):
        sign = match[0][0]
        if sign != '"':
            yield match.end(), 1 if sign in "[{" else -1


def check_nesting(text: str, what: str) -> str:
    """Return the text; raise if its brackets are nested too deeply to be read as JSON or TOML."""
    depth = 0
    for _, change in brackets(text):
        depth += change
        if depth > DEEPEST:
            raise InvalidInputError(f"{what}: is nested more than {DEEPEST} levels deep; make it flatter")
    return text


def _in_json(sign: str) -> str:
    return sign if sign.isprintable() else json.dumps(sign)[1:-1]


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")
