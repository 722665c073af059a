from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import InvalidInputError
from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.learn.kernels import FloatArray
from luthier.optimizers.ensemble import Ensemble
from luthier.optimizers.members import Watched
from luthier.optimizers.registry import make_optimizer
from luthier.optimizers.surrogate import bounds_and_failures, expected_above
from luthier.optimizers.warp import Warp
from luthier.space import Choice, Integer, Space
from luthier.trial import Completed, Config, Estimate, Failed, Lost, Outcome, Pruned, TimedOut, Trial


def trial(number: int, outcome: Outcome) -> Trial:
    estimate = Estimate(outcome.value, 1) if isinstance(outcome, Completed) else None
    return Trial(Config({"a": number}), (outcome,), estimate)


def best_of(name: str, space: Space, value: Callable[[Config], float | None], budget: int, seed: int) -> float:
    """The lowest value found within the budget; None stands for a failure."""
    optimizer = make_optimizer(name, space, seed=seed)
    found = np.inf
    for _ in range(budget):
        (config,) = optimizer.ask(1, [])
        y = value(config)
        found = min(found, np.inf if y is None else y)
        outcome: Outcome = Failed("exit 1") if y is None else Completed(y)
        optimizer.tell([Trial(config, (outcome,), None if y is None else Estimate(y, 1))])
    return float(found)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
@settings(deadline=None)
def test_the_scale_rises_and_is_finite(values: list[float]) -> None:
    y = np.array(values)
    targets = Warp.of(y)(y)
    assert np.isfinite(targets).all()
    order = np.argsort(y, kind="stable")
    assert (np.diff(targets[order]) >= -1e-9).all()


def test_an_outlier_leaves_the_good_values_apart() -> None:
    y = np.array([1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1e6])
    targets = Warp.of(y)(y)
    assert targets[5] - targets[0] > 0.5 * (targets[6] - targets[5])


def test_errors_are_measured_on_the_scale_of_the_targets() -> None:
    y = np.linspace(1.0, 3.0, 21)
    warp = Warp.of(y)
    errors = warp.errors(np.array([2.0]), np.array([0.1]))
    assert errors[0] == pytest.approx(0.5 * (warp(np.array([2.1])) - warp(np.array([1.9])))[0])


def test_what_was_cut_short_is_a_bound_and_what_failed_is_a_failure() -> None:
    trials = [
        trial(0, Completed(3.0)),
        trial(1, Pruned("slow", at_least=5.0)),
        trial(2, TimedOut("10 s")),
        trial(3, Lost("node")),
        trial(4, Failed("exit 1")),
    ]
    bounds, broken = bounds_and_failures(trials)
    assert np.isnan(bounds).tolist() == [True, False, True, True, True]
    assert bounds[1] == 5.0
    assert broken.tolist() == [False, False, True, False, True]
    assert bounds_and_failures(trials[1:])[1].tolist() == [True, True, False, True]  # nothing to compare the bound with


def test_a_bound_raises_what_is_expected_and_never_lowers_it() -> None:
    x = np.linspace(0.0, 1.0, 8)[:, None]
    process = GaussianProcess(np.array([True]))
    process.learn(Observations.single(x, x[:, 0]))
    at = np.array([[0.4], [0.4]])
    low, high = expected_above(process, at, np.array([-5.0, 2.0]))
    assert low == pytest.approx(process.predict(at)[0][0], abs=1e-3)
    assert 2.0 <= high < 3.0


@pytest.mark.parametrize("bound", [4.0, None])
def test_a_pruned_region_loses_its_promise(bound: float | None) -> None:
    units = np.linspace(0.05, 0.95, 10)[:, None]
    outcomes: list[Outcome] = [Completed(3.0 - u) if u < 0.6 else Pruned("slow", at_least=bound) for u in units[:, 0]]
    ensemble = Ensemble(np.array([True]), seed=0)
    ensemble.learn(units, [trial(i, outcome) for i, outcome in enumerate(outcomes)])
    promise = ensemble.log_promise(Watched(np.array([[0.6], [0.9]])))
    assert promise[0] > promise[1]


