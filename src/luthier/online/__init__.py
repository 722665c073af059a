"""Tuning of programs while they run: strategies, on-line sessions, their service and its clients.

`tune` tunes a program that is not changed for it, such as a server. Start reading at `session.py`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from luthier.plugins import Wing

if TYPE_CHECKING:
    from luthier.online.unchanged.program_request import TunedProgramResult, tune

__all__ = ["WING", "TunedProgramResult", "tune"]

WING = Wing(
    "online",
    commands="luthier.online.commands.online:register",
    server="luthier.online.server.serving:PART",
    options="luthier.online.commands:OnlineServeOptions",
    tables="luthier.online.store:TABLES",
    plugs={"luthier.tune-modes": {"online": "luthier.online.commands.tune_options:MODE"}},
)

# Each is imported when it is first used, as the names of `luthier` are.
_MODULES = {
    "TunedProgramResult": "luthier.online.unchanged.program_request",
    "tune": "luthier.online.unchanged.program_request",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'luthier.online' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
