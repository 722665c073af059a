import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.arrays import FloatArray
from luthier.learn.evidence import LogEvidence, weak_prior
from luthier.learn.gaussian_process import FixedPoints, GaussianProcess, Observations
from luthier.learn.kernels import Family, Hyperparameters, Kernel
from luthier.learn.linear import cholesky
from luthier.learn.points import PointSet

MIXED = np.array([True, False, True, True, False])


def points(count: int, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    x = rng.random((count, len(MIXED)))
    x[:, ~MIXED] = (rng.integers(0, 3, (count, 2)) + 0.5) / 3
    return x


def bowl(x: FloatArray) -> FloatArray:
    return 3.0 + (x[:, 0] - 0.3) ** 2 + 0.5 * (x[:, 2] - 0.6) ** 2 + 0.3 * (x[:, 1] > 0.5)


@pytest.mark.parametrize("family", ["matern52", "matern32", "rbf", "laplace"])
def test_gradient_matches_differences(family: Family) -> None:
    rng = np.random.default_rng(3)
    x = points(14, seed=1)
    evidence = LogEvidence(Kernel(MIXED, family), x, rng.standard_normal(14), rng.random(14), 0.1 * rng.random(14))
    vector = weak_prior(Kernel(MIXED, family)).centre + 0.3 * rng.standard_normal(2 + len(MIXED))
    _, gradient = evidence(vector)
    steps = 1e-6 * np.eye(len(vector))
    differences = [(evidence(vector + step)[0] - evidence(vector - step)[0]) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-6)


def test_laplace_correlation_by_its_definition() -> None:
    x, z = points(6, seed=1), points(4, seed=2)
    hyper = Hyperparameters(1.0, 0.1, np.array([4.0, 0.7, 0.5, 9.0, 0.2]))
    gaps = x[:, None] - z[None, :]
    distances = np.where(MIXED, np.abs(gaps), gaps != 0.0)
    expected = np.exp(-np.sum(hyper.rates * distances, axis=2))
    np.testing.assert_allclose(Kernel(MIXED, "laplace").correlation(hyper, x, z), expected, rtol=1e-9)


@pytest.mark.parametrize("family", ["matern52", "laplace"])
def test_correlation_with_a_grid_is_that_with_each_of_its_points(family: Family) -> None:
    x, hyper = points(7, seed=1), Hyperparameters(1.0, 0.1, np.array([4.0, 0.7, 0.5, 9.0, 0.2]))
    grid = (np.indices((9, 3, 8, 5, 3)).reshape(5, -1).T + 0.5) / (9, 3, 8, 5, 3)
    grid[:, 3] += 1e-3 * np.random.default_rng(2).random(len(grid))  # a column without repeats among those with
    kernel = Kernel(MIXED, family)
    single = np.concatenate([kernel.correlation(hyper, x, grid[[row]]) for row in range(len(grid))], axis=1)
    np.testing.assert_allclose(kernel.correlation(hyper, x, PointSet(grid)), single, rtol=1e-12)
    grid[:, 3] = 0.5
    single = np.concatenate([kernel.correlation(hyper, x, grid[[row]]) for row in range(len(grid))], axis=1)
    np.testing.assert_allclose(kernel.correlation(hyper, x, PointSet(grid)), single, rtol=1e-12)


@pytest.mark.parametrize("family", ["matern52", "matern32", "rbf"])
def test_correlation_by_its_definition(family: Family) -> None:
    x, z = points(6, seed=1), points(4, seed=2)
    hyper = Hyperparameters(1.0, 0.1, np.array([4.0, 0.7, 0.5, 9.0, 0.2]))
    squares = np.sum(hyper.rates[MIXED] * (x[:, None, MIXED] - z[None, :, MIXED]) ** 2, axis=2)
    decay = np.exp(-np.sum(hyper.rates[~MIXED] * (x[:, None, ~MIXED] != z[None, :, ~MIXED]), axis=2))
    r = np.sqrt(squares)
    smooth = {
        "matern52": (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r),
        "matern32": (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
        "rbf": np.exp(-(r**2) / 2),
    }[family]
    np.testing.assert_allclose(Kernel(MIXED, family).correlation(hyper, x, z), smooth * decay, rtol=1e-7, atol=1e-9)


def by_the_book(process: GaussianProcess, x: FloatArray, y: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rasmussen & Williams 2006, eq. 2.25 and 2.26, on standardised targets."""
    hyper, offset, spread = process.hyper, np.mean(y), np.std(y)
    correlation = process.kernel.correlation
    inverse = np.linalg.inv(hyper.signal * correlation(hyper, x, x) + hyper.noise * np.eye(len(x)))
    cross = hyper.signal * correlation(hyper, z, x)
    target = (y - offset) / spread
    mean = float(inverse.sum(axis=0) @ target) / (float(inverse.sum()) + 1.0)
    predicted = mean + cross @ inverse @ (target - mean)
    variance = hyper.signal - np.einsum("ij,jk,ik->i", cross, inverse, cross)
    return offset + spread * predicted, spread * np.sqrt(variance)


def test_predictions_by_the_book() -> None:
    x, z = points(25, seed=1), points(50, seed=2)
    y = bowl(x)
    process = GaussianProcess(MIXED)
    process.fit(Observations.single(x, y))
    mean, deviation = process.predict(z)
    expected_mean, expected_deviation = by_the_book(process, x, y, z)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-6)
    np.testing.assert_allclose(deviation, expected_deviation, rtol=1e-4, atol=1e-7)


def test_predicts_a_bowl_and_knows_how_well() -> None:
    x, z = points(60, seed=1), points(200, seed=2)
    noisy = bowl(x) + 0.01 * np.random.default_rng(5).standard_normal(60)
    process = GaussianProcess(MIXED)
    process.fit(Observations.single(x, noisy))
    mean, deviation = process.predict(z)
    error = mean - bowl(z)
    assert np.sqrt(np.mean(error**2)) < 0.15 * np.std(bowl(z))
    assert np.mean(np.abs(error) < 2 * deviation) > 0.85
    assert 0.003 < np.sqrt(process.hyper.noise) * np.std(noisy) < 0.03


def test_growing_row_by_row_equals_starting_over() -> None:
    x, grid = points(40, seed=1), points(30, seed=2)
    y = bowl(x)
    process, watched = GaussianProcess(MIXED), FixedPoints(PointSet(grid))
    process.fit(Observations.single(x[:37], y[:37]))
    for count in range(37, 41):
        process.condition(Observations.single(x[:count], y[:count]))
        grown = watched.predict_standard(process)
    hyper = process.hyper
    process._forget_all()
    process.condition(Observations.single(x, y))
    assert process.hyper is hyper
    over = FixedPoints(PointSet(grid)).predict_standard(process)
    np.testing.assert_allclose(grown[0], over[0], atol=1e-8)
    np.testing.assert_allclose(grown[1], over[1], atol=1e-8)


def test_a_changed_observation_is_noticed() -> None:
    x, grid = points(30, seed=1), points(30, seed=2)
    process, watched = GaussianProcess(MIXED), FixedPoints(PointSet(grid))
    process.fit(Observations.single(x, bowl(x)))
    before = watched.predict_standard(process)
    share = np.ones(30)
    share[12] = 0.01
    process.condition(Observations(x, bowl(x), share, np.zeros(30)))
    after, fresh = watched.predict_standard(process), FixedPoints(PointSet(grid)).predict_standard(process)
    np.testing.assert_allclose(after[0], fresh[0], atol=1e-9)
    assert np.any(after[1] < before[1] - 1e-6)


def test_what_is_assumed_leaves_the_mean_and_is_taken_back() -> None:
    x, grid = points(20, seed=1), points(30, seed=2)
    process, watched = GaussianProcess(MIXED), FixedPoints(PointSet(grid))
    process.fit(Observations.single(x, bowl(x)))
    mean, deviation = watched.predict_standard(process)
    process.assume(grid[:2])
    assumed_mean, assumed_deviation = watched.predict_standard(process)
    np.testing.assert_allclose(assumed_mean, mean, atol=1e-9)
    assert np.all(assumed_deviation[:2] < 0.9 * deviation[:2])
    process.forget_assumed()
    process.assume(grid[5:6])
    process.forget_assumed()
    again = watched.predict_standard(process)
    np.testing.assert_array_equal(again[0], mean)
    np.testing.assert_array_equal(again[1], deviation)


def test_leave_one_out_by_leaving_out() -> None:
    x = points(15, seed=4)
    y = bowl(x) * 100.0
    process = GaussianProcess(MIXED)
    process.fit(Observations.single(x, y))
    hyper, mean, spread = process.hyper, process.mean, np.std(y)
    target = (y - np.mean(y)) / spread
    full = hyper.signal * process.kernel.correlation(hyper, x, x) + hyper.noise * np.eye(15)
    total = 0.0
    for left in range(15):
        kept = np.arange(15) != left
        weights = np.linalg.solve(full[np.ix_(kept, kept)], full[kept, left])
        predicted = mean + weights @ (target[kept] - mean)
        variance = full[left, left] - weights @ full[kept, left]
        total += -0.5 * (target[left] - predicted) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance) - np.log(spread)
    assert process.leave_one_out_log_density() == pytest.approx(total, rel=1e-6)


def test_five_points_in_ten_dimensions_stay_sober() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((5, 10))
    process = GaussianProcess(np.ones(10, dtype=np.bool_))
    process.fit(Observations.single(x, rng.standard_normal(5)))
    mean, deviation = process.predict(rng.random((100, 10)))
    assert np.all(np.abs(mean) < 3.0)
    assert np.all(deviation > 0.05)


@pytest.mark.parametrize("value", [0.0, -3.5, 1e300, 1e-300])
def test_equal_targets(value: float) -> None:
    x = points(8, seed=1)
    process = GaussianProcess(MIXED)
    for count in range(1, 9):
        process.fit(Observations.single(x[:count], np.full(count, value)))
        mean, deviation = process.predict(points(5, seed=2))
        np.testing.assert_allclose(mean, value)
        assert np.all(deviation > 0.0)


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=8), st.integers(0, 3))
@settings(max_examples=25, deadline=None)
def test_any_finite_targets(targets: list[float], twins: int) -> None:
    y = np.array([*targets, *targets[:twins]])
    x = points(len(targets), seed=1)
    x = np.concatenate((x, x[:twins]))
    process = GaussianProcess(MIXED)
    for count in range(1, len(y) + 1, 3):
        process.fit(Observations.single(x[:count], y[:count]))
    process.fit(Observations.single(x, y))
    mean, deviation = process.predict_standard(points(5, seed=2))
    assert np.all(np.isfinite(mean))
    assert np.all(deviation > 0.0)


def test_repeats_are_trusted_more_and_errors_less() -> None:
    x = np.array([[0.2, 0.5, 0.5, 0.5, 0.5], [0.2, 0.5, 0.5, 0.5, 0.5], [0.9, 0.5, 0.5, 0.5, 0.5]])
    y = np.array([0.0, 1.0, 3.0])
    process = GaussianProcess(MIXED)
    process.hyper = Hyperparameters(1.0, 0.1, process.hyper.rates)
    process.condition(Observations(x, y, np.array([1.0, 0.01, 1.0]), np.zeros(3)))
    trusting_second = process.predict(x[:1])[0][0]
    process._forget_all()
    process.condition(Observations(x, y, np.ones(3), np.array([0.0, 3.0, 0.0])))
    doubting_second = process.predict(x[:1])[0][0]
    assert doubting_second < 0.4 < 0.8 < trusting_second


def test_jitter_saves_a_singular_matrix_and_nothing_saves_a_wrong_one() -> None:
    lower = cholesky(np.ones((4, 4)))
    np.testing.assert_allclose(lower @ lower.T, np.ones((4, 4)), atol=1e-6)
    with pytest.raises(np.linalg.LinAlgError):
        cholesky(-np.eye(3))


def test_a_new_fit_depends_on_the_data_alone() -> None:
    x, grid = points(180, seed=1), points(30, seed=2)
    data = Observations.single(x, bowl(x))
    fresh, used = GaussianProcess(MIXED), GaussianProcess(MIXED)
    fresh.fit(data, from_prior=True)
    used.fit(Observations.single(x[:20], np.arange(20.0)))
    used.fit(data, from_prior=True)
    np.testing.assert_array_equal(used.hyper.to_log(), fresh.hyper.to_log())
    np.testing.assert_array_equal(used.predict(grid), fresh.predict(grid))
    used.fit(Observations.single(x, np.ones(180)), from_prior=True)
    np.testing.assert_array_equal(used.hyper.to_log(), GaussianProcess(MIXED).hyper.to_log())


@pytest.mark.parametrize("steps", [(1,), (3, 1, 9), (40,)])
def test_predictions_are_the_same_to_the_last_bit_however_the_data_arrived(steps: tuple[int, ...]) -> None:
    x, grid = points(75, seed=1), points(40, seed=2)
    share = np.where(np.arange(75) == 21, 0.3, 1.0)
    data = Observations(x, bowl(x), share, np.zeros(75))
    slow, watched = GaussianProcess(MIXED), FixedPoints(PointSet(grid))
    slow.fit(Observations.single(x[:30], bowl(x[:30])))
    known, turn = 30, 0
    while known < 75:
        known, turn = min(known + steps[turn % len(steps)], 75), turn + 1
        slow.condition(Observations.single(x[:known], bowl(x[:known])))
        slow.assume(grid[:2])
        watched.predict(slow)
    slow.condition(data)
    fast = GaussianProcess(MIXED)
    fast.fit(Observations.single(x[:30], bowl(x[:30])))
    fast.condition(data)
    for process in (slow, fast):
        process.assume(grid[3:5])
    np.testing.assert_array_equal(watched.predict(slow), FixedPoints(PointSet(grid)).predict(fast))


def test_targets_far_from_those_of_the_fit_have_a_scale_of_their_own() -> None:
    x = points(40, seed=1)
    process = GaussianProcess(MIXED)
    process.fit(Observations.single(x[:30], 5.0 + 1e-3 * bowl(x[:30])))
    process.condition(Observations.single(x, 5.0 + 1e3 * bowl(x)))
    assert np.abs(process.predict_standard(x)[0]).max() < 5.0


def test_taking_off_errors_leaves_the_nugget_in() -> None:
    x = points(12, seed=1)
    process = GaussianProcess(MIXED)
    process.hyper = Hyperparameters(1.0, 0.3, process.hyper.rates)
    y = np.sin(5.0 * x[:, 0]) + x[:, 1]
    data = Observations(x, y, np.ones(12), np.linspace(0.0, 0.5, 12))
    process.condition(data)
    mean, deviation = process.without_error(data)
    function = process.kernel.correlation(process.hyper, x, x) + 0.3 * np.eye(12)
    gain = function @ np.linalg.inv(function + np.diag(data.error**2))
    np.testing.assert_allclose(mean, process.mean + gain @ (y - process.mean), atol=1e-9)
    np.testing.assert_allclose(deviation**2, np.diagonal(function - gain @ function), atol=1e-7)
    assert mean[0] == pytest.approx(y[0])
    assert deviation[0] == pytest.approx(0.0)
