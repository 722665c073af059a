"""The options of `luthier tune --online`."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import typer

from luthier.cli.tune_modes import TuneMode, TuneRequest
from luthier.errors import InvalidInputError
from luthier.spec.settings import all_settings


@dataclass(frozen=True, slots=True)
class OnlineChoices:
    """What was given of these options."""

    online: Annotated[
        bool,
        typer.Option("--online", help="Tune a program that is running, such as a server, without restarts."),
    ] = False
    write: Annotated[
        list[str] | None,
        typer.Option(
            "--write",
            help="A configuration file and the file with {NAME} that it is made from.",
            metavar="TEMPLATE:FILE",
        ),
    ] = None
    reload: Annotated[
        str | None,
        typer.Option(
            "--reload",
            help="A command that makes the program read its settings; it may contain {NAME}.",
            metavar="COMMAND",
        ),
    ] = None
    signal: Annotated[
        str | None,
        typer.Option(
            "--signal", help="A signal that makes the program read its settings: HUP, USR1 or USR2.", metavar="NAME"
        ),
    ] = None
    pid_file: Annotated[
        Path | None,
        typer.Option("--pid-file", help="With --signal: the file with the process number.", metavar="FILE"),
    ] = None
    read: Annotated[
        str | None,
        typer.Option(
            "--read",
            help="The number to improve: log:FILE:REGEX, url:URL [regex:PATTERN or json:PATH], or "
            "command:COMMAND, which prints it.",
            metavar="SOURCE",
        ),
    ] = None
    statistic: Annotated[
        str | None,
        typer.Option(
            "--statistic", help="What to use of all numbers in a window: mean (default), median or p95.", metavar="NAME"
        ),
    ] = None
    rate: Annotated[
        bool,
        typer.Option("--rate", help="The number is a counter; improve its growth per second."),
    ] = False
    every: Annotated[
        str | None,
        typer.Option("--every", help="Length of a window [default: 5s]", metavar="TIME"),
    ] = None
    settle: Annotated[
        str | None,
        typer.Option(
            "--settle", help="Time after a change that is not measured [default: a fifth of a window]", metavar="TIME"
        ),
    ] = None
    guard: Annotated[
        float | None,
        typer.Option(
            "--guard",
            help="Put back the last good configuration immediately when the number is this many times "
            "worse than with the default; 0 disables it. [default: 2]",
            metavar="FACTOR",
        ),
    ] = None
    keep_watching: Annotated[
        bool,
        typer.Option("--keep-watching", help="Do not end after the search, and search again when the number changes."),
    ] = False


_UNSET = OnlineChoices()


def check_offline(running: OnlineChoices) -> None:
    """Raise if an option that needs `--online` was given without it."""
    for each in fields(OnlineChoices):
        if getattr(running, each.name) != getattr(_UNSET, each.name):
            flag = f"--{each.name.replace('_', '-')}"
            raise InvalidInputError(f"{flag} is for a running program; add --online, or leave it out")


def check_online(given: Mapping[str, object], others: Mapping[str, object]) -> None:
    """Raise if a setting or another option was given that is for experiments only."""
    from luthier.online.unchanged.program_request import SETTINGS

    flags = {setting.field: setting.flags[-1] for setting in all_settings()}
    unfit = [flags[name] for name in given if name not in SETTINGS]
    unfit += [flag for flag, value in others.items() if value]
    if unfit:
        raise InvalidInputError(f"{unfit[0]} cannot be used with --online; leave it out")


def _run(chosen: OnlineChoices, request: TuneRequest) -> int | None:
    if not chosen.online:
        check_offline(chosen)
        return None
    check_online(request.settings, {"--env": request.environment, "--runner": request.runner})
    from luthier.online.commands.tune import tune_online

    return tune_online(chosen, request)


MODE = TuneMode("Programs that run (with --online)", OnlineChoices, _run)
