"""Initial designs: where a search looks before it has learnt anything."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from luthier.designs.latin_hypercube import latin_hypercube
from luthier.designs.uniform import random_design

if TYPE_CHECKING:
    import numpy as np

    from luthier.space import Space
    from luthier.trial import Config

Design: TypeAlias = "Callable[[Space, int, np.random.Generator], list[Config]]"
"""Chooses up to `count` distinct valid configurations; all there are when the space has no more."""

DESIGNS: Mapping[str, Design] = {"latin-hypercube": latin_hypercube, "random": random_design}

__all__ = ["DESIGNS", "Design", "latin_hypercube", "random_design"]
