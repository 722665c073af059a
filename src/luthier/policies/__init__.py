"""The rules that steer an experiment: when to stop, which runs to cut short, how often to run a configuration.

Other packages add rules through the entry point groups `luthier.stops`, `luthier.prunes` and `luthier.resamples`: a
class or a function that makes the rule, with numbers as its only arguments.
"""

from collections.abc import Callable
from functools import partial

from luthier.plugins import Registry
from luthier.policies.base import Progress, Prune, Resample, Stop
from luthier.policies.prune import BeyondChance, BeyondDefault, beyond_mean, beyond_quantile
from luthier.policies.resample import Auto, Evadyr, Once, Sedr

STOPS: Registry[Callable[..., Stop]] = Registry("stop", {})
"""When a search is over, by name: plug-ins only, as the built-in rules are written in words (`spec/rules.py`)."""

PRUNES: Registry[Callable[..., Prune]] = Registry(
    "prune",
    {
        "default": BeyondDefault,
        "median": partial(beyond_quantile, 0.5),
        "mean": beyond_mean,
        "chance": BeyondChance,
    },
)
"""Which runs are not worth finishing, by name."""

RESAMPLES: Registry[Callable[..., Resample]] = Registry(
    "resample", {"auto": Auto, "once": Once, "sedr": Sedr, "evadyr": Evadyr}
)
"""How often a configuration runs, by name."""

__all__ = ["PRUNES", "RESAMPLES", "STOPS", "Progress", "Prune", "Resample", "Stop"]
