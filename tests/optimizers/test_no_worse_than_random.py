"""`auto` on landscapes that mislead models: it may gain nothing there, but it must not lose to random search."""

import math
import random
from collections.abc import Callable
from statistics import fmean

import pytest

import luthier as lt
from luthier.trial import Config

BUDGET = 30
SEEDS = 10

SPACE = lt.Space(
    lt.Integer("a", 0, 11),
    lt.Integer("b", 1, 256, step=2, scale="log"),
    lt.Choice("c", ["x", "y", "z"]),
    lt.Choice("d", [1, 2]),
)


def _numbers(config: Config) -> tuple[int, int, int, int]:
    return int(config["a"]), int(math.log2(int(config["b"]))), "xyz".index(str(config["c"])), int(config["d"])


def white_noise(config: Config) -> float | None:
    """Neighbours tell nothing about each other."""
    return random.Random(repr(_numbers(config))).random()


def plateau(config: Config) -> float | None:
    """Nearly everything is equal; one value of one parameter is better."""
    return 1.0 if _numbers(config)[0] != 7 else 0.5 + 0.01 * _numbers(config)[1]


def deceptive(config: Config) -> float | None:
    """A wide slope leads away from a narrow optimum."""
    a, b, c, d = _numbers(config)
    return 0.0 if a >= 10 and b >= 6 else 1.0 + 0.1 * (a + b) + 0.01 * c + 0.01 * d


def mostly_failing(config: Config) -> float | None:
    """Two thirds of the space cannot run, and what runs best is at the border."""
    a, b, c, d = _numbers(config)
    return None if (a + b) % 3 else 10.0 + abs(a - 6) + abs(b - 4) + c - d


def heavy_tailed(config: Config) -> float | None:
    """Values over eight decades."""
    return math.exp(9.0 * random.Random(repr(_numbers(config)[::2])).random() ** 2 + 0.1 * _numbers(config)[1])


def _quality(optimizer: str, landscape: Callable[[Config], float | None], seed: int) -> float:
    """The part of the space that beats what was found: 0 for the optimum."""
    search, found = lt.optimizer(optimizer, SPACE, seed=seed), math.inf
    for _ in range(BUDGET):
        config = search.ask()
        value = landscape(config)
        search.tell(config, value)
        found = found if value is None else min(found, value)
    values = [landscape(config) for config in SPACE.configs(SPACE.grid())]
    return fmean(value is not None and value < found for value in values)


@pytest.mark.parametrize("landscape", [white_noise, plateau, deceptive, mostly_failing, heavy_tailed])
def test_is_no_worse_than_random(landscape: Callable[[Config], float | None]) -> None:
    auto, chance = ([_quality(name, landscape, seed) for seed in range(SEEDS)] for name in ("auto", "random"))
    # What random search leaves is about 1 / (budget + 1), give or take as much; twice the error of the means is noise.
    noise = 2.0 * math.sqrt(2.0 / SEEDS) / (BUDGET + 1)
    assert fmean(auto) <= fmean(chance) + noise
