"""The rules that steer an experiment: when to stop, which runs to cut short, how often to run a configuration."""

from collections.abc import Callable, Mapping

from luthier.policies.base import Progress, Prune, Resample, Stop
from luthier.policies.prune import beyond_default, beyond_seconds, never
from luthier.policies.resample import once, static
from luthier.policies.stop import after_runs, after_seconds, all_of, any_of, at_target, no_improvement

STOPS: Mapping[str, Callable[..., Stop]] = {
    "after_runs": after_runs,
    "after_seconds": after_seconds,
    "all_of": all_of,
    "any_of": any_of,
    "at_target": at_target,
    "no_improvement": no_improvement,
}

PRUNES: Mapping[str, Callable[..., Prune]] = {
    "beyond_default": beyond_default,
    "beyond_seconds": beyond_seconds,
    "never": never,
}

RESAMPLES: Mapping[str, Callable[..., Resample]] = {"once": once, "static": static}

__all__ = [
    "PRUNES",
    "RESAMPLES",
    "STOPS",
    "Progress",
    "Prune",
    "Resample",
    "Stop",
    "after_runs",
    "after_seconds",
    "all_of",
    "any_of",
    "at_target",
    "beyond_default",
    "beyond_seconds",
    "never",
    "no_improvement",
    "once",
    "static",
]
