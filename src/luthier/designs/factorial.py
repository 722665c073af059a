"""Designs on a few levels of every parameter."""

import math
from collections.abc import Sequence

import numpy as np

from luthier.arrays import FloatArray, IntArray
from luthier.designs.candidates import MOST_CANDIDATES, completed, distinct, leaves_no_choice
from luthier.space import Parameter, Space
from luthier.trial import Config


def factorial(space: Space, count: int, rng: np.random.Generator) -> list[Config]:
    """Combinations of levels: the two ends of every parameter, then evenly spaced values between as `count` grows.

    The levels are as few as give `count` valid combinations. Where they give more, a balanced fraction is taken: every
    level of a parameter equally often, and combinations that differ in many parameters. If constraints leave too few
    combinations, random configurations are added.
    """
    if leaves_no_choice(space, count):
        return space.sample(max(count, 0), rng)
    order = [rng.permutation(parameter.size or 0) for parameter in space.parameters]
    levels = [_most(parameter, 2) for parameter in space.parameters]
    while True:
        values = list(map(_values, space.parameters, levels, order))
        codes = _valid_combinations(space, values, rng)
        if len(codes) >= count or math.prod(levels) > MOST_CANDIDATES or not _add_level(space, levels):
            break
    return completed(space, _balanced_fraction(codes, count, rng), count, rng)


def _most(parameter: Parameter, wanted: int) -> int:
    return wanted if parameter.size is None else min(parameter.size, wanted)


def _add_level(space: Space, levels: list[int]) -> bool:
    """Give one level more to the parameter that has fewest; False if none has more."""
    open_axes = [
        axis for axis, parameter in enumerate(space.parameters) if _most(parameter, levels[axis] + 1) > levels[axis]
    ]
    if not open_axes:
        return False
    levels[min(open_axes, key=levels.__getitem__)] += 1
    return True


def _values(parameter: Parameter, levels: int, order: IntArray) -> FloatArray:
    """The codes of `levels` levels: evenly spaced from end to end, or some of the categories."""
    if not parameter.ordered:
        return np.sort(order[:levels]).astype(np.float64)
    if parameter.size is None:
        return parameter.from_unit(np.linspace(0.0, 1.0, levels))
    return np.round(np.linspace(0.0, parameter.size - 1.0, levels))


def _valid_combinations(space: Space, values: Sequence[FloatArray], rng: np.random.Generator) -> FloatArray:
    """Every valid combination in random order; of very many, a sample."""
    sizes = [len(axis) for axis in values]
    total = math.prod(sizes)
    if total <= MOST_CANDIDATES:
        picks = np.stack(np.unravel_index(rng.permutation(total), sizes), axis=1)
    else:
        picks = rng.integers(0, sizes, (MOST_CANDIDATES, len(sizes)))
    codes = np.stack([axis[picks[:, column]] for column, axis in enumerate(values)], axis=1)
    return distinct(codes[space.feasible(codes)])


def _balanced_fraction(codes: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """Pick rows one by one: those with the levels used least so far, then those least like the rows picked."""
    if len(codes) <= count:
        return codes
    codes = codes[rng.permutation(len(codes))]
    ranks = np.stack([np.unique(column, return_inverse=True)[1] for column in codes.T], axis=1)
    used = [np.zeros(int(column.max()) + 1) for column in ranks.T]
    alike = np.zeros(len(codes))  # the most levels in common with one picked row
    free = np.ones(len(codes), dtype=np.bool_)
    picked: list[int] = []
    while len(picked) < count:
        wear = np.sum([axis[ranks[:, column]] for column, axis in enumerate(used)], axis=0)
        cost = np.where(free, wear + alike / (ranks.shape[1] + 1.0), np.inf)
        picked.append(int(np.argmin(cost)))
        row = ranks[picked[-1]]
        free[picked[-1]] = False
        alike = np.maximum(alike, np.sum(ranks == row, axis=1))
        for column, axis in enumerate(used):
            axis[row[column]] += 1.0
    rows: FloatArray = codes[picked]
    return rows
