from collections.abc import Callable

import numpy as np
import pytest

from luthier.arrays import FloatArray
from luthier.optimizers import make_optimizer
from luthier.optimizers.acquisition import log_expected_improvement
from luthier.optimizers.contract import measured, unmeasured
from luthier.optimizers.surrogates import GaussianSurrogate
from luthier.space import Choice, Integer, Real, Space
from luthier.trial import Failed


def branin(u: FloatArray) -> float:
    x, y = 15.0 * u[0] - 5.0, 15.0 * u[1]
    return float(
        (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10
    )


def bowl(u: FloatArray) -> float:
    return 1.0 + 20.0 * float(np.sum((u - 0.4) ** 2))


def runtime(u: FloatArray) -> float:
    return float(np.exp(2.0 * np.sum((u[:4] - 0.7) ** 2) + [0.5, 0.0, 1.0][int(3 * u[4])]))


CASES: dict[str, tuple[Space, Callable[[FloatArray], float]]] = {
    "branin": (Space(Integer("a", 0, 44), Integer("b", 0, 44)), branin),
    "bowl": (Space(*(Integer(name, 0, 12) for name in "abc")), bowl),
    "runtime": (Space(*(Integer(name, 0, 4) for name in "abde"), Choice("c", ["u", "v", "w"])), runtime),
    "vast bowl": (Space(*(Integer(f"p{i}", 0, 99) for i in range(6))), bowl),
    "continuous branin": (Space(Real("x", -5.0, 10.0), Real("y", 0.0, 15.0)), branin),
}


def best_of(name: str, case: str, seed: int, steps: int = 40) -> float:
    space, objective = CASES[case]
    search, best = make_optimizer(name, space, seed=seed, budget=steps), np.inf
    for _ in range(steps):
        for config in search.ask(1, []):
            value = objective(space.to_unit(space.codes([config]))[0])
            best = min(best, value)
            search.tell([measured(config, value)])
    return best


@pytest.mark.parametrize("case", CASES)
def test_finds_the_region_of_the_optimum_and_beats_random(case: str) -> None:
    space, objective = CASES[case]
    codes = space.sample_codes(4_000, np.random.default_rng(0))
    sample = np.array([objective(unit) for unit in space.to_unit(codes)])
    found = [best_of("gp", case, seed) for seed in range(3)]
    assert np.mean(sample <= max(found)) < 0.01  # every seed within the best hundredth
    assert np.median(found) < np.median([best_of("random", case, seed) for seed in range(9)])


def test_noise_does_not_mislead_it() -> None:
    space, objective = CASES["bowl"]
    rng, search = np.random.default_rng(4), make_optimizer("gp", space, seed=2)
    seen: list[float] = []
    for _ in range(50):
        (config,) = search.ask(1, [])
        value = objective(space.to_unit(space.codes([config]))[0])
        seen.append(value)
        search.tell([measured(config, value + 0.5 * rng.standard_normal())])
    sample = [objective(unit) for unit in space.to_unit(space.grid())]
    assert np.median(seen[30:]) < np.quantile(sample, 0.1)


def test_finds_the_best_beside_a_region_that_fails() -> None:
    space = Space(Integer("a", 0, 19), Integer("b", 0, 19))
    search, best = make_optimizer("gp", space, seed=3), np.inf
    for _ in range(35):
        (config,) = search.ask(1, [])
        unit = space.to_unit(space.codes([config]))[0]
        value = float(1.0 + unit[0] + (unit[1] - 0.5) ** 2)  # lowest where every run fails
        if unit[0] < 0.5:
            search.tell([unmeasured(config, Failed("exit 1"))])
        else:
            best = min(best, value)
            search.tell([measured(config, value)])
    assert best == pytest.approx(1.525625)


def test_log_expected_improvement_by_integration_and_far_out() -> None:
    rng = np.random.default_rng(0)
    mean, deviation = np.array([0.0, 1.0, -2.0]), np.array([1.0, 0.5, 2.0])
    draws = mean + deviation * rng.standard_normal((400_000, 3))
    expected = np.maximum(0.3 - draws, 0.0).mean(axis=0)
    np.testing.assert_allclose(np.exp(log_expected_improvement(mean, deviation, 0.3)), expected, rtol=0.03)
    z = np.concatenate((np.linspace(0.5, 80.0, 4_000), np.geomspace(81.0, 1e9, 500)))
    far = log_expected_improvement(z, np.ones_like(z), 0.0)
    assert np.all(np.isfinite(far))
    assert np.all(np.diff(far) < 0.0)
    np.testing.assert_allclose(
        log_expected_improvement(np.array([2.0]), np.ones(1), 0.0), np.log(0.008490702), rtol=1e-6
    )


def test_an_ensemble_never_excludes_a_configuration_and_a_single_process_may() -> None:
    """With a least chance, `gp` spent most runs on failures once the optimum was found."""
    ordered, certain_failure = np.ones(1, dtype=np.bool_), (np.array([0.0]), np.array([0.05]))
    assert GaussianSurrogate(ordered, "matern52").log_chance(*certain_failure)[0] == pytest.approx(np.log(0.02))
    assert GaussianSurrogate(ordered, "matern52", least_chance=0.0).log_chance(*certain_failure)[0] < -50.0


def test_fewer_than_two_in_three_runs_fail_after_the_optimum_was_found() -> None:
    space, failures = Space(Integer("a", 0, 29), Integer("b", 0, 9)), 0
    for seed in range(3):
        optimizer = make_optimizer("gp", space, seed=seed)
        for step in range(50):
            (config,) = optimizer.ask(1, [])
            a, b = int(config["a"]), int(config["b"])
            value = 1.0 + ((a - 5) / 30) ** 2 + ((b - 4) / 10) ** 2
            failed = a >= 12
            failures += failed and step >= 25
            optimizer.tell([unmeasured(config, Failed("exit 1")) if failed else measured(config, value)])
    assert failures < 50
