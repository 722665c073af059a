import numpy as np
import pytest

from luthier.arrays import FloatArray
from luthier.learn.forest import Forest
from luthier.learn.points import PointSet

MIXED = np.array([True, False, True])


def points(count: int, *, seed: int) -> FloatArray:
    x = np.random.default_rng(seed).random((count, 3))
    x[:, 1] = (np.floor(4 * x[:, 1]) + 0.5) / 4
    return x


def stairs(x: FloatArray) -> FloatArray:
    return np.asarray(2.0 * (x[:, 0] > 0.6) + 1.0 * (x[:, 1] == 0.375) + 0.1 * x[:, 2], dtype=np.float64)


def test_finds_steps_and_categories() -> None:
    x, z = points(200, seed=1), points(300, seed=2)
    forest = Forest(MIXED)
    forest.grow(x, stairs(x))
    mean, _ = forest.predict(forest.leaves(z))
    explained = 1.0 - np.mean((mean - stairs(z)) ** 2) / np.var(stairs(z))
    assert explained > 0.9


def test_without_observations_every_tree_is_a_leaf() -> None:
    forest = Forest(MIXED)
    mean, deviation = forest.predict(forest.leaves(points(5, seed=1)))
    assert mean.tolist() == [0.0] * 5
    assert deviation.tolist() == [0.0] * 5


def test_equal_targets_are_predicted_for_certain() -> None:
    x = points(20, seed=1)
    forest = Forest(MIXED)
    forest.grow(x, np.full(20, 3.0))
    mean, deviation = forest.predict(forest.leaves(points(7, seed=2)))
    np.testing.assert_allclose(mean, 3.0)
    np.testing.assert_allclose(deviation, 0.0, atol=1e-6)


def test_deviation_by_the_law_of_total_variance() -> None:
    x = np.repeat(points(10, seed=1), 5, axis=0)
    y = np.random.default_rng(3).standard_normal(50)  # the same points again and again: leaves keep their spread
    forest = Forest(MIXED)
    forest.grow(x, y)
    leaves = forest.leaves(x[:1])[:, 0]
    means, variances = forest._mean[leaves], forest._variance[leaves]
    _, deviation = forest.predict(leaves[:, None])
    assert variances.mean() > 0.1
    assert deviation[0] ** 2 == pytest.approx(means.var() + variances.mean())


def test_what_is_added_falls_into_leaves_and_can_be_removed() -> None:
    x, z = points(100, seed=1), points(30, seed=2)
    y = stairs(x)
    forest = Forest(MIXED)
    forest.grow(x[:90], y[:90])
    generation, before = forest.generation, forest.predict(forest.leaves(z))
    forest.add(forest.leaves(x[90:95]), y[90:95] + 10.0)
    forest.add(forest.leaves(x[90:92]), y[90:92])
    assert forest.generation == generation
    assert forest.predict(forest.leaves(z))[0].max() > before[0].max()
    forest.remove_added()
    np.testing.assert_array_equal(forest.predict(forest.leaves(z)), before)
    forest.add(forest.known_leaves(x[90:95]), y[90:95])
    forest.add(forest.known_leaves(x[95:]), y[95:])
    added = forest.predict(forest.leaves(z))
    forest.fill(x, y)
    np.testing.assert_array_equal(forest.predict(forest.leaves(z)), added)


def test_what_fills_the_leaves_may_come_in_parts_and_in_between() -> None:
    x, z = points(100, seed=1), points(30, seed=2)
    y, first = stairs(x), np.r_[0:40, 45:90]
    predicted = []
    for parts in ([], [np.r_[0:40, 45:95], first[:20], first]):
        forest = Forest(MIXED)
        forest.grow(x[first], y[first] + 1.0)
        for rows in parts:
            forest.fill(x[rows], y[rows])
        forest.fill(x, y)
        predicted.append(forest.predict(forest.leaves(z)))
    np.testing.assert_array_equal(predicted[0], predicted[1])


def test_out_of_bag_predictions_have_not_seen_their_target() -> None:
    x = points(80, seed=1)
    noise = np.random.default_rng(2).standard_normal(80)
    forest = Forest(MIXED)
    forest.grow(x, noise)
    seen, _ = forest.predict(forest.leaves(x))
    unseen, deviation = forest.out_of_bag()
    assert np.corrcoef(seen, noise)[0, 1] > 0.7
    assert abs(np.corrcoef(unseen, noise)[0, 1]) < 0.4
    assert (deviation > 0.0).mean() > 0.9


@pytest.mark.parametrize("count", [1, 40, 150])  # the last one has trees with more leaves than a word has bits
def test_tables_of_values_lead_to_the_same_leaves(count: int) -> None:
    rng = np.random.default_rng(5)
    grid = (np.stack(np.meshgrid(*map(np.arange, (20, 4, 10)), indexing="ij"), axis=-1).reshape(-1, 3) + 0.5) / (
        20,
        4,
        10,
    )
    x = grid[rng.choice(len(grid), count, replace=False)]
    forest, points = Forest(MIXED), PointSet(grid)
    forest.grow(x, rng.standard_normal(count))
    values = [points.part(column) for column in range(3)]
    which = [part.which for part in values if part.which is not None]
    expected = forest.leaves(grid)
    np.testing.assert_array_equal(forest._leaves_by_tables([part.rows[:, 0] for part in values], which), expected)
    np.testing.assert_array_equal(forest.leaves_of(points), expected)


def test_points_without_repeats_are_led_through_the_trees() -> None:
    x, z = points(40, seed=1), points(700, seed=2)
    forest = Forest(MIXED)
    forest.grow(x, stairs(x))
    np.testing.assert_array_equal(forest.leaves_of(PointSet(z)), forest.leaves(z))
