"""The tabular VAE: gradients checked numerically, and what it learns."""

import numpy as np

from luthier.learn.density import KernelDensity
from luthier.learn.tabular_vae import Block, TabularVae, encode, fit_mixture, initial_weights, loss_and_gradients

ORDERED = np.array([True, False, True])
SIZES = np.array([0.0, 3.0, 0.0])


def rows_of(count: int, seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Two modes: low numbers with category 0, high ones with category 2; the last column follows the first."""
    rng = np.random.default_rng(seed)
    high = rng.random(count) < 0.5
    x = np.where(high, 0.8, 0.2) + 0.03 * rng.standard_normal(count)
    category = np.where(high, 2.5, 0.5) / 3.0
    return np.clip(np.column_stack((x, category, 1.0 - x)), 0.0, 1.0)


def test_gradients_are_those_of_differences() -> None:
    rows, rng = rows_of(20, 1), np.random.default_rng(2)
    mixture = fit_mixture(rows[:, 0])
    blocks = [Block(0, 0, len(mixture.means), mixture)]
    blocks.append(Block(1, blocks[-1].end, 3, None))
    last = fit_mixture(rows[:, 2])
    blocks.append(Block(2, blocks[-1].end, len(last.means), last))
    x, weights = encode(blocks, rows), initial_weights(blocks, rng)
    noise = rng.standard_normal((len(x), weights[4].shape[0]))
    loss, gradients = loss_and_gradients(blocks, weights, x, noise)
    assert np.isfinite(loss)
    checked = 0
    for at, gradient in enumerate(gradients):
        assert gradient.shape == weights[at].shape
        for flat in rng.integers(gradient.size, size=8).tolist():
            place, step = np.unravel_index(flat, gradient.shape), 1e-6
            sides = []
            for sign in (1.0, -1.0):
                moved = [weight.copy() for weight in weights]
                moved[at][place] += sign * step
                sides.append(loss_and_gradients(blocks, moved, x, noise)[0])
            numeric = (sides[0] - sides[1]) / (2.0 * step)
            assert abs(numeric - gradient[place]) < 1e-6 + 1e-5 * abs(numeric), (at, place)
            checked += abs(numeric) > 1e-6
    assert checked > 30


def test_draws_have_both_modes_and_the_category_that_belongs_to_each() -> None:
    drawn = TabularVae(ORDERED, SIZES, rows_of(200, 3), seed=1).sample(1000, np.random.default_rng(4))
    low, high = drawn[:, 0] < 0.35, drawn[:, 0] > 0.65
    assert low.mean() > 0.25
    assert high.mean() > 0.25
    assert (low | high).mean() > 0.9
    category = np.floor(drawn[:, 1] * 3.0)
    assert (category[low] == 0.0).mean() > 0.85
    assert (category[high] == 2.0).mean() > 0.85
    assert np.corrcoef(drawn[:, 0], drawn[:, 2])[0, 1] < -0.8
    assert drawn.min() >= 0.0
    assert drawn.max() <= 1.0


def test_the_same_seed_gives_the_same_draws() -> None:
    rows = rows_of(50, 5)
    one, same, other = (TabularVae(ORDERED, SIZES, rows, seed=seed) for seed in (1, 1, 2))
    first = one.sample(20, np.random.default_rng(6))
    assert np.array_equal(first, same.sample(20, np.random.default_rng(6)))
    assert not np.array_equal(first, other.sample(20, np.random.default_rng(6)))


def test_unknown_columns_are_uniform_and_few_rows_are_enough() -> None:
    rows = rows_of(5, 7)
    rows[:, 2] = np.nan
    rows[0, 0] = np.nan
    drawn = TabularVae(ORDERED, SIZES, rows, seed=1).sample(2000, np.random.default_rng(8))
    shares = np.histogram(drawn[:, 2], bins=4, range=(0.0, 1.0))[0] / len(drawn)
    assert np.all(np.abs(shares - 0.25) < 0.05)
    assert np.isfinite(drawn).all()


def test_a_mixture_finds_as_many_modes_as_there_are() -> None:
    rng = np.random.default_rng(9)
    two = np.concatenate((0.2 + 0.03 * rng.standard_normal(60), 0.8 + 0.03 * rng.standard_normal(40)))
    found = fit_mixture(two)
    assert np.allclose(np.sort(found.means), [0.2, 0.8], atol=0.03)
    assert np.allclose(np.sort(found.weights), [0.4, 0.6], atol=0.02)
    assert len(fit_mixture(0.5 + 0.05 * rng.standard_normal(80)).means) == 1
    assert np.isfinite(fit_mixture(np.full(6, 0.3)).means).all()


def test_a_density_is_high_where_its_rows_are() -> None:
    rows = rows_of(40, 10)
    rows[:, 2] = np.nan
    density = KernelDensity(ORDERED, SIZES, rows)
    drawn = density.sample(500, np.random.default_rng(11))
    assert drawn.min() >= 0.0
    assert drawn.max() <= 1.0
    near, far = density.log_density(rows_of(50, 12)), density.log_density(np.tile([0.5, 0.5, 0.5], (1, 1)))
    assert near.min() > 0.0 > far[0]
