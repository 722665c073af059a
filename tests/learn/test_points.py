from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from luthier.arrays import FloatArray
from luthier.learn.points import PointSet


def grid(*sizes: int) -> FloatArray:
    rows = np.array(list(product(*((np.arange(size) + 0.5) / size for size in sizes))))
    return np.asarray(np.random.default_rng(0).permutation(rows), dtype=np.float64)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.data())
def test_parts_spread_to_the_points_themselves(sizes: list[int], data: st.DataObject) -> None:
    rows = grid(*sizes)
    kept = data.draw(st.integers(1, len(rows)), label="how many of the grid are there")
    points = PointSet(rows[:kept])
    columns = data.draw(st.lists(st.integers(0, len(sizes) - 1), unique=True, min_size=1), label="columns")
    parts = points.parts(*columns)
    for part in (points.part(*columns), *parts):
        np.testing.assert_array_equal(part.spread(part.rows.T).T, points.rows[:, part.columns])
    assert sorted(column for part in parts for column in part.columns) == sorted(columns)


def test_a_grid_needs_few_tables() -> None:
    points = PointSet(grid(25, 20, 5, 2))
    assert len(points.part(0, 1, 2).rows) == 2_500
    assert [part.columns.tolist() for part in points.parts(0, 1, 2, 3)] == [[0, 1], [2, 3]]
    assert [len(part.rows) for part in points.parts(0, 1, 2, 3)] == [500, 10]


def test_what_hardly_repeats_stays_as_it_is() -> None:
    rows = np.random.default_rng(1).random((600, 3))
    rows[:, 1] = np.round(rows[:, 1], 1)
    parts = PointSet(rows).parts(0, 1, 2)
    assert [(part.columns.tolist(), part.which is None) for part in parts] == [([0, 2], True), ([1], False)]


def test_few_points_are_not_looked_through() -> None:
    assert PointSet(np.zeros((20, 2))).part(0, 1).which is None
