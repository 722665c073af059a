"""How far the runs of each configuration scatter around their mean."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from luthier.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Scatter:
    """The number of runs and the sum of their squared distances from the mean, of each group, and what all share.

    The `common` variance is the most probable one, the sum of squares over its degrees of freedom plus 2 (Gelman et al.
    2013, section 3.2): while repeats are few, it is rather too small, so that measurements are trusted.
    """

    counts: FloatArray
    squares: FloatArray
    common: float


def scatter_of(groups: Sequence[FloatArray]) -> Scatter:
    """The scatter of runs, a group of them for each configuration; a group of one has none."""
    counts = np.array([len(values) for values in groups], dtype=np.float64)
    squares = np.array([np.sum((values - values.mean()) ** 2) for values in groups])
    # Each group has one degree of freedom fewer than runs, as its mean is estimated.
    return Scatter(counts, squares, float(squares.sum()) / (float(counts.sum()) - len(counts) + 2.0))
