from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.arrays import BoolArray, FloatArray
from luthier.errors import InvalidInputError
from luthier.learn.gaussian_process import Observations
from luthier.optimizers.ensemble import Ensemble
from luthier.optimizers.history import History
from luthier.optimizers.registry import make_optimizer
from luthier.optimizers.scales import Linear, Logarithmic, Warp, linear_or_logarithmic
from luthier.optimizers.surrogates import CachedPoints, GaussianSurrogate, all_surrogates
from luthier.space import Choice, Integer, Real, Space
from luthier.trial import Completed, Config, Estimate, Failed, Lost, Outcome, Pruned, Trial


def told(x: FloatArray, outcomes: Sequence[Outcome | Estimate]) -> History:
    """A history with these outcomes at the rows of `x` in the unit cube."""
    history = History(Space(*(Real(f"x{i}", 0.0, 1.0) for i in range(x.shape[1]))))
    for row, outcome in zip(x, outcomes, strict=True):
        config = Config({f"x{i}": float(value) for i, value in enumerate(row)})
        if isinstance(outcome, Estimate):
            history.tell([Trial(config, (), outcome)])
        else:
            estimate = Estimate(outcome.value, 1) if isinstance(outcome, Completed) else None
            history.tell([Trial(config, (outcome,), estimate)])
    return history


def one_process(ordered: BoolArray) -> tuple[GaussianSurrogate]:
    return (GaussianSurrogate(ordered, "matern52"),)


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


def test_chooses_the_scale_the_values_are_normal_on() -> None:
    x = np.random.default_rng(1).random((40, 3))
    linear = 10.0 + x @ np.array([3.0, -2.0, 1.0])
    steep = np.exp(8.0 * x.sum(axis=1))
    for values, expected in ((steep, Logarithmic), (linear, Linear), (-steep, Linear)):
        make = linear_or_logarithmic(Observations.single(x, values), np.ones(3, dtype=np.bool_), "matern52")
        assert isinstance(make(values), expected)
        assert isinstance(make(-values), Linear), "there is no logarithm"


@pytest.mark.parametrize("bound", [4.0, None])
def test_a_pruned_region_loses_its_promise(bound: float | None) -> None:
    units = np.linspace(0.05, 0.95, 10)[:, None]
    outcomes: list[Outcome] = [Completed(3.0 - u) if u < 0.6 else Pruned("slow", at_least=bound) for u in units[:, 0]]
    ensemble = Ensemble(np.array([True]), seed=0)
    ensemble.learn(told(units, outcomes))
    promise = ensemble.log_promise(CachedPoints(np.array([[0.6], [0.9]])))
    assert promise[0] > promise[1]


def test_what_is_assumed_is_taken_back() -> None:
    rng = np.random.default_rng(1)
    x: FloatArray = rng.random((20, 2))
    ensemble, watched = Ensemble(np.array([True, True]), seed=0), CachedPoints(rng.random((15, 2)))
    ensemble.learn(told(x, [Completed(float(row.sum())) for row in x]))
    before = ensemble.log_promise(watched)
    ensemble.assume(rng.random((3, 2)))
    ensemble.forget_assumed()
    np.testing.assert_allclose(ensemble.log_promise(watched), before, rtol=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_small_steps_down_a_plateau_are_no_news(sign: float) -> None:
    x: FloatArray = np.random.default_rng(1).random((40, 2))
    watched = CachedPoints(x)

    def promise(step: float, seed: int) -> FloatArray:
        ensemble = Ensemble(np.array([True, True]), seed=seed)
        ensemble.learn(told(x, [Completed(sign * 100.0 - step * i) for i in range(len(x))]))
        return ensemble.log_promise(watched)

    def is_drawn(step: float) -> bool:
        return not np.array_equal(promise(step, seed=1), promise(step, seed=2))

    assert is_drawn(0.01)  # the suggestion is drawn at random
    assert not is_drawn(2.0)
    np.testing.assert_array_equal(promise(0.01, seed=1), promise(0.01, seed=1))


def test_learns_where_runs_fail() -> None:
    rng = np.random.default_rng(2)
    x, places = rng.random((30, 2)), np.array([[0.1, 0.5], [0.9, 0.5]])
    for surrogates in (one_process, all_surrogates):
        ensemble = Ensemble(np.array([True, True]), surrogates, seed=0)
        ensemble.learn(told(x, [Failed("exit 1") if row[0] < 0.5 else Completed(1.0) for row in x]))
        failing, working = np.exp(ensemble._successes.log_chance(CachedPoints(places)))
        assert failing < 0.2
        assert working > 0.8


def test_lost_runs_say_nothing() -> None:
    x = np.array([[0.1], [0.5], [0.9]])
    points, middle = CachedPoints(x), x[:2]

    def promise(*outcomes: Outcome) -> FloatArray:
        ensemble = Ensemble(np.array([True]), one_process, seed=0)
        ensemble.learn(told(middle[: len(outcomes)], outcomes))
        return ensemble.log_promise(points)

    np.testing.assert_allclose(promise(Completed(1.0), Lost("node")), promise(Completed(1.0)))
    assert promise(Completed(1.0), Failed("exit 1"))[1] < promise(Completed(1.0), Lost("node"))[1]


def test_what_runs_makes_its_surroundings_less_promising() -> None:
    x = np.random.default_rng(1).random((12, 2))
    ensemble, points = Ensemble(np.array([True, True]), one_process, seed=0), CachedPoints(NEAR_AND_FAR)
    ensemble.learn(told(x, [Completed(1.0 + float(np.sum((row - 0.5) ** 2))) for row in x]))
    near, far = ensemble.log_promise(points)
    ensemble.assume(np.array([[0.5, 0.5]]))
    near_then, far_then = ensemble.log_promise(points)
    assert near_then < near - 1.0
    assert abs(far_then - far) < abs(near_then - near)


NEAR_AND_FAR = np.array([[0.51, 0.5], [0.95, 0.05]])


def test_repeats_reach_the_model_of_a_search() -> None:
    x = np.random.default_rng(1).random((10, 2))
    deviations = []
    for count, deviation in ((1, None), (30, 1e-6)):
        estimates = [Estimate(1.0 + float(row.sum()), 1) for row in x]
        estimates[4] = Estimate(estimates[4].value, count, deviation)
        ensemble = Ensemble(np.array([True, True]), one_process, seed=0)
        ensemble.learn(told(x, estimates))
        ((_, surrogate),) = ensemble._values.active()
        deviations.append(surrogate.predict(CachedPoints(x[4:5]))[1][0])
    assert deviations[1] < deviations[0]


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


@pytest.mark.parametrize("name", ["auto", "gp", "forest"])
def test_what_was_asked_on_the_way_through_a_long_history_does_not_matter(name: str) -> None:
    rng = np.random.default_rng(5)
    trials = []
    for number, config in enumerate(MIXED.sample(190, rng)):
        y = bowl(config)
        problem = Failed("exit 1") if y is None else Pruned("slow", at_least=11.0)
        measured = y is not None and number % 9 != 4
        outcome = Completed(y) if measured and y is not None else problem
        trials.append(Trial(config, (outcome,), Estimate(outcome.value, 1) if isinstance(outcome, Completed) else None))
    asked, fresh = (make_optimizer(name, MIXED, seed=1) for _ in range(2))
    for start in range(0, len(trials), 12):
        asked.tell(trials[start : start + 12])
        asked.ask(2, [])
    fresh.tell(trials)
    running = [MIXED.default] if MIXED.default not in {trial.config for trial in trials} else []
    assert asked.ask(3, running) == fresh.ask(3, running)
