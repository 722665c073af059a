"""The small neural network: gradients checked numerically, and what it learns."""

import numpy as np
import pytest

from luthier.learn.adam import Adam
from luthier.learn.network import Network, new_network


def numeric_gradient(network: Network, x: np.ndarray, wanted: np.ndarray, at: int, place: tuple[int, ...]) -> float:
    sides = []
    for sign in (1.0, -1.0):
        moved = [weight.copy() for weight in network.weights]
        moved[at][place] += sign * 1e-6
        sides.append(Network(moved).squared_error(x, wanted)[0])
    return (sides[0] - sides[1]) / 2e-6


@pytest.mark.parametrize("sizes", [(3, 2), (3, 5, 2), (3, 6, 4, 1)])
def test_gradients_are_those_of_differences(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    network = new_network(sizes, rng)
    x, wanted = rng.standard_normal((7, sizes[0])), rng.standard_normal((7, sizes[-1]))
    wanted[2, 0] = np.nan  # not known: it must not count
    _, gradients = network.squared_error(x, wanted)
    for at, gradient in enumerate(gradients):
        for place in np.ndindex(gradient.shape):
            numeric = numeric_gradient(network, x, wanted, at, place)
            assert gradient[place] == pytest.approx(numeric, rel=1e-5, abs=1e-8), (at, place)


def test_it_learns_a_function_that_is_not_linear() -> None:
    rng = np.random.default_rng(2)
    network = new_network((2, 16, 1), rng)
    adam = Adam(network.weights, 0.01)
    x = rng.uniform(-1.0, 1.0, (400, 2))
    wanted = (x[:, :1] * x[:, 1:]) * 2.0
    for _ in range(800):
        adam.step(network.squared_error(x, wanted)[1])
    fresh = rng.uniform(-1.0, 1.0, (200, 2))
    error = network(fresh) - fresh[:, :1] * fresh[:, 1:] * 2.0
    assert float(np.sqrt(np.mean(error**2))) < 0.1
