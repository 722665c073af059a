"""The simplest design: independent draws."""

import numpy as np

from luthier.space import Space
from luthier.trial import Config


def random_design(space: Space, count: int, rng: np.random.Generator) -> list[Config]:
    """Distinct valid configurations drawn uniformly; all of the space if it has no more than `count`."""
    return space.sample(count, rng)
