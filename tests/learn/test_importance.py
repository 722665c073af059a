import numpy as np
import pytest

from luthier.arrays import FloatArray
from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.learn.importance import Swaps, averages, effects, with_uncertainty

ORDERED = np.array([True, True, True])


class Exactly(GaussianProcess):
    """A process that has learned the Ishigami function, whose effects are known in closed form."""

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        a, b, c = (np.pi * (2.0 * x - 1.0)).T
        return np.sin(a) + 7.0 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a), np.zeros(len(x))


def swaps(count: int, seed: int = 0) -> Swaps:
    rng = np.random.default_rng(seed)
    return Swaps(rng.random((count, 3)), rng.random((count, 3)), np.ones((3, count), dtype=np.bool_))


def test_effects_of_the_ishigami_function() -> None:
    total, first = effects(Exactly(ORDERED), swaps(100_000))
    # Ishigami & Homma 1990, with a = 7 and b = 0.1.
    np.testing.assert_allclose(total, [0.5576, 0.4424, 0.2437, 1.0], atol=0.02)
    np.testing.assert_allclose(first, [0.3139, 0.4424, 0.0, 1.0], atol=0.02)


def test_an_input_that_never_moves_alone_has_no_effect_and_the_rest_is_as_before() -> None:
    free = swaps(1_000)
    tied = Swaps(free.base, free.other, free.allowed & np.array([[True], [False], [True]]))
    process = Exactly(ORDERED)
    np.testing.assert_array_equal(effects(process, tied)[:, 1], 0.0)
    np.testing.assert_array_equal(effects(process, tied)[:, [0, 2]], effects(process, free)[:, [0, 2]])


def test_averages_by_group() -> None:
    points = np.random.default_rng(0).random((6, 3))
    mean, _ = Exactly(ORDERED).predict(points)
    found = averages(Exactly(ORDERED), points, np.array([0.0, 1.0, 1.0, 0.0, 0.0, 1.0]))
    np.testing.assert_allclose(found, [mean[[0, 3, 4]].mean(), mean[[1, 2, 5]].mean()])


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_intervals_hold_the_truth_and_shrink_with_data(noise: float) -> None:
    rng = np.random.default_rng(3)
    place = np.array([[0.3, 0.6, 0.5]])
    widths = []
    for count in (12, 80):
        x = rng.random((count, 3))
        y = 3.0 * x[:, 0] + np.sin(3.0 * x[:, 1]) + noise * rng.standard_normal(count)
        found = with_uncertainty(lambda p: p.predict(place)[0], Observations.single(x, y), ORDERED, rng)
        widths.append(float((found.high - found.low)[0]))
        truth = 0.9 + np.sin(1.8)
        assert found.low[0] - 0.1 <= truth <= found.high[0] + 0.1
        assert found.low[0] <= found.value[0] <= found.high[0]
    assert widths[1] < widths[0]


def test_a_constant_has_no_effects() -> None:
    rng = np.random.default_rng(0)
    process = GaussianProcess(ORDERED)
    process.fit(Observations.single(rng.random((9, 3)), np.full(9, 4.0)))
    np.testing.assert_array_equal(effects(process, swaps(100)), 0.0)
