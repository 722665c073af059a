"""Names of strategies: built-in ones, and plug-ins from the entry point group `luthier.strategies`."""

import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from luthier.errors import InvalidInputError
from luthier.online.base import Strategy
from luthier.plugins import Registry, instead
from luthier.texts import NUMBER, check_length, shown
from luthier.trial import Value

if TYPE_CHECKING:
    from luthier.online.strategies.sampling import Sampling
    from luthier.space import Space
    from luthier.trial import Config

# Imported when asked for: all of them need NumPy.
STRATEGIES: Registry[Callable[..., Strategy]] = Registry(
    "strategy",
    {
        "auto": "luthier.online.strategies.auto:automatic_strategy",
        "pro": "luthier.online.strategies.simplex_strategy:parallel_rank_ordering",
        "sequential": "luthier.online.strategies.simplex_strategy:sequential_rank_ordering",
        "nelder-mead": "luthier.online.strategies.simplex_strategy:simplex_search",
    },
    kinds="strategies",
)

_GIVEN = ("space", "seed", "sampling", "centre")


def make_strategy(
    text: str, space: "Space", *, seed: int, sampling: "Sampling", centre: "Config | None" = None
) -> Strategy:
    """Make the strategy of a name, with its options if there are any: `pro`, `pro:size=0.3,vertices=N+1`.

    `centre` is where the search starts; by default the strategy decides.
    """
    check_length(text, "strategy")
    name, colon, rest = text.partition(":")
    factory = STRATEGIES.get(name)
    known = [option for option in inspect.signature(factory).parameters if option not in _GIVEN]
    options: dict[str, Value] = {}
    for part in rest.split(",") if colon else ():
        option, equals, value = part.partition("=")
        if not equals or not value:
            raise InvalidInputError(f"strategy {shown(text)}: {shown(part)} is not NAME=VALUE; write {name}:size=0.3")
        if option not in known:
            hint = instead(option, known) if known else "it has no options"
            raise InvalidInputError(f"strategy {name}: unknown option {shown(option)}; {hint}")
        options[option] = _value(value)
    return factory(space, seed=seed, sampling=sampling, centre=centre, **options)


def _value(text: str) -> Value:
    if re.fullmatch(r"[-+]?[0-9]{1,15}", text):
        return int(text)
    return float(text) if re.fullmatch(NUMBER, text) else text
