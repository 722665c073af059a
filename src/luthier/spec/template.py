"""Commands with placeholders: `fio --bs={block}`."""

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from luthier.errors import InvalidInputError
from luthier.space import Choice, Space
from luthier.texts import closest, is_argument, shown
from luthier.trial import Config, Json

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


_PLACEHOLDER = re.compile(r"\{\{(?P<literal>[A-Za-z_][\w.-]*)\}\}|\{(?P<name>[A-Za-z_][\w.-]*)\}")


@dataclass(frozen=True, slots=True)
class Template:
    """A command and environment variables in which `{name}` is replaced by the value of a parameter, and `{{name}}` by
    the text `{name}`. `where` is the name of the runner.

    Other braces are unchanged, so `awk '{print $1}'` works as it is. With `shell` the command is one text for `sh -c`,
    in which values are quoted as their place requires, also within quotes.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    shell: bool = False
    where: str = "local"

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise InvalidInputError(
                "no command to tune; put it after --, for example: luthier tune -p n=1,2 -- prog {n}"
            )
        if any("\0" in text for text in (*self.argv, *self.environment.values())):
            raise InvalidInputError("a command cannot contain a NUL character; remove it")
        if not all(is_argument(text) for text in (*self.argv, *self.environment.values())):
            raise InvalidInputError("a command cannot contain half of a character; remove it")
        for name in self.environment:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                raise InvalidInputError(
                    f"--env {shown(name)}: not a valid name of an environment variable; write NAME=TEXT"
                )

    def check(self, space: Space) -> None:
        """Raise unless every placeholder has a parameter and every parameter a placeholder."""
        used = frozenset[str]().union(*map(placeholders, (*self.argv, *self.environment.values())))
        for name in sorted(used - set(space.names)):
            near = closest(name, space.names)
            hint = (
                f"did you mean {{{near}}}?"
                if near
                else f"add -p {name}=..., or write {{{{{name}}}}} for the plain text"
            )
            raise InvalidInputError(f"placeholder {{{name}}} has no parameter; {hint}")
        for name in space.names:
            if name not in used:
                raise InvalidInputError(
                    f"parameter {name} is not used in the command; write {{{name}}} in place of its value"
                )

        if self.shell:
            self._check_shell(space)

    def render(self, space: Space, config: Config) -> tuple[tuple[str, ...], dict[str, str]]:
        """The arguments and the added environment variables for one configuration."""
        texts = {parameter.name: parameter.format(config[parameter.name]) for parameter in space.parameters}
        environment = {name: fill(text, texts) for name, text in self.environment.items()}
        if self.shell:
            return ("/bin/sh", "-c", self._shell_text(texts)), environment
        return tuple(fill(text, texts) for text in self.argv), environment

    def _shell_text(self, values: Mapping[str, str]) -> str:
        text, parts, end = " ".join(self.argv), [], 0
        for match, context in _placed(text):
            value = f"{{{match['literal']}}}" if match["literal"] else quoted(values[match["name"]], context)
            parts += [text[end : match.start()], value]
            end = match.end()
        return "".join([*parts, text[end:]])

    def _check_shell(self, space: Space) -> None:
        """Raise if a value would be read as shell code where no quoting can prevent it."""
        choices = {one.name: one for one in space.parameters if isinstance(one, Choice)}
        for match, context in _placed(" ".join(self.argv)):
            parameter = choices.get(match["name"] or "")
            if context != "unquotable" or parameter is None:
                continue
            for value in map(parameter.format, parameter.values):
                if not is_plain(value):
                    raise InvalidInputError(
                        f"--shell: {{{parameter.name}}} cannot be {shown(value)} inside `...`, ${{...}}, $((...)) or a "
                        f"here-document, where it cannot be quoted; pass it with -e VARIABLE={{{parameter.name}}}"
                    )

    def line(self, space: Space, config: Config) -> str:
        """The command line a person can paste into a shell."""
        argv, environment = self.render(space, config)
        settings = [f"{name}={shlex.quote(text)}" for name, text in environment.items()]
        if not self.shell:
            return " ".join([*settings, shlex.join(argv)])
        return " ".join([*settings, shlex.join(argv)]) if settings else argv[2]

    def script(self) -> str:
        """A shell script that runs the command; values are in environment variables with the names of parameters."""
        exports = [f"export {name}={_with_variables(text)}" for name, text in self.environment.items()]
        if not self.shell:
            return "\n".join(["#!/bin/sh", *exports, " ".join(["exec", *map(_with_variables, self.argv)]), ""])
        text, parts, end = " ".join(self.argv), [], 0
        for match, context in _placed(text):
            marks = {"plain": ('"', '"'), "single": ("'\"", "\"'")}.get(context, ("", ""))
            value = f"{{{match['literal']}}}" if match["literal"] else f"{marks[0]}${{{match['name']}}}{marks[1]}"
            parts += [text[end : match.start()], value]
            end = match.end()
        return "\n".join(["#!/bin/sh", *exports, "".join([*parts, text[end:]]), ""])

    def to_json(self) -> dict[str, Json]:
        """The template as plain values."""
        where: dict[str, Json] = {} if self.where == "local" else {"where": self.where}
        return {"argv": list(self.argv), "environment": dict(self.environment), "shell": self.shell, **where}


def _placed(text: str) -> list[tuple[re.Match[str], Context]]:
    """The placeholders of a shell's text, each with the context that it stands in."""
    found = list(_PLACEHOLDER.finditer(text))
    places = contexts(_PLACEHOLDER.sub(lambda match: "_" * len(match[0]), text), {match.start() for match in found})
    return [(match, places[match.start()]) for match in found]


def _with_variables(text: str) -> str:
    """A word of a shell in which placeholders are variables, and everything else is quoted."""
    parts, end = [], 0
    for match in _PLACEHOLDER.finditer(text):
        value = shlex.quote(f"{{{match['literal']}}}") if match["literal"] else f'"${{{match["name"]}}}"'
        parts += [shlex.quote(text[end : match.start()]) if match.start() > end else "", value]
        end = match.end()
    return "".join([*parts, shlex.quote(text[end:]) if end < len(text) or not parts else ""])


def placeholders(text: str) -> frozenset[str]:
    """The names of the parameters that a text has placeholders for."""
    return frozenset(match["name"] for match in _PLACEHOLDER.finditer(text) if match["name"])


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with the values in place of its placeholders."""

    def replacement(match: re.Match[str]) -> str:
        return f"{{{match['literal']}}}" if match["literal"] else values[match["name"]]

    return _PLACEHOLDER.sub(replacement, text)
