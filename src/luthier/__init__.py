"""luthier tunes computer systems: good settings in few runs, and proof that they are better.

>>> import luthier as lt
>>> space = lt.Space(lt.Integer("threads", 1, 16), lt.Choice("engine", ["sync", "libaio"]))
>>> def measure(config):
...     return abs(config["threads"] - 6) + (config["engine"] == "sync")
>>> result = lt.tune(measure, space, budget=40, seed=1)
>>> result.best.config
{'threads': 6, 'engine': 'libaio'}
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luthier.client import Client
    from luthier.errors import LuthierError
    from luthier.launch.function import resume, tune
    from luthier.online.service.remote import RemoteTuner
    from luthier.online.tuner import OnlineTuner
    from luthier.optimizers.friendly import AskTell, optimizer
    from luthier.result.result import Result
    from luthier.space import Choice, Integer, Real, Space
    from luthier.trial import Config, Estimate, Run, Trial

__version__ = "0.1.0"

# Importing NumPy takes longer than most commands, so each name is imported when it is first used.
_MODULES = {
    "AskTell": "luthier.optimizers.friendly",
    "Choice": "luthier.space",
    "Client": "luthier.client",
    "Config": "luthier.trial",
    "Estimate": "luthier.trial",
    "Integer": "luthier.space",
    "LuthierError": "luthier.errors",
    "OnlineTuner": "luthier.online.tuner",
    "Real": "luthier.space",
    "RemoteTuner": "luthier.online.service.remote",
    "Result": "luthier.result.result",
    "Run": "luthier.trial",
    "Space": "luthier.space",
    "Trial": "luthier.trial",
    "optimizer": "luthier.optimizers.friendly",
    "resume": "luthier.launch.function",
    "tune": "luthier.launch.function",
}

__all__ = [
    "AskTell",
    "Choice",
    "Client",
    "Config",
    "Estimate",
    "Integer",
    "LuthierError",
    "OnlineTuner",
    "Real",
    "RemoteTuner",
    "Result",
    "Run",
    "Space",
    "Trial",
    "optimizer",
    "resume",
    "tune",
]


_MOVED = ("discover_io", "stop", "subset_picker")
"""Names of `luthier.tunio` that were here; they go with the next release."""


def __getattr__(name: str) -> object:
    if name in _MOVED:
        import warnings

        warnings.warn(f"luthier.{name} moved: use luthier.tunio.{name}", DeprecationWarning, stacklevel=2)
        return getattr(import_module("luthier.tunio"), name)
    if name not in _MODULES and name != "launch":
        raise AttributeError(f"module 'luthier' has no attribute {name!r}")
    from luthier.__main__ import join_wings

    join_wings()  # as on the command line: their measures, and what follows their experiments
    return import_module("luthier.launch") if name == "launch" else getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
