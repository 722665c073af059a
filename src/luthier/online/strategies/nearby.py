"""What a strategy considers: configurations near those measured, as a running program must not get extreme ones."""

import numpy as np

from luthier.arrays import FloatArray
from luthier.optimizers.candidates import neighbourhood
from luthier.optimizers.vicinity import adjacent
from luthier.space import Space

_REACH = 0.2  # of a range: the largest step away from everything that was measured, or from the start
_DRAWN = 400  # points drawn around measured ones
_CENTRES = 6  # best points around which neighbours are drawn at random
_ADJACENT_CENTRES = 2  # best points of which all adjacent ones are taken
_RANK_CHANCE = 0.15  # the best point is a centre with this chance, the next one with this chance of the rest, ...
_MOVED = 0.6  # chance that an ordered parameter moves
_RECATEGORISED = 0.18  # chance that a category changes


def first_steps(space: Space, start: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Codes of valid points around the codes `start`: each parameter alone up and down, then several at once."""
    unit, ordered = space.to_unit(start[None, :])[0], space.ordered
    rows = []
    order = rng.permutation(len(unit))
    # Half of the parameters go up first: with few steps, both directions are seen.
    ways = np.where(np.arange(len(unit)) % 2 == 0, 1.0, -1.0)
    for sign in (1.0, -1.0):
        for axis, way in zip(order, ways * sign, strict=True):
            row = unit.copy()
            size = space.parameters[axis].size
            step = _REACH if size is None else max(_REACH, 1.0 / size)
            row[axis] = np.clip(unit[axis] + way * step, 0.0, 1.0) if ordered[axis] else rng.random()
            rows.append(row)
    box = np.tile(unit, (2 * len(unit), 1))
    rows.extend(_moved(space, box, _REACH, rng))
    codes = space.from_unit(np.array(rows))
    valid: FloatArray = codes[space.feasible(codes) & np.any(codes != start, axis=1)]
    return valid


def nearby(space: Space, units: FloatArray, mean: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Codes of valid points near those measured (rows of the unit cube), more of them near the best; each once."""
    order = np.argsort(mean, kind="stable")
    # Geometric: most points are drawn around the best ones, some around any.
    ranks = np.minimum(rng.geometric(_RANK_CHANCE, _DRAWN) - 1, len(order) - 1)
    drawn = space.from_unit(_moved(space, units[order[ranks]], _REACH, rng))
    best = space.from_unit(units[order[:_ADJACENT_CENTRES]])
    parts = [drawn[space.feasible(drawn)], neighbourhood(space, units[order[:_CENTRES]], rng)]
    parts += [adjacent(space, codes, range(len(space.names))) for codes in best]
    codes = np.unique(np.concatenate(parts), axis=0)
    # Neighbourhoods are made for other searches and contain wide steps; a running program takes short ones only.
    return codes[_distance(space, space.to_unit(codes), units) <= _REACH + 1e-9]


def _moved(space: Space, units: FloatArray, reach: float, rng: np.random.Generator) -> FloatArray:
    """The rows with some coordinates moved by `reach` at most, or by one value, and some categories changed."""
    ordered = space.ordered
    sizes = np.array([np.inf if parameter.size is None else parameter.size for parameter in space.parameters])
    steps = np.maximum(reach, 1.0 / sizes) * rng.uniform(-1.0, 1.0, units.shape)
    moves = rng.random(units.shape) < np.where(ordered, _MOVED, _RECATEGORISED)
    target = np.where(ordered, np.clip(units + steps, 0.0, 1.0), rng.random(units.shape))
    return np.where(moves, target, units)


def _distance(space: Space, units: FloatArray, measured: FloatArray) -> FloatArray:
    """By how much each point differs from the nearest one measured, in its most different ordered parameter.

    A step to the next value of a coarse parameter is always short enough.
    """
    distance = np.zeros((len(units), len(measured)))
    for column in np.flatnonzero(space.ordered):
        gap = np.abs(units[:, [column]] - measured[:, column])
        size = space.parameters[column].size
        if size is not None and size * _REACH < 1.0:
            gap = np.where(gap <= 1.0 / size + 1e-9, 0.0, gap)
        np.maximum(distance, gap, out=distance)
    return np.asarray(distance.min(axis=1), dtype=np.float64)
