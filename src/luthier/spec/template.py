"""Commands with placeholders: `fio --bs={block}`."""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from luthier.errors import InvalidInputError
from luthier.space import Space
from luthier.texts import closest, is_argument, shown
from luthier.trial import Config

_PLACEHOLDER = re.compile(r"\{\{(?P<literal>[A-Za-z_][\w.-]*)\}\}|\{(?P<name>[A-Za-z_][\w.-]*)\}")


@dataclass(frozen=True, slots=True)
class Template:
    """A command and environment variables in which `{name}` is replaced by the value of a parameter, and `{{name}}` by
    the text `{name}`.

    Other braces are unchanged, so `awk '{print $1}'` works as it is. With `shell` the command is one text for `sh -c`,
    in which values are quoted.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    shell: bool = False

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

    def render(self, space: Space, config: Config) -> tuple[tuple[str, ...], dict[str, str]]:
        """The arguments and the added environment variables for one configuration."""
        texts = {parameter.name: parameter.format(config[parameter.name]) for parameter in space.parameters}
        environment = {name: fill(text, texts) for name, text in self.environment.items()}
        if self.shell:
            return ("/bin/sh", "-c", fill(" ".join(self.argv), texts, shlex.quote)), environment
        return tuple(fill(text, texts) for text in self.argv), environment

    def line(self, space: Space, config: Config) -> str:
        """The command line a person can paste into a shell."""
        argv, environment = self.render(space, config)
        settings = [f"{name}={shlex.quote(text)}" for name, text in environment.items()]
        if not self.shell:
            return " ".join([*settings, shlex.join(argv)])
        return " ".join([*settings, shlex.join(argv)]) if settings else argv[2]

    def to_json(self) -> dict[str, list[str] | dict[str, str] | bool]:
        """The template as plain values."""
        return {"argv": list(self.argv), "environment": dict(self.environment), "shell": self.shell}


def placeholders(text: str) -> frozenset[str]:
    """The names of the parameters that a text has placeholders for."""
    return frozenset(match["name"] for match in _PLACEHOLDER.finditer(text) if match["name"])


def fill(text: str, values: Mapping[str, str], quote: Callable[[str], str] = str) -> str:
    """The text with the quoted values in place of its placeholders."""

    def replacement(match: re.Match[str]) -> str:
        return f"{{{match['literal']}}}" if match["literal"] else quote(values[match["name"]])

    return _PLACEHOLDER.sub(replacement, text)
