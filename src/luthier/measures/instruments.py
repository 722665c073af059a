"""What watches a run beside its measure, such as counters of I/O; measures say which ones they need."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from luthier.plugins import Registry

PRELOAD_VARIABLE = "LD_PRELOAD"
"""The variable that names the libraries which a program loads first."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that is counted or measured: its name, a sentence with it, and the unit.

    A difference matters only if one of the two values is at least `matters`.
    """

    label: str
    sentence: str
    unit: str = ""
    matters: float = 100.0


@dataclass(frozen=True, slots=True)
class Instrument:
    """Something that watches runs of a command.

    `libraries` gives what the run preloads, for LD_PRELOAD, and raises `UnavailableError` where that cannot be had.
    The run gets the `variables`. `read` returns what a run left in its folder, by the names of `quantities`; it raises
    `OSError` or `ValueError` if that is damaged. `what` is what is counted, `if_nothing` a sentence for a run that left
    nothing.
    """

    what: str
    libraries: Callable[[], str]
    variables: Mapping[str, str]
    quantities: Mapping[str, Quantity]
    read: Callable[[Path], Mapping[str, float]]
    if_nothing: str


INSTRUMENTS: Registry[Instrument] = Registry("instrument", {}, fits=lambda thing: isinstance(thing, Instrument))
