"""Weights learned from confirmed and rejected matches."""

import numpy as np
import pytest

from luthier.submission.matching import Weights, learn_weights
from luthier.submission.matching.learned_weights import _fit

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


def test_the_weights_are_those_of_the_regression() -> None:
    """Logistic loss plus a tenth of the squares of deviations from the mean weight, found without a gradient."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(3)
    features = rng.uniform(0.0, 1.0, (40, 3))
    confirmed = (features @ [3.0, 1.0, 0.5] + rng.normal(0.0, 0.4, 40) > 2.2).astype(float)

    def loss(point: np.ndarray) -> float:
        chances = 1.0 / (1.0 + np.exp(point[3] - features @ point[:3]))
        likelihood = np.where(confirmed == 1.0, chances, 1.0 - chances)
        uneven = np.square(point[:3] - np.mean(point[:3])).sum() + 0.01 * np.square(point[:3]).sum()
        return float(-np.log(likelihood).sum() + 0.1 * uneven)

    found = minimize(loss, np.ones(4), method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-6, "fatol": 1e-9})
    assert found.success
    assert min(found.x[:3]) > 0.0
    assert _fit(features, confirmed) == pytest.approx(found.x[:3] / found.x[:3].sum(), abs=1e-3)
