"""What a model promises is believed less if it did not come, and never more than it says."""

import numpy as np
import pytest

from luthier.online.strategies.step_choice import Trust, expected_gain


def test_a_model_that_promises_too_much_is_trusted_less() -> None:
    trust = Trust()
    assert trust.share == 1.0
    trust.add(expected=5.0, came=0.0)
    few = trust.share
    assert 0.0 < few < 1.0
    trust.add(expected=5.0, came=0.0)
    assert trust.share < few
    for _ in range(50):
        trust.add(expected=1.0, came=9.0)
    assert trust.share == 1.0, "more than promised is no reason to expect more"


def test_the_expected_gain_of_a_normal_value() -> None:
    """Deviation 1: 1 / sqrt(2 pi) at mean 0; without deviation only a mean below 0 is a gain."""
    gains = expected_gain(np.array([0.0, -2.0, 2.0]), np.array([1.0, 0.0, 0.0]))
    assert gains == pytest.approx([0.39894, 2.0, 0.0], abs=1e-5)
