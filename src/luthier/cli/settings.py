"""A command-line option for each setting of an experiment."""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

import typer

from luthier.errors import InvalidInputError
from luthier.spec.setting_kinds import Folder, RuleOrSeconds, Seconds, Text, Whole
from luthier.spec.settings import Setting, all_settings

Given: TypeAlias = Mapping[str, Any] | None
"""The settings that were given on the command line, as Typer read them, by their names in `Settings`."""

_SINGLE = (Whole, Seconds, RuleOrSeconds, Text, Folder)


def with_settings(command: Callable[..., int]) -> Callable[..., int]:
    """The command with an option for each setting; it gets those that were given in its argument `settings`."""

    def run(**given: Any) -> int:
        settings = {}
        for setting in all_settings():
            former = given.pop(setting.former, None) if setting.former else None
            value = given.pop(setting.field)
            if value is not None or former is not None:
                settings[setting.field] = former if value is None else value
        return command(settings=settings, **given)

    own = inspect.signature(command, eval_str=True).parameters
    parameters: list[inspect.Parameter] = []
    for name, parameter in own.items():
        if name == "settings":
            parameters += [option for setting in all_settings() for option in _options(setting)]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions may have one
    return run


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
    shown = typer.Option(*setting.flags, help=setting.help + usual, metavar=setting.metavar, show_default=False)
    options = [_option(setting.field, Annotated[kind | None, shown])]
    if setting.former:
        hidden = typer.Option(f"--{setting.former}", hidden=True)
        options.append(_option(setting.former, Annotated[kind | None, hidden]))
    return options


def _option(name: str, annotation: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
