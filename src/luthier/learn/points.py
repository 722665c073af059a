"""Points that models predict many times, and what repeats among them: a column of a grid has few values."""

from dataclasses import dataclass

import numpy as np

from luthier.arrays import FloatArray, IntArray

_MANY = 500  # with fewer points it does not pay to look for equal ones
_REPEATS = 2  # points that must share a combination, on average, for a table of combinations to pay
_SMALL = 8  # columns are joined in one table while each combination has this many points on average


@dataclass(frozen=True, slots=True)
class ColumnsOfPoints:
    """Some columns of many points: `rows` has each of their combinations once, and point i has that at `which[i]`.

    Where combinations hardly repeat, `rows` are those of all points in order, and `which` is None.
    """

    columns: IntArray
    rows: FloatArray
    which: IntArray | None

    def spread(self, values: FloatArray) -> FloatArray:
        """Give `values`, which have a column for each of `rows`, a column for each point."""
        return values if self.which is None else values.take(self.which, axis=1)


class PointSet:
    """Rows of the unit cube; equal ones are searched for once."""

    def __init__(self, rows: FloatArray) -> None:
        self.rows = rows
        self._part: dict[tuple[int, ...], ColumnsOfPoints] = {}
        self._parts: dict[tuple[int, ...], list[ColumnsOfPoints]] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, *columns: int) -> ColumnsOfPoints:
        """All of `columns` as one part."""
        if columns not in self._part:
            self._part[columns] = self._find(columns)
        return self._part[columns]

    def parts(self, *columns: int) -> list[ColumnsOfPoints]:
        """The columns in a few parts with few combinations each; those that hardly repeat make up one of their own."""
        if columns not in self._parts:
            alone = [column for column in columns if self.part(column).which is None]
            found = [self.part(*alone)] if alone else []
            joined: ColumnsOfPoints | None = None
            for column in columns:
                if column not in alone:
                    joined = self._join(found, joined, column)
            self._parts[columns] = found if joined is None else [*found, joined]
        return self._parts[columns]

    def _join(self, found: list[ColumnsOfPoints], joined: ColumnsOfPoints | None, column: int) -> ColumnsOfPoints:
        """`joined` with one more column; if that is too large, `joined` is `found` and another part begins."""
        if joined is None:
            return self.part(column)
        larger = self.part(*joined.columns.tolist(), column)
        # Joined columns save a pass over the points as long as their table of combinations stays small.
        if _SMALL * len(larger.rows) <= len(self):
            return larger
        found.append(joined)
        return self.part(column)

    def _find(self, columns: tuple[int, ...]) -> ColumnsOfPoints:
        own, chosen = np.array(columns, dtype=np.intp), self.rows[:, columns]
        if len(self) < _MANY:
            return ColumnsOfPoints(own, chosen, None)
        which, first = np.zeros(len(self), dtype=np.intp), np.zeros(1, dtype=np.intp)
        for column in chosen.T:
            _, place = np.unique(column, return_inverse=True)
            # A combination as one number: those found so far, in the base of the number of points, plus the new column.
            _, first, which = np.unique(which * len(self) + place, return_index=True, return_inverse=True)
            if _REPEATS * len(first) > len(self):
                return ColumnsOfPoints(own, chosen, None)
        return ColumnsOfPoints(own, chosen[first], which)
