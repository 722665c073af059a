import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import InvalidInputError
from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.learn.kernels import FloatArray, Hyperparameters
from luthier.optimizers import make_optimizer
from luthier.optimizers.acquisition import (
    effective_best,
    log_augmented_expected_improvement,
    log_expected_improvement,
    log_expected_quantile_improvement,
    log_noisy_expected_improvement,
    lowest_quantile,
)
from luthier.optimizers.contract import measured, unmeasured
from luthier.optimizers.members import Watched
from luthier.optimizers.surrogate import NOISY_ACQUISITIONS, Surrogate, observations
from luthier.space import Choice, Integer, Space
from luthier.trial import Config, Estimate, Failed, Trial

means = st.floats(-10.0, 10.0)
deviations = st.floats(1e-3, 10.0)
noises = st.floats(0.0, 10.0)
SMOOTH = np.ones(2, dtype=np.bool_)


def one(value: float) -> FloatArray:
    return np.array([value])


def expected_improvement(mean: float, deviation: float, best: float) -> float:
    """The plain formula of Jones et al. 1998."""
    z = (best - mean) / deviation
    below = 0.5 * math.erfc(-z / math.sqrt(2.0))
    return (best - mean) * below + deviation * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


@given(means, deviations, noises)
@settings(deadline=None)
def test_augmented_improvement_is_the_plain_formula_where_that_can_be_computed(m: float, s: float, tau: float) -> None:
    plain = expected_improvement(m, s, 0.5) * (1.0 - tau / math.hypot(s, tau))
    if plain > 1e-6 * s:
        assert log_augmented_expected_improvement(one(m), one(s), 0.5, tau)[0] == pytest.approx(
            math.log(plain), abs=1e-6
        )


@given(means, deviations, noises)
@settings(deadline=None)
def test_quantile_improvement_is_the_plain_formula_where_that_can_be_computed(m: float, s: float, tau: float) -> None:
    h = math.hypot(s, tau)
    plain = expected_improvement(m + 1.2815515655446 * s * tau / h, s * s / h, 0.5)
    if plain > 1e-6 * s * s / h:
        assert log_expected_quantile_improvement(one(m), one(s), 0.5, tau)[0] == pytest.approx(
            math.log(plain), abs=1e-6
        )


@given(st.lists(st.tuples(means, means), min_size=1, max_size=16), deviations)
@settings(deadline=None)
def test_noisy_improvement_is_the_average_where_that_can_be_computed(
    draws: list[tuple[float, float]], s: float
) -> None:
    each = [expected_improvement(m, s, least) for m, least in draws]
    if max(each) > 1e-6 * s:
        m, least = np.array(draws).T
        found = log_noisy_expected_improvement(m[:, None], one(s), least)
        assert found[0] == pytest.approx(math.log(np.mean(each)), abs=1e-6)


@given(st.lists(st.tuples(means, deviations), min_size=2, max_size=8), means)
@settings(deadline=None)
def test_without_noise_each_is_expected_improvement(points: list[tuple[float, float]], best: float) -> None:
    m, s = np.array(points).T
    expected = log_expected_improvement(m, s, best)
    np.testing.assert_allclose(log_augmented_expected_improvement(m, s, best, 0.0), expected, atol=1e-9)
    np.testing.assert_allclose(log_expected_quantile_improvement(m, s, best, 0.0), expected, atol=1e-9)
    same = log_noisy_expected_improvement(np.tile(m, (16, 1)), s, np.full(16, best))
    np.testing.assert_allclose(same, expected, atol=1e-9)
    exact = np.zeros(len(m))
    assert effective_best(m, exact) == lowest_quantile(m, exact) == m.min()


@pytest.mark.parametrize("noise", [0.0, 1e-3, 1.0, 1e3])
def test_far_out_they_are_finite_and_ordered(noise: float) -> None:
    far = np.concatenate((np.linspace(0.5, 80.0, 2_000), np.geomspace(81.0, 1e7, 300)))
    ones = np.ones_like(far)
    for promise in (
        log_augmented_expected_improvement(far, ones, 0.0, noise),
        log_expected_quantile_improvement(far, ones, 0.0, noise),
        log_noisy_expected_improvement(far + noise * np.linspace(-1.0, 1.0, 16)[:, None], ones, np.zeros(16)),
    ):
        assert np.all(np.isfinite(promise))
        assert np.all(np.diff(promise) < 0.0)


@given(means, deviations, noises)
@settings(deadline=None)
def test_a_noisier_run_promises_less(m: float, s: float, tau: float) -> None:
    for promise in (log_augmented_expected_improvement, log_expected_quantile_improvement):
        quiet, loud = (promise(one(m), one(s), 0.0, noise)[0] for noise in (tau, 2.0 * tau + 1e-3))
        assert loud < quiet


