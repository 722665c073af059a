import numpy as np
import pytest

from luthier.learn import linear
from luthier.learn.gaussian_process import GaussianProcess, Observations


def test_empty_systems_are_solved_without_a_message(capfd: pytest.CaptureFixture[str]) -> None:
    none = np.empty((0, 0))
    assert linear.cholesky(none).shape == (0, 0)
    assert linear.inverse_from_cholesky(none).shape == (0, 0)
    assert linear.solve_cholesky(none, np.empty(0)).shape == (0,)
    assert linear.solve_lower(none, np.empty((0, 2))).shape == (0, 2)
    assert linear.solve_lower(np.eye(2), np.empty((2, 0))).shape == (2, 0)
    linear.solve_lower_in_place(none, np.empty((0, 3)))
    assert capfd.readouterr() == ("", ""), "LAPACK writes its complaints to stdout"


def test_a_process_without_observations_predicts_the_prior(capfd: pytest.CaptureFixture[str]) -> None:
    process = GaussianProcess(np.array([True, False]))
    process.condition(Observations.single(np.empty((0, 2)), np.empty(0)))
    process.assume(np.array([[0.2, 0.5]]))
    process.condition(Observations.single(np.empty((0, 2)), np.empty(0)))
    mean, deviation = process.predict(np.array([[0.1, 0.2], [0.9, 0.7]]))
    np.testing.assert_array_equal(mean, 0.0)
    np.testing.assert_allclose(deviation, np.sqrt(process.hyper.signal))
    assert process.log_likelihood() == 0.0
    assert [len(part) for part in process.leave_one_out()] == [0, 0]
    assert capfd.readouterr() == ("", "")
