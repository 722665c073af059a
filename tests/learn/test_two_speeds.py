import numpy as np
import pytest

from luthier.arrays import FloatArray
from luthier.learn.two_speeds import expected_at_two_speeds

ORDERED = np.array([True, True])


def machine(
    seed: int, *, slow: float, often: float = 0.4, scatter: float = 0.03
) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
    """A smooth function of two columns: 40 points, their true places, and one or two runs of each, some slow."""
    rng = np.random.default_rng(seed)
    x = rng.random((40, 2))
    true = 2.0 * np.sum((x - 0.4) ** 2, axis=1)
    groups = []
    for at, place in enumerate(true):
        count = 2 if at % 5 == 0 else 1
        groups.append(place + scatter * rng.standard_normal(count) + slow * (rng.random(count) < often))
    return x, true, groups


def missed(true: FloatArray, values: FloatArray) -> float:
    """How far the lowest of `values` is from the best."""
    return float(true[np.argmin(values)] - true.min())


def test_tells_the_speed_of_the_machine_from_that_of_a_configuration() -> None:
    by_speeds, by_means, agreement = [], [], []
    for seed in range(10):
        x, true, groups = machine(seed, slow=0.5)
        expected = expected_at_two_speeds(x, groups, ORDERED)
        assert expected is not None
        agreement.append(np.corrcoef(expected, true)[0, 1])
        by_speeds.append(missed(true, expected))
        by_means.append(missed(true, np.array([group.mean() for group in groups])))
    assert np.mean(agreement) > 0.97
    assert np.mean(by_speeds) < 0.5 * np.mean(by_means)


def test_runs_that_are_too_fast_now_and_then_are_a_second_speed_as_well() -> None:
    """Where repeats show them; with eight configurations that ran twice they do not always."""
    by_speeds, by_luck = [], []
    for seed in range(8):
        x, true, groups = machine(seed, slow=-0.6, often=0.2)
        expected = expected_at_two_speeds(x, groups, ORDERED)
        if expected is not None:
            by_speeds.append(missed(true, expected))
            by_luck.append(missed(true, np.array([group.min() for group in groups])))
    assert len(by_speeds) >= 4
    assert np.mean(by_speeds) < 0.5 * np.mean(by_luck)


@pytest.mark.parametrize("scatter", [0.01, 0.1, 0.3])
def test_ordinary_noise_is_one_speed(scatter: float) -> None:
    found = [expected_at_two_speeds(*_without_truth(seed, scatter), ORDERED) for seed in range(20)]
    assert sum(each is not None for each in found) <= 1


def _without_truth(seed: int, scatter: float) -> tuple[FloatArray, list[FloatArray]]:
    x, _, groups = machine(seed, slow=0.0, scatter=scatter)
    return x, groups


def test_a_fast_region_is_no_fast_machine() -> None:
    """Two levels of the function itself: every configuration keeps to one of them, however often it runs."""
    rng = np.random.default_rng(1)
    x = rng.random((40, 2))
    true = np.where(rng.random(40) < 0.2, 0.0, 2.0)
    groups = [place + 0.02 * rng.standard_normal(3 if at % 4 == 0 else 1) for at, place in enumerate(true)]
    assert expected_at_two_speeds(x, groups, ORDERED) is None


def test_too_many_configurations_are_left_alone() -> None:
    x = np.random.default_rng(1).random((301, 2))
    assert expected_at_two_speeds(x, [np.array([0.0, 1.0])] * 301, ORDERED) is None


@pytest.mark.parametrize("groups", [[[1.0, 1.0]], [[1.0, 2.0]], [[1.0], [1.0], [1.0, 1.0]], [[0.0, 5.0], [5.0, 0.0]]])
def test_a_few_runs_show_nothing(groups: list[list[float]]) -> None:
    x = np.linspace(0.0, 1.0, 2 * len(groups)).reshape(-1, 2)
    assert expected_at_two_speeds(x, [np.array(group) for group in groups], ORDERED) is None
