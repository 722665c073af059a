"""Names of search algorithms: built-in ones, and plug-ins from the entry point group `luthier.optimizers`."""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING

from luthier.errors import InvalidInputError
from luthier.optimizers.base import Optimizer
from luthier.plugins import Registry, instead
from luthier.texts import shown
from luthier.trial import Value

if TYPE_CHECKING:
    from luthier.optimizers.earlier import Earlier
    from luthier.policies.base import SubsetPicker
    from luthier.space import Space

# Imported when asked for: most need NumPy, and some SciPy.
OPTIMIZERS: Registry[Callable[..., Optimizer]] = Registry(
    "optimizer",
    {
        "annealing": "luthier.optimizers.annealing:Annealing",
        "auto": "luthier.optimizers.auto:automatic_search",
        "exhaustive": "luthier.optimizers.exhaustive:ExhaustiveSearch",
        "forest": "luthier.optimizers.forest:forest_search",
        "forest-lcb": "luthier.optimizers.forest_bound:forest_bound_search",
        "genetic": "luthier.optimizers.genetic:GeneticSearch",
        "gp": "luthier.optimizers.gp:gaussian_process_search",
        "nelder-mead": "luthier.optimizers.nelder_mead:nelder_mead",
        "parallel-rank-ordering": "luthier.optimizers.rank_ordering:parallel_rank_ordering",
        "pareto": "luthier.optimizers.pareto:ParetoSearch",
        "random": "luthier.optimizers.random_search:RandomSearch",
        "sequential-rank-ordering": "luthier.optimizers.rank_ordering:sequential_rank_ordering",
    },
)

_GIVEN = ("self", "space", "seed", "budget", "earlier")


def optimizer_names() -> list[str]:
    """Every name `make_optimizer` knows, sorted."""
    return sorted(OPTIMIZERS.names())


def make_optimizer(
    name: str,
    space: "Space",
    *,
    seed: int,
    budget: int | None = None,
    earlier: "Earlier | None" = None,
    picker: "SubsetPicker | None" = None,
    **options: Value | None,
) -> Optimizer:
    """Make the optimizer called `name`; `budget` is the number of runs that it has, if that is known.

    `earlier` is what is known from earlier experiments; optimizers that cannot use it ignore it. With a `picker` it
    searches in a part of the parameters at a time (`luthier.optimizers.impact_first`).
    `options` are the keyword arguments of its constructor; an unknown one is an error, as is a space it cannot search.
    """
    for what, number, least in (("seed", seed, 0), ("budget", budget, 0)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < least):
            raise InvalidInputError(f"optimizer {name}: {what} is {number!r}; give a whole number, {least} or more")
    factory = OPTIMIZERS.get(name)
    known = [option for option in inspect.signature(factory).parameters if option not in _GIVEN]
    for option in options:
        if option not in known:
            hint = instead(option, known) if known else "it has no options"
            raise InvalidInputError(f"optimizer {name}: unknown option {shown(option)}; {hint}")
    known_before = {"earlier": earlier} if earlier and "earlier" in inspect.signature(factory).parameters else {}
    if picker is None:
        return factory(space, seed=seed, budget=budget, **known_before, **options)
    from luthier.optimizers.impact_first import ImpactFirst

    def make(part: "Space") -> Optimizer:
        # A part is small, and the budget is not for this part alone: an optimizer must not try all of it.
        return factory(part, seed=seed, budget=budget if part is space else None, **known_before, **options)

    return ImpactFirst(space, make, picker, seed=seed, budget=budget)
