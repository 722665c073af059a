"""How much the runs of one configuration differ."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.statistics.noise import Noise, noise_of

FINITE = st.floats(-1e300, 1e300)


def test_noise_is_relative_where_values_have_one_sign() -> None:
    groups = [[1.0, math.e], [100.0, 100.0 * math.e]]
    noise = noise_of(groups)
    assert noise.relative
    assert noise.freedom == 2
    assert noise.deviation == pytest.approx(math.sqrt(0.5))
    turned = noise_of([[-value for value in group] for group in groups])
    assert turned.deviation == pytest.approx(noise.deviation)
    assert noise_of([[-1.0, 1.0], [5.0]]) == Noise(pytest.approx(math.sqrt(2.0)), 1, relative=False)  # type: ignore[arg-type]  # approx


def test_a_value_of_its_own_counts_for_the_scale_only() -> None:
    assert noise_of([[1.0, 2.0], [3.0]]) == noise_of([[1.0, 2.0]])
    assert not noise_of([[1.0, 2.0], [0.0]]).relative
    assert noise_of([]) == Noise()
    assert noise_of([[3.0]]).freedom == 0


def test_places_keep_the_order() -> None:
    for scale, values in ((Noise(relative=True), [0.1, 0.5, 2.0]), (Noise(relative=True), [-2.0, -0.5, -0.1])):
        assert sorted(values, key=scale.place) == values


def test_the_chance_of_a_difference() -> None:
    noise = Noise(1.0, freedom=10)
    assert noise.chance_below(0.0, 1.0) == 0.5
    assert noise.chance_below(-2.228, 1.0) == pytest.approx(0.975, abs=1e-4)
    assert noise.chance_below(1.114, 4.0) == pytest.approx(0.025, abs=1e-4)
    exact = Noise(0.0, freedom=3)
    assert [exact.chance_below(difference, 1.0) for difference in (-1.0, 0.0, 1.0)] == [1.0, 0.5, 0.0]


@given(st.lists(st.lists(FINITE, min_size=1, max_size=5), max_size=5))
def test_any_values_have_a_noise(groups: list[list[float]]) -> None:
    noise = noise_of(groups)
    assert noise.deviation >= 0.0
    assert noise.freedom == sum(len(group) - 1 for group in groups)
    for group in groups:
        for value in group:
            assert math.isfinite(noise.place(value))
