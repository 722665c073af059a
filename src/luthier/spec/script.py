"""Job scripts: the user's application with a component put in front of it, for one configuration."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, TypeAlias

from luthier.errors import InvalidInputError
from luthier.runners.registry import runner_kind
from luthier.runners.supervisor import MARK_VARIABLE
from luthier.space import Space
from luthier.spec.template import fill
from luthier.trial import Config, Json, Value

if TYPE_CHECKING:
    from luthier.runners.psij import Allocation
    from luthier.runners.slurm import Batch
    from luthier.spec.component import Component, ComponentParameter, ConfigFile

Where: TypeAlias = str
"""The name of a runner, with a colon and its argument where it has one: `local`, `slurm`, `psij:pbs`."""

_SHELLS = ("bash", "dash", "ksh", "sh", "zsh")
_MARK = (
    '{ printf . 1<>"${PIPE-}"; } 2>/dev/null || :; luthier_turns=0; while [ -p "${PIPE-}" ]; do '
    "luthier_turns=$((luthier_turns + 1)); [ $luthier_turns -lt 1000000 ] || "
    '{ echo "luthier: the supervisor of this run does not answer" >&2; exit 1; }; done; unset PIPE luthier_turns'
).replace("PIPE", MARK_VARIABLE)
"""Tells the supervisor that the application begins, and waits until it has looked at its clock.

It waits a few seconds at most: the supervisor may be dead. Opening a pipe for reading and writing never blocks.
"""
_BEFORE_HEADER = (
    'luthier_flags=$-; if [ -n "${BASH_VERSION-}" ]; then luthier_depth=${#BASH_SOURCE[@]}; '
    "trap 'luthier_status=$?; [ ${#BASH_SOURCE[@]} -gt $luthier_depth ] || exit $luthier_status' ERR; else set -e; fi"
)
"""Ends the script when a command of the header fails, unless the author handles that (if, &&, ||).

