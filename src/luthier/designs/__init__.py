"""Initial designs: the configurations a search measures first."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from luthier.designs.factorial import factorial
from luthier.designs.latin_hypercube import latin_hypercube, maximin_latin_hypercube
from luthier.designs.minimax import minimax
from luthier.designs.statistical import d_optimal, i_optimal

if TYPE_CHECKING:
    import numpy as np

    from luthier.space import Space
    from luthier.trial import Config

Design: TypeAlias = "Callable[[Space, int, np.random.Generator], list[Config]]"
"""Chooses up to `count` distinct valid configurations; all of the space if it has no more."""


def random_design(space: "Space", count: int, rng: "np.random.Generator") -> "list[Config]":
    """Distinct valid configurations drawn uniformly; all of the space if it has no more than `count`."""
    return space.sample(count, rng)


DESIGNS: Mapping[str, Design] = {
    "d-optimal": d_optimal,
    "factorial": factorial,
    "i-optimal": i_optimal,
    "latin-hypercube": latin_hypercube,
    "maximin-lhd": maximin_latin_hypercube,
    "minimax": minimax,
    "random": random_design,
}

__all__ = [
    "DESIGNS",
    "Design",
    "d_optimal",
    "factorial",
    "i_optimal",
    "latin_hypercube",
    "maximin_latin_hypercube",
    "minimax",
    "random_design",
]
