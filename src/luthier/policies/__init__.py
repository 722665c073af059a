"""The rules that steer an experiment: when to stop, which runs to cut short, how often to run a configuration.

Other packages add rules through the entry point groups `luthier.stops`, `luthier.prunes` and `luthier.resamples`: a
class or a function that makes the rule, with numbers as its only arguments.
"""

from collections.abc import Callable
from functools import partial

from luthier.plugins import Registry
from luthier.policies.base import Progress, Prune, Resample, Stop
from luthier.policies.prune import beyond_chance, beyond_default, beyond_mean, beyond_quantile
from luthier.policies.resample import auto, evadyr, once, sedr

STOPS: Registry[Callable[..., Stop]] = Registry("stop", {})
"""When a search is over, by name: plug-ins only, as the built-in rules are written in words (`spec/rules.py`)."""

PRUNES: Registry[Callable[..., Prune]] = Registry(
    "prune",
    {
        "default": beyond_default,
        "median": partial(beyond_quantile, 0.5),
        "mean": beyond_mean,
        "chance": beyond_chance,
    },
)
"""Which runs are not worth finishing, by name."""

RESAMPLES: Registry[Callable[..., Resample]] = Registry(
    "resample", {"auto": auto, "once": once, "sedr": sedr, "evadyr": evadyr}
)
"""How often a configuration runs, by name."""

__all__ = ["PRUNES", "RESAMPLES", "STOPS", "Progress", "Prune", "Resample", "Stop"]