In bash a trap does it, which has no effect inside functions and sourced files; other shells have `set -e`.
"""
_AFTER_HEADER = (
    '[ -z "${BASH_VERSION-}" ] || trap - ERR; case $luthier_flags in (*e*) ;; (*) set +e ;; esac; '
    "unset luthier_flags luthier_depth luthier_status"
)
_DECIDES_ITSELF = re.compile(r"\bset\s+(-\w+\s+)*[-+](\w*e|o\s+errexit)")
_LARGEST_ARGUMENT = 128 * 1024  # MAX_ARG_STRLEN of Linux

OWN_LIBRARY = re.compile(r"(?<![\w$/.:])luthier:([a-z][a-z0-9-]*)")
"""A library of luthier in `ld_preload`, such as `luthier:io`."""


@dataclass(frozen=True, slots=True)
class JobScript:
    """A component and the application it is tuned for.

    `application` is the text of the user's shell script, "" where the component's command is all there is to run;
    `name` is what the script is called, `allocation` what a job of PSI/J's asks for, `component_name` what the
    component was called when the experiment began. The script that comes out begins with the application's first line
    and all of its #SBATCH lines. The component's header and files follow, then its command, `LD_PRELOAD` and the
    application; without an application, `LD_PRELOAD` is set for the command. A header or command that fails ends the
    script. The clock starts before the command; or after it, where there is an application and `command_is_timed` is
    false.
    """

    component: "Component"
    application: str = ""
    name: str = "application"
    where: Where = "local"
    allocation: "Allocation | None" = None
    component_name: str = ""
    command_is_timed: bool = True

    def check(self, space: Space) -> None:
        """Raise unless every parameter of the space reaches the component, and everything can be run."""
        for name in space.names:
            if name not in self.component.parameters:
                raise InvalidInputError(f"the component has no parameter {name!r}")
        for name, parameter in self.component.parameters.items():
            needed = not parameter.optional or name in self.component.in_files
            if name not in space.names and parameter.default is None and needed:
                raise InvalidInputError(f"parameter {name} has no default and is not tuned; give it a default")
        sent = self.component.submitted
        if (sent or self.component.options) and not runner_kind(self.where).program:
            what = f"parameter {sent[0]}" if sent else f"its plugin {' '.join(self.component.options)}"
            raise InvalidInputError(f"{what} is an option of sbatch, and this would run without it; use runner: slurm")
        if not self.application.strip() and _is_comment(self.component.command):
            raise InvalidInputError("there is nothing to run; name an application, or give the component a command")
        interpreter(self.application, self.name)
        self.batch(space, space.default)

    @property
    def is_timed_apart(self) -> bool:
        """Whether the script does something that is not to be timed before the application begins."""
        return bool(self.component.files) or not _is_comment(self.component.header) or self.is_timed_without_command

    @property
    def ends_with_header(self) -> bool:
        """Whether luthier ends the script when its header fails."""
        return not _is_comment(self.component.header) and not _DECIDES_ITSELF.search(self.component.header)

    @property
    def is_timed_without_command(self) -> bool:
        """Whether the clock starts after the component's command."""
        if self.command_is_timed or _is_comment(self.component.command):
            return False
        return bool(_split(self.application)[1])

    def batch(self, space: Space, config: Config) -> "Batch":
        """The script for one configuration, with the variables and the sbatch options that go with it."""
        from luthier.runners.slurm import Batch

        values = self._values(space, config)
        environment, options = self._environment(values), list(self.component.options)
        for name, parameter in self.component.parameters.items():
            if parameter.cli_var and name in values:
                options += _words(parameter, values[name], bare=f"--{name}=")
        script = self._script(values, self._native(space, config))
        return Batch(script, environment, tuple(options), self.is_timed_apart)

    def render(self, space: Space, config: Config) -> tuple[tuple[str, ...], dict[str, str]]:
        """The arguments and the added environment variables to run the script on this machine."""
        batch = self.batch(space, config)
        if len(batch.script.encode(errors="surrogateescape")) >= _LARGEST_ARGUMENT:
            raise InvalidInputError(f"{self.name}: is longer than 128 KiB; move its body to a file and call that")
        return (*interpreter(self.application, self.name), "-c", batch.script, self.name), dict(batch.environment)

    def command_line(self, batch: "Batch") -> str:
        """The command line by which a person can run the script of a configuration, in which it is called SCRIPT."""
        submits = runner_kind(self.where).program
        program = (submits, *batch.options) if submits else interpreter(self.application, self.name)
        variables = [f"{name}={shlex.quote(text)}" for name, text in batch.environment.items()]
        return " ".join([*variables, shlex.join([*program, "SCRIPT"])])

    def line(self, space: Space, config: Config) -> str:
        """A complete script for one configuration, with the variables and options inside."""
        batch, values = self.batch(space, config), self._values(space, config)
        extra = [_directive(f"#SBATCH {shlex.join(batch.options)}")] if batch.options else []
        exports = [f"export {name}={shlex.quote(text)}" for name, text in batch.environment.items()]
        return self._script(values, self._native(space, config), [*extra, *exports], timed=False).rstrip("\n")

    def to_json(self) -> dict[str, Json]:
        """The job as plain values."""
        component: dict[str, Json] = self.component.model_dump(mode="json", exclude_defaults=True)
        allocation = {} if self.allocation is None else {"allocation": asdict(self.allocation)}
        job = {"application": self.application, "name": self.name, "where": self.where}
        untimed: dict[str, Json] = {} if self.command_is_timed else {"command_is_timed": False}
        return {"component": component, "component_name": self.component_name, **job, **allocation, **untimed}

    @classmethod
    def from_json(cls, plain: Mapping[str, object]) -> "JobScript":
        """Rebuild what `to_json` wrote."""
        from pydantic import ValidationError

        from luthier.runners.psij import Allocation
        from luthier.spec.component import Component

        try:
            component = Component.model_validate(plain.get("component"))
        except ValidationError as error:
            raise InvalidInputError(f"experiment settings contain no component: {error.errors()[0]['msg']}") from None
        where, asked = str(plain.get("where", "local")), plain.get("allocation")
        allocation = Allocation(**asked) if isinstance(asked, dict) else None
        application, name, component_name = (
            str(plain.get(key, "")) for key in ("application", "name", "component_name")
        )
        is_timed = plain.get("command_is_timed", True) is not False
        return cls(component, application, name, where, allocation, component_name, is_timed)

    def _values(self, space: Space, config: Config) -> dict[str, str]:
        """The text of every parameter that is passed, tuned or not."""
        tuned = {parameter.name: parameter.format(config[parameter.name]) for parameter in space.parameters}
        parameters = self.component.parameters.items()
        fixed = {name: _text(one.default) for name, one in parameters if one.default is not None}
        return {**fixed, **tuned}

    def _native(self, space: Space, config: Config) -> dict[str, Value]:
        """The values with their types, for files that distinguish numbers from texts."""
        parameters = self.component.parameters.items()
        fixed = {name: one.default for name, one in parameters if one.default is not None}
        units = {one.name for one in space.parameters if getattr(one, "unit", "")}
        texts = self._values(space, config)
        return {**fixed, **{name: texts[name] if name in units else value for name, value in config.items()}}

    def _environment(self, values: Mapping[str, str]) -> dict[str, str]:
        parameters = self.component.parameters.items()
        return {name: values[name] + one.suffix for name, one in parameters if one.env_var and name in values}

    def _script(
        self, values: Mapping[str, str], native: Mapping[str, Value], first: Sequence[str] = (), *, timed: bool = True
    ) -> str:
        """The text of the script; `first` are lines for its top."""
        opening, body = _split(self.application)
        component, command = self.component, self._command(values)
        quiet_header, quiet_command = _is_comment(component.header), _is_comment(component.command)
        comments = [component.header.strip()] * quiet_header + [command] * quiet_command
        lines = [*opening, *filter(None, comments), *first]
        if not quiet_header:
            lines += _guarded(component.header.rstrip("\n"))
        lines += [_write(file, values, native) for file in component.files]
        mark = [_MARK] if timed and self.is_timed_apart else []
        called = [] if quiet_command else [command]
        if not quiet_command and body:
            called.append("luthier_status=$?; [ $luthier_status -eq 0 ] || exit $luthier_status")
        called = [*called, *mark] if self.is_timed_without_command else [*mark, *called]
        preload = _preload(component.ld_preload)
        script = "\n".join([*lines, *(called + preload if body else preload + called), *body, ""])
        if "\0" in script:
            raise InvalidInputError(
                f"{self.name}: contains a NUL character, which cannot be passed to a shell; remove it"
            )
        if "\r\n" in script and (program := runner_kind(self.where).program):
            raise InvalidInputError(f"{self.name}: contains DOS line ends, which {program} refuses; remove the \\r")
        return script

    def _command(self, values: Mapping[str, str]) -> str:
        words = [
            word
            for name, parameter in self.component.parameters.items()
            if parameter.cmd_var and name in values
            for word in _words(parameter, values[name], bare=f"{name}=")
        ]
        if _is_comment(self.component.command):
            words = list(map(_directive, words))
        return " ".join([self.component.command.strip(), *map(shlex.quote, words)])


