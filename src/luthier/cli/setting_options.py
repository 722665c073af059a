"""A command-line option for each setting of an experiment."""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

import typer

from luthier.errors import InvalidInputError
from luthier.spec.setting_kinds import Folder, RuleOrSeconds, Seconds, Text, Whole
from luthier.spec.settings import Setting, all_settings
from luthier.spec.signatures import COMMON, option, with_options

Given: TypeAlias = Mapping[str, Any] | None
"""The settings that were given on the command line, as Typer read them, by their names in `Settings`."""

_SINGLE = (Whole, Seconds, RuleOrSeconds, Text, Folder)


def with_settings(command: Callable[..., int]) -> Callable[..., int]:
    """The command with an option for each setting; it gets those that were given in its argument `settings`."""
    options = [each for setting in all_settings() for each in _options(setting)]
    return with_options(command, "settings", options, _given)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that were given, some of them by their former name."""
    settings = {}
    for setting in all_settings():
        former = values.get(setting.former) if setting.former else None
        value = values[setting.field]
        if value is not None or former is not None:
            settings[setting.field] = former if value is None else value
    return settings


def read_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the settings that were given on the command line."""
    values = {}
    for setting in all_settings():
        if setting.field in given:
            try:
                values[setting.field] = setting.kind.read(given[setting.field])
            except InvalidInputError as error:
                raise InvalidInputError(f"{setting.flags[-1]}: {error}") from None
    return values


def _options(setting: Setting) -> list[inspect.Parameter]:
    """The option of a setting, and a hidden one for its former name."""
    word: type = int if isinstance(setting.kind, Whole) else str
    is_single = isinstance(setting.kind, _SINGLE)
    kind = word if is_single else list[word]  # type: ignore[valid-type]  # a type that is known at run time only
    usual = f" [default: {setting.default}]" if is_single and setting.default is not None else ""
    heading = COMMON if setting.is_common else setting.topic
    shown = typer.Option(
        *setting.flags,
        help=setting.help + usual,
        metavar=setting.metavar,
        show_default=False,
        rich_help_panel=heading,
    )
    options = [option(setting.field, Annotated[kind | None, shown])]
    if setting.former:
        hidden = typer.Option(f"--{setting.former}", hidden=True)
        options.append(option(setting.former, Annotated[kind | None, hidden]))
    return options
