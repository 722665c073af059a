"""Designs that cover every single parameter evenly."""

import numpy as np

from luthier.space import Space
from luthier.trial import Config


def latin_hypercube(space: Space, count: int, rng: np.random.Generator) -> list[Config]:
    """Distinct valid configurations, spread evenly along each parameter (McKay et al. 1979).

    Points that fall together on the grid or break a constraint are replaced by uniform draws; a space with no more than
    `count` configurations is returned whole, in random order.
    """
    if count <= 0 or (space.size is not None and space.size <= count):
        return space.sample(max(count, 0), rng)
    strata = rng.permuted(np.tile(np.arange(count), (len(space.names), 1)), axis=1).T
    codes = space.from_unit((strata + rng.random(strata.shape)) / count)
    valid = codes[space.feasible(codes)]
    _, first = np.unique(valid, axis=0, return_index=True)
    chosen = [space.decode(valid[row]) for row in np.sort(first)]
    if len(chosen) < count:
        chosen += space.sample(count - len(chosen), rng, exclude=chosen)
    return chosen