def _preload(libraries: str) -> list[str]:
    """The line that preloads libraries; where the script runs, luthier is asked for the path of one of its own."""
    if not libraries:
        return []
    paths = OWN_LIBRARY.sub(r"$(luthier native path \1)", libraries)
    return [f'export LD_PRELOAD="{paths}${{LD_PRELOAD:+:$LD_PRELOAD}}"']


def _words(parameter: "ComponentParameter", text: str, *, bare: str) -> list[str]:
    """A parameter as words of a command line; `bare` begins the one word it is without a flag."""
    value = text + parameter.suffix
    if not parameter.flag:
        return [bare + value]
    return [f"-{parameter.flag}" if len(parameter.flag) == 1 else f"--{parameter.flag}", value]


def _text(value: Value) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _split(application: str) -> tuple[list[str], list[str]]:
    """The first line and what follows it up to the first command, where #SBATCH lines count; and the rest."""
    lines = application.removesuffix("\n").split("\n") if application.strip() else []
    if not application.startswith("#!"):
        lines = ["#!/bin/bash", *lines]
    end = next((number for number, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
    while end > 1 and not lines[end - 1].strip():
        end -= 1
    return lines[:end], lines[end:]


def _is_comment(text: str) -> bool:
    """Whether a text holds nothing that a shell would run."""
    return all(line.lstrip().startswith("#") or not line.strip() for line in text.split("\n"))


def _guarded(header: str) -> list[str]:
    """A header whose failure ends the script; one that uses `set -e` or `set +e` stays as it is."""
    return [header] if _DECIDES_ITSELF.search(header) else [_BEFORE_HEADER, header, _AFTER_HEADER]


def _directive(line: str) -> str:
    """A comment that another program reads, such as #SBATCH: a line break cannot be quoted there."""
    if "\n" in line or "\r" in line:
        raise InvalidInputError(f"{line[:60]!r}: a value with a line break is not allowed in a comment; remove it")
    return line


def comment(text: str) -> str:
    """The text as comment lines of a shell script; no part of it is ever run."""
    return "\n".join(f"# {line}" for line in text.split("\n"))


def _write(file: "ConfigFile", values: Mapping[str, str], native: Mapping[str, Value]) -> str:
    """A line of shell that writes a file; what it holds is data."""
    from luthier.spec.config_files import edited

    if file.set and file.kind is not None:
        changes = {place: _change(value, values, native) for place, value in file.set.items()}
        try:
            text = edited(file.text, file.kind, changes)
        except InvalidInputError as error:
            raise InvalidInputError(f"file {file.path}: {error}") from None
    else:
        text = fill(file.text, values)
    return f"""printf '%s' {shlex.quote(text)} > "{file.path}" || exit"""


def _change(value: Value, values: Mapping[str, str], native: Mapping[str, Value]) -> Value:
    """The value to set; `{name}` alone is the parameter's own value, a number where it is one."""
    if not isinstance(value, str):
        return value
    whole = re.fullmatch(r"\{([A-Za-z_][\w.-]*)\}", value)
    return native[whole[1]] if whole is not None else fill(value, values)


def interpreter(application: str, name: str) -> tuple[str, ...]:
    """The program and options of the script's first line; bash if it has none."""
    first = application.partition("\n")[0].rstrip("\r")
    if not first.startswith("#!"):
        return ("/bin/bash",)
    words = first[2:].split()
    program = PurePath(words[1] if len(words) > 1 and PurePath(words[0]).name == "env" else (words or [""])[0]).name
    if program not in _SHELLS:
        raise InvalidInputError(
            f"{name}: begins with {first[:60]!r}, and a component can only be put into a shell script; "
            "call your program from one"
        )
    return tuple(words)
