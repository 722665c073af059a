import numpy as np
import pytest

from luthier.optimizers import make_optimizer
from luthier.optimizers.contract import measured
from luthier.optimizers.ensemble import Exploration, explains_nothing
from luthier.optimizers.surrogates import CachedPoints
from luthier.space import Integer, Space

BUSY = (1.0, 1.0, 1.27, 1.0, 1.08, 1.0, 1.0, 1.35)
"""What others add to a run now and then."""


@pytest.mark.parametrize("name", ["auto", "gp"])
def test_noise_on_a_plateau_is_not_taken_for_a_slope(name: str) -> None:
    """As with a prefetcher that seldom starts, one configuration in thirty is good and all others are alike."""
    space = Space(Integer("a", 2, 100, step=2, default=100), *(Integer(name, 0, 49) for name in "bcd"))
    found = 0
    for seed in range(30):
        search = make_optimizer(name, space, seed=seed)
        for run in range(20):
            (config,) = search.ask(1, [])
            if float(config["a"]) <= 0.15 * float(config["b"]):
                found += 1
                break
            search.tell([measured(config, 43.0 * BUSY[(run + seed) % len(BUSY)])])
    assert found >= 25  # random search finds it in 17 of 30 searches, models that follow the noise in 23 and 18


def test_predictions_must_beat_the_mean_by_more_than_chance() -> None:
    y = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    mean_of_others = (y.sum() - y) / 5.0
    assert explains_nothing(y, mean_of_others)
    assert explains_nothing(y, mean_of_others + 0.1 * (y - mean_of_others))
    assert not explains_nothing(y, mean_of_others + 0.5 * (y - mean_of_others))
    assert explains_nothing(np.ones(6), np.ones(6))
    assert explains_nothing(np.ones(1), np.zeros(1))


def test_the_farthest_point_and_any_are_the_most_promising_in_turns() -> None:
    exploration = Exploration(np.ones(2, dtype=np.bool_), seed=0)
    points = CachedPoints(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], *[[0.4, 0.5]] * 96]))
    exploration.learn(np.array([[0.1, 0.1], [0.9, 0.1], [0.0, 0.9], [0.5, 0.5]]))
    assert int(np.argmax(exploration.log_promise(points))) == 3
    exploration.assume(np.array([[1.0, 1.0]]))
    assert int(np.argmax(exploration.log_promise(points))) > 3  # one of the hundred
    exploration.assume(np.array([[0.4, 0.5]]))
    assert int(np.argmax(exploration.log_promise(points))) in (0, 1, 2)
    exploration.forget_assumed()
    assert int(np.argmax(exploration.log_promise(points))) == 3
