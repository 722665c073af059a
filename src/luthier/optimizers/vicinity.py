"""Moves on the grid: steps away from a configuration, and the nearest one that is still free.

A step goes to the next value of an ordered parameter. On an axis of more than `FINE` values, and on a continuous one,
single values are too close to matter: a step there has any length up to 1 / `FINE` of the axis. Categories have no
order: a step goes to any other category.
"""

from collections.abc import Sequence, Set

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.space import Parameter, Space
from luthier.trial import Config

FINE = 20
_TRIES = 32


def step(space: Space, codes: FloatArray, moved: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Rows of codes with the `moved` entries one step away; at the end of an axis the step goes the other way."""
    result = codes.copy()
    for column in np.flatnonzero(space.movable):
        rows = moved[:, column]
        if rows.any():
            result[rows, column] = _stepped(space.parameters[column], codes[rows, column], rng)
    return result


def _stepped(parameter: Parameter, codes: FloatArray, rng: np.random.Generator) -> FloatArray:
    size, count = parameter.size, len(codes)
    if size is None:
        unit = parameter.to_unit(codes)
        length = (1.0 - rng.random(count)) / FINE
        return parameter.from_unit(_turned(unit, length, 1.0, rng))
    if not parameter.ordered:
        # Any other category, with equal chances.
        return np.asarray((codes + rng.integers(1, size, count)) % size, dtype=np.float64)
    length = rng.integers(1, max(1, size // FINE) + 1, count).astype(np.float64)
    return _turned(codes, length, size - 1.0, rng)


def _turned(start: FloatArray, length: FloatArray, end: float, rng: np.random.Generator) -> FloatArray:
    """`start` moved up or down, or the other way where that leaves the range from 0 to `end`."""
    signed = np.where(rng.random(len(start)) < 0.5, -length, length)
    signed = np.where((start + signed < 0.0) | (start + signed > end), -signed, signed)
    return np.clip(start + signed, 0.0, end)


def walk(space: Space, codes: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """Valid results of `count` random steps from one row of codes, without those that changed nothing.

    Each ordered parameter goes down, stays or goes up (Robert 2022, figure 3.7), with equal chances if there are few.
    Of many parameters about two move at a time, and of categories one: to change all of them would be a large step.
    """
    ordered, movable = np.asarray(space.ordered), max(int(space.movable.sum()), 1)
    chance = np.where(ordered, min(2.0 / 3.0, 2.0 / movable), min(1.0 / 3.0, 1.0 / movable))
    moved = rng.random((count, len(ordered))) < chance
    rows = step(space, np.tile(codes, (count, 1)), moved, rng)
    valid: FloatArray = rows[np.any(rows != codes, axis=1) & space.feasible(rows)]
    return valid


def adjacent(space: Space, codes: FloatArray, columns: Sequence[int]) -> FloatArray:
    """Every valid row that differs from `codes` in one of `columns`, by one value up or down or in the category."""
    rows = []
    movable = space.movable
    for column in filter(movable.__getitem__, columns):
        for code in _adjacent_codes(space.parameters[column], float(codes[column])):
            row = codes.copy()
            row[column] = code
            rows.append(row)
    if not rows:
        return np.empty((0, len(codes)))
    near = np.stack(rows)
    return near[space.feasible(near)]


def _adjacent_codes(parameter: Parameter, code: float) -> list[float]:
    if parameter.size is None:
        unit = parameter.to_unit(np.array([code]))[0]
        ends = np.clip([unit - 0.2 / FINE, unit + 0.2 / FINE], 0.0, 1.0)
        return [float(end) for end in parameter.from_unit(ends) if end != code]
    codes = (code - 1.0, code + 1.0) if parameter.ordered else map(float, range(parameter.size))
    return [near for near in codes if 0.0 <= near < parameter.size and near != code]


def first_free(space: Space, rows: FloatArray, taken: Set[Config]) -> Config | None:
    """The first row, of valid ones, whose configuration is not taken."""
    return next((config for config in space.configs(rows) if config not in taken), None)


def nearest_free(space: Space, codes: FloatArray, taken: Set[Config], rng: np.random.Generator) -> Config | None:
    """A configuration one value away from `codes` that is not taken; else one a walk away; else any; else None."""
    near = adjacent(space, codes, range(len(codes)))
    found = first_free(space, near[rng.permutation(len(near))], taken)
    if found is None:
        found = first_free(space, walk(space, codes, _TRIES, rng), taken)
    if found is None:
        found = next(iter(space.sample(1, rng, exclude=taken)), None)
    return found
