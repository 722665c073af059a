"""Designs that cover every single parameter evenly."""

import numpy as np

from luthier.arrays import FloatArray
from luthier.designs.candidates import candidate_codes, completed, leaves_no_choice, squared_distances
from luthier.space import Space
from luthier.trial import Config

_MOST_TRIES = 100
_WORK = 2_000_000  # distances computed in all


def latin_hypercube(space: Space, count: int, rng: np.random.Generator) -> list[Config]:
    """Distinct valid configurations, spread evenly along each parameter (McKay et al. 1979).

    Points that fall together on the grid or break a constraint move to the nearest valid configuration that is free; a
    space with no more than `count` configurations is returned whole, in random order.
    """
    if leaves_no_choice(space, count):
        return space.sample(max(count, 0), rng)
    return completed(space, _valid(space, _latin_codes(space, count, rng), rng), count, rng)


def maximin_latin_hypercube(space: Space, count: int, rng: np.random.Generator) -> list[Config]:
    """The one of many Latin hypercubes whose two nearest points are farthest apart (Morris & Mitchell 1995).

    Of two with the same smallest distance, the one with fewer pairs at this distance is better.
    """
    if leaves_no_choice(space, count):
        return space.sample(max(count, 0), rng)
    tries = max(2, min(_MOST_TRIES, _WORK // count**2))
    designs = [latin_hypercube(space, count, rng) for _ in range(tries)]
    return max(designs, key=lambda design: _closeness(space, design))


def _closeness(space: Space, design: list[Config]) -> tuple[float, int]:
    units = space.to_unit(space.codes(design))
    squares = squared_distances(np.asarray(space.ordered), units, units)
    pairs = squares[np.triu_indices(len(units), 1)]
    if len(pairs) == 0:
        return 0.0, 0
    least = float(pairs.min())
    return round(least, 12), -int(np.sum(pairs < least + 1e-9))


def _latin_codes(space: Space, count: int, rng: np.random.Generator) -> FloatArray:
    strata = rng.permuted(np.tile(np.arange(count), (len(space.names), 1)), axis=1).T
    return space.from_unit((strata + rng.random(strata.shape)) / count)


def _valid(space: Space, codes: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Distinct valid rows: those of `codes` that are, and for each other one the nearest that is still free."""
    _, first = np.unique(codes, axis=0, return_index=True)
    stays = space.feasible(codes) & np.isin(np.arange(len(codes)), first)
    if stays.all():
        return codes
    candidates = rng.permutation(candidate_codes(space, rng))
    away = squared_distances(np.asarray(space.ordered), space.to_unit(codes[~stays]), space.to_unit(candidates))
    taken = set(map(tuple, codes[stays].tolist()))
    rows = [codes[stays]]
    for distances in away:
        for at in np.argsort(distances, kind="stable"):
            place = tuple(candidates[at].tolist())
            if place not in taken:
                taken.add(place)
                rows.append(candidates[at : at + 1])
                break
    return np.concatenate(rows)
