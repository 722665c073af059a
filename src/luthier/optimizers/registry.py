"""Names of search algorithms: built-ins, and plug-ins that join through the entry point group `luthier.optimizers`."""

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, TypeAlias

from luthier.errors import InvalidInputError
from luthier.optimizers.base import Optimizer
from luthier.texts import closest, shown
from luthier.trial import Value

if TYPE_CHECKING:
    from luthier.space import Space

GROUP = "luthier.optimizers"

# Imported when asked for: most need NumPy, and some SciPy.
BUILT_IN: Mapping[str, str] = {
    "annealing": "luthier.optimizers.annealing:Annealing",
    "auto": "luthier.optimizers.auto:automatic_search",
    "exhaustive": "luthier.optimizers.exhaustive:ExhaustiveSearch",
    "forest": "luthier.optimizers.forest:forest_search",
    "genetic": "luthier.optimizers.genetic:GeneticSearch",
    "gp": "luthier.optimizers.gp:gaussian_process_search",
    "nelder-mead": "luthier.optimizers.nelder_mead:nelder_mead",
    "parallel-rank-ordering": "luthier.optimizers.rank_ordering:parallel_rank_ordering",
    "pareto": "luthier.optimizers.pareto:ParetoSearch",
    "random": "luthier.optimizers.random_search:RandomSearch",
    "sequential-rank-ordering": "luthier.optimizers.rank_ordering:sequential_rank_ordering",
}

_Factory: TypeAlias = Callable[..., Optimizer]
_GIVEN = ("self", "space", "seed", "budget")


def optimizer_names() -> list[str]:
    """Every name `make_optimizer` knows, sorted."""
    return sorted({*BUILT_IN, *entry_points(group=GROUP).names})


def make_optimizer(
    name: str, space: "Space", *, seed: int, budget: int | None = None, **options: Value | None
) -> Optimizer:
    """Make the optimizer called `name`; `budget` is the number of runs it may count on, if that is known.

    `options` are the keyword arguments of its constructor; an unknown one is an error, as is a space it cannot search.
    """
    for what, number, least in (("seed", seed, 0), ("budget", budget, 0)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < least):
            raise InvalidInputError(f"optimizer {name}: {what} is {number!r}; give a whole number, {least} or more")
    factory = _find(name)
    known = [option for option in inspect.signature(factory).parameters if option not in _GIVEN]
    for option in options:
        if option not in known:
            raise InvalidInputError(f"optimizer {name}: unknown option {shown(option)}; {_instead(option, known)}")
    return factory(space, seed=seed, budget=budget, **options)


def _find(name: str) -> _Factory:
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        factory: _Factory = getattr(import_module(module), attribute)
        return factory
    for entry in entry_points(group=GROUP, name=name):
        loaded: _Factory = entry.load()
        return loaded
    raise InvalidInputError(f"unknown optimizer {shown(name)}; {_instead(name, optimizer_names())}")


def _instead(wrong: str, known: list[str]) -> str:
    if not known:
        return "it has no options"
    near = closest(wrong, known)
    return (f"did you mean {near!r}? " if near else "") + f"known: {', '.join(known)}"
