"""The design that has a point near every configuration."""

import numpy as np

from luthier.arrays import BoolArray, FloatArray, IntArray
from luthier.designs.candidates import (
    MOST_CHOSEN,
    candidate_codes,
    completed,
    leaves_no_choice,
    squared_distances,
)
from luthier.space import Space
from luthier.trial import Config

_ROUNDS = 10
_STARTS = (3, 30)
_WORK = 300_000  # distances for which as many starts as possible are made
_CENTRES = 64  # members of a cluster that are tried as its centre


def minimax(space: Space, count: int, rng: np.random.Generator) -> list[Config]:
    """Minimises the largest distance from a configuration to the design (Johnson et al. 1990, definition 1).

    From several starts, one of them by the farthest-point rule, which is within a factor of two of the best (Gonzalez
    1985), each point moves to the middle of those nearest to it as long as that helps. For a large space
    a sample is used.
    """
    if leaves_no_choice(space, count):
        return space.sample(max(count, 0), rng)
    codes = candidate_codes(space, rng)
    units, ordered = space.to_unit(codes), np.asarray(space.ordered)
    number = min(count, MOST_CHOSEN, len(units))
    starts = [_farthest_points(units, ordered, number, rng)]
    tries = np.clip(_WORK // (number * len(units)), *_STARTS)
    starts += [rng.permutation(len(units))[:number] for _ in range(tries)]
    settled = [_settled(units, ordered, start) for start in starts]
    _, chosen = min(settled, key=lambda found: found[0])
    return completed(space, codes[chosen], count, rng)


def _settled(units: FloatArray, ordered: BoolArray, chosen: IntArray) -> tuple[tuple[float, float], IntArray]:
    """Move the chosen points as long as that brings the farthest nearer, or all on average; how near, and where."""
    near = _nearness(units, ordered, chosen)
    for _ in range(_ROUNDS):
        moved = _centred(units, ordered, chosen)
        nearer = _nearness(units, ordered, moved)
        if nearer >= near or len(np.unique(moved)) < len(moved):
            break
        chosen, near = moved, nearer
    return near, chosen


def _nearness(units: FloatArray, ordered: BoolArray, chosen: IntArray) -> tuple[float, float]:
    squares = squared_distances(ordered, units[chosen], units).min(axis=0)
    return round(float(squares.max()), 9), round(float(squares.mean()), 9)


def _farthest_points(units: FloatArray, ordered: BoolArray, count: int, rng: np.random.Generator) -> IntArray:
    nearest = np.full(len(units), np.inf)
    chosen = [int(rng.integers(len(units)))]
    while True:
        nearest = np.minimum(nearest, squared_distances(ordered, units[chosen[-1:]], units)[0])
        if len(chosen) == count:
            return np.array(chosen, dtype=np.intp)
        chosen.append(int(np.argmax(nearest)))


def _centred(units: FloatArray, ordered: BoolArray, chosen: IntArray) -> IntArray:
    """For each chosen point the candidate that is nearest to the farthest of those it covers."""
    owner = squared_distances(ordered, units[chosen], units).argmin(axis=0)
    centres = chosen.copy()
    for which in range(len(chosen)):
        members = np.flatnonzero(owner == which)
        covered = units[members]
        middle = _middle(covered, ordered)
        central = members[np.argsort(squared_distances(ordered, middle[None, :], covered)[0], kind="stable")[:_CENTRES]]
        farthest = squared_distances(ordered, units[central], covered).max(axis=1)
        centres[which] = central[np.argmin(farthest)]
    return centres


def _middle(points: FloatArray, ordered: BoolArray) -> FloatArray:
    """Halfway between the ends of every axis; the category that occurs most."""
    middle: FloatArray = 0.5 * (points.min(axis=0) + points.max(axis=0))
    for column in np.flatnonzero(~ordered):
        categories, counts = np.unique(points[:, column], return_counts=True)
        middle[column] = categories[np.argmax(counts)]
    return middle