def test_the_effective_best_is_no_lucky_point() -> None:
    m, s = np.array([1.0, 1.2, 5.0]), np.array([1.0, 0.1, 0.0])
    assert effective_best(m, s) == 1.2
    assert lowest_quantile(m, s) == pytest.approx(1.2 + 0.1 * 1.2815515655)


def known_process(noise: float, count: int = 12) -> tuple[GaussianProcess, FloatArray]:
    """A process with given hyper-parameters, and what it observed."""
    rng = np.random.default_rng(3)
    x = rng.random((count, 2))
    y = np.sin(5.0 * x[:, 0]) + x[:, 1] + math.sqrt(noise) * rng.standard_normal(count)
    process = GaussianProcess(SMOOTH)
    process.hyper = Hyperparameters(1.0, noise, np.array([6.0, 6.0]))
    process._condition(Observations.single(x, y))
    return process, y


def test_points_known_by_the_book() -> None:
    process, _ = known_process(0.1)
    process.believe(np.array([[0.5, 0.5]]))
    mean, deviation = process.known_standard()
    expected_mean, expected_deviation = process.predict_standard(process.x)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-9)
    np.testing.assert_allclose(deviation, expected_deviation, atol=1e-9)


def test_taking_off_errors_leaves_the_nugget_in() -> None:
    process, y = known_process(0.3)
    data = Observations(process.x, y, np.ones(len(y)), np.linspace(0.0, 0.5, len(y)))
    process._condition(data)
    mean, deviation = process.without_error(data)
    function = process.kernel.correlation(process.hyper, process.x, process.x) + 0.3 * np.eye(len(y))
    gain = function @ np.linalg.inv(function + np.diag(data.error**2))
    np.testing.assert_allclose(mean, process.mean + gain @ (y - process.mean), atol=1e-9)
    np.testing.assert_allclose(deviation**2, np.diagonal(function - gain @ function), atol=1e-7)
    assert mean[0] == pytest.approx(y[0])
    assert deviation[0] == pytest.approx(0.0)


@pytest.mark.parametrize("noise", [1e-7, 0.01, 0.3])
def test_possible_targets_have_the_mean_and_about_the_covariance_of_the_posterior(noise: float) -> None:
    process, _ = known_process(noise)
    process.believe(np.array([[0.5, 0.5], [0.1, 0.9]]))
    grid = np.random.default_rng(1).random((40, 2))
    exact = process.without_noise()
    draws, watched = process.possible_targets(), Watched(grid).fixed(exact)
    at_points = process.mean + draws @ watched.rows(exact)
    process.disbelieve()  # what is believed is drawn, not observed
    mean, deviation = process.predict_standard(grid)
    np.testing.assert_allclose(at_points.mean(axis=0), mean, atol=1e-6)
    variance = at_points.var(axis=0) + watched.deviation_standard(exact) ** 2
    assert 0.7 < np.mean(variance / deviation**2) < 1.3


def test_noise_free_process_follows_row_by_row() -> None:
    process, y = known_process(0.1)
    grid = Watched(np.random.default_rng(1).random((10, 2)))
    data = Observations.single(process.x, y)
    for believed in (2, 5, 3):
        process._condition(data)
        process.believe(np.random.default_rng(believed).random((believed, 2)))
        exact = process.without_noise()
        signal = process.hyper.signal * process.kernel.correlation(process.hyper, process.x, process.x)
        np.testing.assert_allclose(exact.lower @ exact.lower.T, signal, atol=1e-8)
        cross = process.hyper.signal * process.kernel.correlation(process.hyper, process.x, grid.units)
        np.testing.assert_allclose(exact.lower @ grid.fixed(exact).rows(exact), cross, atol=1e-9)
        process.disbelieve()


@pytest.mark.parametrize("name", NOISY_ACQUISITIONS)
def test_next_to_no_noise_the_choice_of_expected_improvement(name: str) -> None:
    process, _ = known_process(1e-9)
    points = Watched(np.random.default_rng(1).random((300, 2)))
    mean, deviation = process.predict_standard(points.units)
    expected = log_expected_improvement(mean, deviation, process.incumbent_standard())
    found = NOISY_ACQUISITIONS[name](process, points)
    assert np.argmax(found) == np.argmax(expected)
    good = expected > expected.max() - 5.0
    np.testing.assert_allclose(found[good], expected[good], atol=0.02)


