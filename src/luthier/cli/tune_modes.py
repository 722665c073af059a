"""Other modes of `luthier tune` than running a command many times; wings add them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from luthier.plugins import Registry
from luthier.spec.signatures import with_options_of


@dataclass(frozen=True, slots=True)
class TuneRequest:
    """What `luthier tune` was given, as it was read from the command line."""

    command: Sequence[str]
    parameters: Sequence[str]
    constraints: Sequence[str]
    environment: Sequence[str]
    runner: str | None
    settings: Mapping[str, Any]
    name: str
    store: str | None
    maximize: bool
    shell: bool
    quiet: bool
    as_json: bool


@dataclass(frozen=True, slots=True)
class TuneMode:
    """A way of tuning with options of its own, the fields of the dataclass `options`, below a `heading` of the help.

    `run` gets their values and the request, and returns the exit code; None if these options do not ask for this way.
    """

    heading: str
    options: type[Any]
    run: Callable[[Any, TuneRequest], int | None]


MODES: Registry[TuneMode] = Registry("tune-mode", {}, fits=lambda thing: isinstance(thing, TuneMode))

Modes: TypeAlias = Mapping[str, Any] | None
"""The values of the options of each way, by its name."""


def with_modes(command: Callable[..., int]) -> Callable[..., int]:
    """The command with the options of all ways; it gets their values in its argument `modes`."""
    modes = {name: MODES.get(name) for name in MODES.own()}
    kinds = {name: mode.options for name, mode in modes.items()}
    return with_options_of(command, "modes", kinds, {name: mode.heading for name, mode in modes.items()})


def run_in_mode(modes: Modes, request: TuneRequest) -> int | None:
    """Tune in the way that was asked for; None if it is the usual one."""
    for name, chosen in (modes or {}).items():
        if (code := MODES.get(name).run(chosen, request)) is not None:
            return code
    return None
