"""The plainest design: independent draws."""

import numpy as np

from luthier.space import Space
from luthier.trial import Config


def random_design(space: Space, count: int, rng: np.random.Generator) -> list[Config]:
    """Distinct valid configurations drawn uniformly; all there are when the space has no more than `count`."""
    return space.sample(count, rng)
