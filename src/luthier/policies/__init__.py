"""The rules that steer an experiment: when to stop, which runs to cut short, how often to run, what to tune now.

Other packages add rules through the entry point groups `luthier.stops`, `luthier.prunes`, `luthier.resamples` and
`luthier.subset_pickers`: a class or a function that makes the rule, with numbers as its only arguments.
"""

from collections.abc import Callable
from functools import partial

from luthier.plugins import Registry
from luthier.policies.base import Progress, Prune, Resample, Stop, SubsetPicker
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

# Imported when asked for: they need NumPy and SciPy.
SUBSET_PICKERS: Registry[Callable[..., SubsetPicker]] = Registry(
    "subset_picker",
    {
        "learned": "luthier.policies.learned_subset:shipped_picker",
        "statistical": "luthier.policies.statistical_subset:StatisticalPicker",
    },
)
"""Which parameters are tuned now, by name."""

AUTO_PICKER = "statistical"
"""The picker called `auto`: docs/decisions/0027-impact-first.md."""


def make_picker(name: str) -> SubsetPicker:
    """The subset picker of this name, or the one called `auto`."""
    return SUBSET_PICKERS.get(AUTO_PICKER if name == "auto" else name)()


__all__ = [
    "AUTO_PICKER",
    "PRUNES",
    "RESAMPLES",
    "STOPS",
    "SUBSET_PICKERS",
    "Progress",
    "Prune",
    "Resample",
    "Stop",
    "SubsetPicker",
    "make_picker",
]
