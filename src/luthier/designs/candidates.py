"""The points a design is chosen from, and how far apart they are."""

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.space import Space
from luthier.trial import Config

MOST_CANDIDATES = 5_000
MOST_CHOSEN = 200  # points chosen by a criterion; more would cost much and gain little, and are drawn at random


def leaves_no_choice(space: Space, count: int) -> bool:
    """Whether a design of `count` points is the whole space, or empty."""
    return count <= 0 or (space.size is not None and space.size <= count)


def candidate_codes(space: Space, rng: np.random.Generator, most: int = MOST_CANDIDATES) -> FloatArray:
    """Codes of distinct valid configurations: all of a small space, else a sample."""
    if space.size is not None and space.size <= most:
        return space.grid()
    return distinct(space.sample_codes(most, rng))


def distinct(codes: FloatArray) -> FloatArray:
    """The rows without repeats, in order of first appearance."""
    _, first = np.unique(codes, axis=0, return_index=True)
    rows: FloatArray = codes[np.sort(first)]
    return rows


def completed(space: Space, codes: FloatArray, count: int, rng: np.random.Generator) -> list[Config]:
    """The configurations of distinct valid rows; random ones are added up to `count`."""
    chosen = space.configs(codes)[:count]
    if len(chosen) < count:
        chosen += space.sample(count - len(chosen), rng, exclude=chosen)
    return chosen


def squared_distances(ordered: BoolArray, points: FloatArray, others: FloatArray) -> FloatArray:
    """|x - z|² for all pairs of rows of the unit cube; two different categories are as far apart as two ends."""
    a, b = points[:, ordered], others[:, ordered]
    squares = (-2.0 * a) @ b.T
    squares += np.einsum("ij,ij->i", a, a)[:, None]
    squares += np.einsum("ij,ij->i", b, b)[None, :]
    np.maximum(squares, 0.0, out=squares)
    for column in np.flatnonzero(~ordered):
        squares += points[:, column, None] != others[None, :, column]
    return squares
