"""Values in the text of a POSIX shell, quoted as the place of each of them requires."""

import re
import shlex
from collections.abc import Collection
from typing import Literal, TypeAlias

Context: TypeAlias = Literal["plain", "single", "double", "unquotable"]
"""Outside of quotes, within single or double quotes, or where it is not certain that quotes protect a value."""

_OPENINGS = ("$((", "$(", "${", "`")
_UNQUOTABLE = {"$((", "${", "$'", "`", "<<"}
_CLOSINGS = {"$((": "))", "$(": ")", "(": ")", "${": "}"}


def contexts(text: str, places: Collection[int]) -> dict[int, Context]:
    """The context of each of these positions of the text."""
    found: dict[int, Context] = {}
    opened: list[str] = []
    if "$(" in text and re.search(r"\bcase\b", text):  # a pattern of `case` closes a parenthesis that nothing opened
        return dict.fromkeys(places, "unquotable")
    position = 0
    while position < len(text):
        if position in places:
            found[position] = _context(opened)
        position += _advance(text, position, opened)
    return {place: found.get(place, "unquotable") for place in places}  # in comments and after a backslash


def quoted(value: str, context: Context) -> str:
    """The text that means exactly this value; quotes around it end before it and begin again after it."""
    mark = {"single": "'", "double": '"'}.get(context, "")
    return f"{mark}{shlex.quote(value)}{mark}"


def is_plain(value: str) -> bool:
    """Whether a value needs no quotes anywhere."""
    return shlex.quote(value) == value


def _context(opened: list[str]) -> Context:
    if _UNQUOTABLE.intersection(opened):
        return "unquotable"
    inner = opened[-1] if opened else ""
    return "single" if inner == "'" else "double" if inner == '"' else "plain"


def _advance(text: str, position: int, opened: list[str]) -> int:
    """Read the next token; return its length."""
    inner, sign = opened[-1] if opened else "", text[position]
    if inner in ("'", '"', "`") and sign == inner:
        opened.pop()
        return 1
    if inner == "'":
        return 1
    if sign == "\\":
        return 2
    for opening in _OPENINGS:
        if text.startswith(opening, position):
            opened.append(opening)
            return len(opening)
    return 1 if inner == '"' else _advance_unquoted(text, position, opened)


def _advance_unquoted(text: str, position: int, opened: list[str]) -> int:
    inner = opened[-1] if opened else ""
    if inner in _CLOSINGS and text.startswith(_CLOSINGS[inner], position):
        opened.pop()
        return len(_CLOSINGS[inner])
    if text[position] == "#" and (position == 0 or text[position - 1] in " \t\n;|&()"):
        return max(text.find("\n", position) - position, 0) or len(text)
    for opening in ("$'", "<<", "'", '"', "("):
        if text.startswith(opening, position):
            opened.append(opening)
            return len(opening)
    return 1
