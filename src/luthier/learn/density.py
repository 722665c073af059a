"""A kernel density over rows of the unit cube, with numbers and categories, some of them unknown."""

import numpy as np

from luthier.arrays import BoolArray, FloatArray

_LEAST_WIDTH = 0.02  # of the unit interval, also where all rows are equal
_OTHER_CATEGORY = 0.1  # the chance that a draw has any category instead of that of its row


class KernelDensity:
    """A kernel around each row: a normal one on ordered columns, mostly the same category on the others.

    NaN in a row means unknown: uniform. `categories` is the number of values of each column that is not ordered. The
    width of each ordered column is by Scott's rule (1992).
    """

    def __init__(self, ordered: BoolArray, categories: FloatArray, rows: FloatArray) -> None:
        self._ordered, self._categories, self._rows = ordered, categories, rows
        self._known = np.isfinite(rows)
        counts = np.maximum(self._known.sum(axis=0), 1)
        mean = np.where(self._known, rows, 0.0).sum(axis=0) / counts
        spread = np.sqrt(np.where(self._known, (rows - mean) ** 2, 0.0).sum(axis=0) / counts)
        # Scott 1992: deviation times n^(-1 / (d + 4)).
        self._width = np.maximum(spread * len(rows) ** (-1.0 / (4.0 + len(ordered))), _LEAST_WIDTH)

    def sample(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw points of the unit cube."""
        at = rng.integers(len(self._rows), size=count)
        moved = self._rows[at] + self._width * rng.standard_normal((count, len(self._ordered)))
        moved = 1.0 - np.abs(1.0 - np.abs(moved) % 2.0)  # reflected at the borders
        uniform = rng.random(moved.shape)
        other = rng.random(moved.shape) < _OTHER_CATEGORY
        drawn = np.where(self._ordered, moved, np.where(other, uniform, self._rows[at]))
        return np.asarray(np.where(self._known[at], drawn, uniform), dtype=np.float64)

    def log_density(self, points: FloatArray) -> FloatArray:
        """The log density at points, relative to the uniform one (reflections are neglected)."""
        total = np.zeros((len(points), len(self._rows)))
        for column, is_ordered in enumerate(self._ordered):
            away = points[:, column, None] - self._rows[None, :, column]
            if is_ordered:
                z = away / self._width[column]
                part = -0.5 * z * z - np.log(self._width[column] * np.sqrt(2.0 * np.pi))
            else:
                # Relative to the uniform chance 1 / k: the row's category has 0.9 + 0.1 / k, any other 0.1 / k.
                same = np.log((1.0 - _OTHER_CATEGORY) * self._categories[column] + _OTHER_CATEGORY)
                part = np.where(np.abs(away) < 1e-9, same, np.log(_OTHER_CATEGORY))
            total += np.where(self._known[None, :, column], part, 0.0)
        top = total.max(axis=1)
        return np.asarray(top + np.log(np.mean(np.exp(total - top[:, None]), axis=1)), dtype=np.float64)
