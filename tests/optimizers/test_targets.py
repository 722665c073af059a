"""What models learn from trials: estimates with their errors, lower bounds, failures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.learn.gaussian_process import GaussianProcess, Observations
from luthier.learn.kernels import Hyperparameters
from luthier.optimizers.targets import KnownTargets, bounds_and_failures, expected_above, observations
from luthier.trial import Completed, Config, Estimate, Failed, Lost, Outcome, Pruned, TimedOut, Trial

SMOOTH = np.ones(2, dtype=np.bool_)


def trial(number: int, outcome: Outcome) -> Trial:
    estimate = Estimate(outcome.value, 1) if isinstance(outcome, Completed) else None
    return Trial(Config({"a": number}), (outcome,), estimate)


TRIALS = [
    trial(0, Completed(3.0)),
    trial(1, Pruned("slow", at_least=5.0)),
    trial(2, TimedOut("10 s")),
    trial(3, Lost("node")),
    trial(4, Failed("exit 1")),
]


def test_what_was_cut_short_is_a_bound_and_what_failed_is_a_failure() -> None:
    bounds, failed = bounds_and_failures(TRIALS)
    assert np.isnan(bounds).tolist() == [True, False, True, True, True]
    assert bounds[1] == 5.0
    assert failed.tolist() == [False, False, True, False, True]
    assert bounds_and_failures(TRIALS[1:])[1].tolist() == [True, True, False, True]  # nothing to compare the bound with


def test_estimates_and_successes_of_what_is_known() -> None:
    known = KnownTargets.of(np.arange(12.0).reshape(6, 2), TRIALS)  # one row more than trials
    assert known.estimates().y.tolist() == [3.0]
    assert known.estimates().x.tolist() == [[0.0, 1.0]]
    assert known.successes().y.tolist() == [1.0, 0.0, 0.0]
    assert known.successes().x[:, 0].tolist() == [0.0, 4.0, 8.0]
    assert known.bounded.tolist() == [False, True, False, False, False]


def test_a_bound_raises_what_is_expected_and_never_lowers_it() -> None:
    x = np.linspace(0.0, 1.0, 8)[:, None]
    process = GaussianProcess(np.array([True]))
    process.fit(Observations.single(x, x[:, 0]))
    at = np.array([[0.4], [0.4]])
    low, high = expected_above(process, at, np.array([-5.0, 2.0]))
    assert low == pytest.approx(process.predict(at)[0][0], abs=1e-3)
    assert 2.0 <= high < 3.0


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
    process.condition(observations(x, estimates))
    return float(process.predict_standard(x[1:2])[1][0])