def test_noisy_improvement_by_many_draws() -> None:
    process, _ = known_process(0.2)
    points = np.random.default_rng(1).random((30, 2))
    rng, known = np.random.default_rng(5), len(process.x)
    covariance = process.hyper.signal * process.kernel.correlation(
        process.hyper, np.concatenate((process.x, points)), np.concatenate((process.x, points))
    )
    gain = np.linalg.solve(covariance[:known, :known] + 0.2 * np.eye(known), covariance[:known]).T
    mean = process.mean + gain @ (process._y - process.mean)
    posterior = covariance - gain @ covariance[:known]
    draws = rng.multivariate_normal(mean, posterior, size=40_000, method="eigh")
    improvement = np.maximum(draws[:, :known].min(axis=1)[:, None] - draws[:, known:], 0.0).mean(axis=0)
    found = np.exp(NOISY_ACQUISITIONS["nei"](process, Watched(points)))
    assert np.corrcoef(found, improvement)[0, 1] > 0.97
    assert 0.7 < np.mean(found) / np.mean(improvement) < 1.4


@given(st.integers(1, 30), st.integers(1, 30), st.floats(0.01, 3.0))
@settings(max_examples=40, deadline=None)
def test_more_repeats_are_trusted_more(few: int, more: int, noise: float) -> None:
    assert posterior_deviation(few + more, noise, noise) < posterior_deviation(few, noise, noise)


@given(st.integers(2, 30), st.floats(0.01, 3.0), st.floats(0.01, 3.0), st.floats(1.1, 10.0))
@settings(max_examples=40, deadline=None)
def test_a_point_that_scatters_more_is_trusted_less(count: int, noise: float, own: float, factor: float) -> None:
    assert posterior_deviation(count, noise, own) < posterior_deviation(count, noise, factor * own)


def posterior_deviation(count: int, noise: float, own: float) -> float:
    """At a point measured so often and scattering on its `own`, beside others measured once."""
    x = np.array([[0.2, 0.2], [0.5, 0.5], [0.8, 0.9]])
    estimates = [Estimate(1.0, 1), Estimate(2.0, count, own if count > 1 else None), Estimate(4.0, 1)]
    process = GaussianProcess(SMOOTH)
    process.hyper = Hyperparameters(1.0, noise * noise, np.array([6.0, 6.0]))
    process._condition(observations(x, estimates))
    return float(process.predict_standard(x[1:2])[1][0])


def test_repeats_reach_the_model_of_a_search() -> None:
    x = np.random.default_rng(1).random((10, 2))
    once = [measured(Config({"i": i}), 1.0 + float(x[i].sum())) for i in range(10)]
    often = [*once]
    value = 1.0 + float(x[4].sum())
    often[4] = Trial(once[4].config, once[4].outcomes, Estimate(value, 30, 1e-6))
    surrogate = Surrogate(SMOOTH, seed=0)
    surrogate.learn(x, once)
    before = surrogate.process.predict_standard(x[4:5])[1]
    surrogate.learn(x, often)
    assert surrogate.process.predict_standard(x[4:5])[1] < before


@pytest.mark.parametrize("name", NOISY_ACQUISITIONS)
def test_searches_a_noisy_bowl_with_runs_under_way(name: str) -> None:
    space = Space(Integer("a", 0, 12), Integer("b", 0, 12), Choice("c", ["u", "v"]))
    rng, search = np.random.default_rng(4), make_optimizer("gp", space, seed=2, acquisition=name)
    seen: list[float] = []
    for _ in range(12):
        batch = list(search.ask(3, []))
        assert len(set(batch)) == 3
        for config in batch:
            value = 1.0 + 0.1 * (int(config["a"]) - 4) ** 2 + 0.1 * (int(config["b"]) - 8) ** 2 + (config["c"] == "u")
            seen.append(value)
            search.tell([measured(config, value * math.exp(0.2 * rng.standard_normal()))])
    assert min(seen) < 1.3
    assert np.median(seen[18:]) < 3.0


@pytest.mark.parametrize("name", NOISY_ACQUISITIONS)
@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_values_of_any_size_repeats_and_failures(name: str, scale: float) -> None:
    space = Space(Integer("a", 0, 12), Choice("c", ["u", "v"]))
    search = make_optimizer("gp", space, seed=1, acquisition=name, initial=3)
    suggested = set()
    for turn in range(15):
        (config,) = search.ask(1, [])
        suggested.add(config)
        value = scale * (turn % 4 - 1.0)
        if turn % 5 == 4:
            search.tell([unmeasured(config, Failed("exit 1"))])
        elif turn % 3:
            search.tell([measured(config, value)])
        else:
            search.tell([Trial(config, (), Estimate(value, 4, 0.1 * scale))])
    assert len(suggested) == 15


def test_only_a_gaussian_process_knows_them() -> None:
    space = Space(Integer("a", 0, 12))
    with pytest.raises(InvalidInputError, match="acquisition 'nei' is unknown; known: ei, lcb, pi"):
        make_optimizer("forest", space, seed=1, acquisition="nei")
    with pytest.raises(InvalidInputError, match="known: aei, ei, eqi, lcb, nei, pi"):
        make_optimizer("gp", space, seed=1, acquisition="noisy")