def test_beliefs_are_taken_back() -> None:
    rng = np.random.default_rng(1)
    x: FloatArray = rng.random((20, 2))
    ensemble, watched = Ensemble(np.array([True, True]), seed=0), Watched(rng.random((15, 2)))
    ensemble.learn(x, [trial(i, Completed(float(row.sum()))) for i, row in enumerate(x)])
    before = ensemble.log_promise(watched)
    ensemble.believe(rng.random((3, 2)))
    ensemble.disbelieve()
    np.testing.assert_allclose(ensemble.log_promise(watched), before, rtol=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_small_steps_down_a_plateau_are_no_news(sign: float) -> None:
    x: FloatArray = np.random.default_rng(1).random((40, 2))
    watched = Watched(x)

    def promise(step: float, seed: int) -> FloatArray:
        ensemble = Ensemble(np.array([True, True]), seed=seed)
        ensemble.learn(x, [trial(i, Completed(sign * 100.0 - step * i)) for i in range(len(x))])
        return ensemble.log_promise(watched)

    def is_drawn(step: float) -> bool:
        return not np.array_equal(promise(step, seed=1), promise(step, seed=2))

    assert is_drawn(0.01)  # the turn is left to chance
    assert not is_drawn(2.0)
    np.testing.assert_array_equal(promise(0.01, seed=1), promise(0.01, seed=1))


MIXED = Space(Integer("a", 0, 19), Integer("b", 0, 19), Choice("c", ["x", "y", "z"]))


def bowl(config: Config) -> float | None:
    """A smooth bowl for one category, a plain that mostly fails for the others."""
    a, b = int(config["a"]), int(config["b"])
    if config["c"] != "y" and a > 10:
        return None
    return 10.0 + (a - 15) ** 2 / 20 + (b - 4) ** 2 / 20 + 5.0 * (config["c"] != "y")


@pytest.mark.parametrize("name", ["auto", "forest"])
def test_finds_the_best_of_a_mixed_space_with_failures(name: str) -> None:
    found = sorted(best_of(name, MIXED, bowl, 45, seed) for seed in range(3))
    by_chance = sorted(best_of("random", MIXED, bowl, 45, seed) for seed in range(3))
    assert found[1] < 10.3
    assert found[1] < by_chance[1]


def test_forty_parameters_are_searched() -> None:
    space = Space(*(Integer(f"p{i}", 0, 9) if i % 2 else Choice(f"p{i}", ["u", "v", "w"]) for i in range(40)))

    def value(config: Config) -> float:
        return 1.0 + 2.0 * (config["p0"] != "v") + abs(int(config["p1"]) - 7) + (config["p2"] != "u")

    assert best_of("auto", space, value, 40, 1) < best_of("random", space, value, 40, 1)


def test_earlier_trials_help_although_nobody_asked_for_them() -> None:
    optimizer = make_optimizer("auto", MIXED, seed=1)
    rng = np.random.default_rng(5)
    known = [(config, bowl(config)) for config in MIXED.sample(60, rng)]
    optimizer.tell([Trial(c, (Completed(y),), Estimate(y, 1)) for c, y in known if y is not None])
    (config,) = optimizer.ask(1, [])
    value = bowl(config)
    assert value is not None
    assert value < 11.0


@pytest.mark.parametrize("name", ["gp", "forest"])
@pytest.mark.parametrize("acquisition", ["ei", "pi", "lcb"])
def test_every_acquisition_searches(name: str, acquisition: str) -> None:
    optimizer = make_optimizer(name, MIXED, seed=2, acquisition=acquisition, initial=5)
    seen: list[float] = []
    for _ in range(25):
        (config,) = optimizer.ask(1, [])
        y = bowl(config)
        outcome: Outcome = Failed("exit 1") if y is None else Completed(y)
        optimizer.tell([Trial(config, (outcome,), None if y is None else Estimate(y, 1))])
        seen += [] if y is None else [y]
    assert min(seen) < 14.0


def test_unknown_options_are_refused() -> None:
    for name in ("gp", "forest"):
        with pytest.raises(InvalidInputError, match="acquisition 'best' is unknown"):
            make_optimizer(name, MIXED, seed=1, acquisition="best")
        with pytest.raises(InvalidInputError, match="initial is 0"):
            make_optimizer(name, MIXED, seed=1, initial=0)
