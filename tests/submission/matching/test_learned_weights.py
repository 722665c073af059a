"""Weights learned from confirmed and rejected matches."""

import numpy as np
import pytest

from luthier.submission.matching import Weights, learn_weights

NAMES = tuple(Weights().shares())


def reviewed(count: int, *, telling: str) -> list[tuple[dict[str, float], bool]]:
    """Matches in which one field tells right from wrong, and all others are random."""
    rng, found = np.random.default_rng(1), []
    for number in range(count):
        by_field = dict(zip(NAMES, rng.uniform(0, 1, len(NAMES)).tolist(), strict=True))
        found.append(
            (by_field | {telling: rng.uniform(0.6, 1) if number % 2 else rng.uniform(0, 0.4)}, bool(number % 2))
        )
    return found


@pytest.mark.parametrize("telling", ["user", "name", "nodes"])
def test_the_field_that_tells_weighs_most(telling: str) -> None:
    shares = learn_weights(reviewed(60, telling=telling)).shares()
    assert max(shares, key=shares.__getitem__) == telling
    assert shares[telling] > 0.4


def test_few_reviews_change_little() -> None:
    shares, even = learn_weights(reviewed(2, telling="name")).shares(), Weights().shares()
    assert max(abs(shares[name] - even[name]) for name in NAMES) < 0.1


def test_without_both_kinds_of_reviews_all_weigh_the_same() -> None:
    assert learn_weights([]) == Weights()
    assert learn_weights([one for one in reviewed(20, telling="name") if one[1]]) == Weights()
