"""The model of sampled values: exact without noise, and not misled by one slow sample; units do not matter."""

from collections.abc import Sequence
from statistics import median

import numpy as np
import pytest

from luthier.arrays import FloatArray
from luthier.online.strategies.value_model import KnownValues, ValueModel

ROWS = np.linspace(0.0, 1.0, 12)[:, None]
LEVEL = 1.0 + ROWS[:, 0]
NOISE = (0.0, 0.1, 0.3, 0.05, 0.2)


def learned(samples: Sequence[Sequence[float]]) -> KnownValues:
    return ValueModel(np.array([True]), median).learn(ROWS, samples)


def with_one(factor: float, unit: float = 1.0) -> FloatArray:
    """What is known, as shares of the true level, if the seventh point has one sample that is off by a factor."""
    samples = [[unit * level * (1.0 + more) for more in NOISE] for level in LEVEL.tolist()]
    samples[6] = [unit * factor * float(LEVEL[6])]
    return np.asarray(np.exp(learned(samples).mean) / unit / LEVEL)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_without_noise_every_value_is_known_exactly(unit: float) -> None:
    values = unit * (1.0 + np.sin(40.0 * ROWS[:, 0]) ** 2)
    known = learned([[value] for value in values.tolist()])
    assert np.array_equal(known.mean, np.log(values))
    assert not known.deviation.any()


@pytest.mark.parametrize("unit", [1e-3, 1e3])
@pytest.mark.parametrize("factor", [0.3, 1.0, 3.0])
def test_the_unit_of_the_values_does_not_matter(unit: float, factor: float) -> None:
    assert with_one(factor, unit) == pytest.approx(with_one(factor), rel=0.01)


def test_a_single_slow_sample_is_doubted_and_a_single_quick_one_is_believed() -> None:
    slow, quick = with_one(3.0), with_one(1.0 / 3.0)
    assert slow == pytest.approx(np.ones(12), rel=0.1)
    assert quick[6] < 0.6
    assert np.delete(quick, 6) == pytest.approx(np.ones(11), rel=0.1)
