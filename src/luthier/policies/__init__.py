"""The rules that steer an experiment: when to stop, which runs to cut short, how often to run a configuration."""

from collections.abc import Callable, Mapping
from functools import partial

from luthier.policies.base import Progress, Prune, Resample, Stop
from luthier.policies.prune import beyond_chance, beyond_default, beyond_mean, beyond_quantile
from luthier.policies.resample import auto, evadyr, once, sedr

RESAMPLES: Mapping[str, Callable[..., Resample]] = {"auto": auto, "once": once, "sedr": sedr, "evadyr": evadyr}
"""How often a configuration runs, by name."""

PRUNES: Mapping[str, Callable[..., Prune]] = {
    "default": beyond_default,
    "median": partial(beyond_quantile, 0.5),
    "mean": beyond_mean,
    "chance": beyond_chance,
}
"""Which runs are not worth finishing, by name."""

__all__ = ["PRUNES", "RESAMPLES", "Progress", "Prune", "Resample", "Stop"]
