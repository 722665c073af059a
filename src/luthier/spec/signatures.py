"""Options of a command that are declared somewhere else, and the help of commands with many options."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar, get_type_hints

from typer.core import TyperCommand

COMMON = "Most used options"
OUTPUT = "Output and store"
"""Headings of the help: the options that are used most come first."""

Code = TypeVar("Code", int, None)
"""What a command returns: an exit code, or nothing."""


def option(name: str, annotation: object, default: object = None) -> inspect.Parameter:
    """An option as an argument of a command."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def options_of(kind: type[Any], heading: str | None = None) -> list[inspect.Parameter]:
    """An option for each field of a dataclass, whose annotation describes it; all below this `heading` of the help."""
    hints = get_type_hints(kind, include_extras=True)
    for hint in hints.values() if heading else ():
        hint.__metadata__[0].rich_help_panel = heading
    return [option(each.name, hints[each.name], each.default) for each in fields(kind)]


def with_options_of(
    command: Callable[..., Code],
    argument: str,
    kinds: Mapping[str, type[Any]],
    headings: Mapping[str, str] | None = None,
) -> Callable[..., Code]:
    """The command with the options of several dataclasses; its argument gets a value of each, by their names.

    The options of a dataclass stand below its heading of the help, if it has one.
    """

    def gathered(values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: kind(**{one.name: values[one.name] for one in fields(kind)}) for name, kind in kinds.items()}

    options = [option for name, kind in kinds.items() for option in options_of(kind, (headings or {}).get(name))]
    return with_options(command, argument, options, gathered)


def with_options(
    command: Callable[..., Code],
    argument: str,
    options: Sequence[inspect.Parameter],
    gathered: Callable[[dict[str, Any]], object],
) -> Callable[..., Code]:
    """The command with these options in place of an argument, which gets what `gathered` makes from their values."""

    def run(**given: Any) -> Code:
        values = {each.name: given.pop(each.name) for each in options}
        return command(**{argument: gathered(values)}, **given)

    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        parameters += options if name == argument else [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions may have one
    return run


class WithHeadings(TyperCommand):
    """A command whose options are listed below headings: those in `rich_help_panel`, in the order of the options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options of each heading."""
        below: dict[str, list[tuple[str, str]]] = {"Arguments": [], COMMON: []}
        last: list[tuple[str, str]] = []
        for parameter in self.get_params(ctx):
            if (row := parameter.get_help_record(ctx)) is not None:
                is_argument = parameter.param_type_name == "argument"
                heading = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or OUTPUT
                (last if heading == OUTPUT else below.setdefault(heading, [])).append(row)
        for heading, rows in {**below, OUTPUT: last}.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
