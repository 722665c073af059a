"""Whether a program has changed: few false alarms, and real changes are found."""

import numpy as np
import pytest

from luthier.online.change import RECENT, REFERENCE, ChangeWatch, changed


def first_alarm(values: "np.typing.NDArray[np.float64]") -> int | None:
    watch = ChangeWatch()
    return next((number for number, value in enumerate(values.tolist()) if watch.add(value) is not None), None)


@pytest.mark.parametrize("kind", ["gaussian", "pareto", "two levels"])
def test_false_alarms_are_rare(kind: str) -> None:
    rng = np.random.default_rng(1)

    def noise() -> "np.typing.NDArray[np.float64]":
        if kind == "gaussian":
            return np.abs(1.0 + 0.2 * rng.standard_normal(5000))
        if kind == "pareto":
            return 1.0 + 0.3 * rng.pareto(1.7, 5000)
        return np.where(rng.random(5000) < 0.3, 2.0, 1.0)

    alarms = [first_alarm(noise()) for _ in range(20)]
    assert sum(alarm is not None for alarm in alarms) <= 1


@pytest.mark.parametrize("factor", [0.5, 1.5, 4.0])
def test_a_change_is_found_soon(factor: float) -> None:
    rng = np.random.default_rng(2)
    values = 1.0 + 0.05 * rng.pareto(1.7, 400)
    values[200:] *= factor
    alarm = first_alarm(values)
    assert alarm is not None
    assert 200 <= alarm <= 200 + 2 * RECENT


def test_a_small_change_is_ignored() -> None:
    assert first_alarm(np.concatenate([np.full(100, 1.0), np.full(100, 1.04)])) is None


def test_values_without_a_factor_are_no_change() -> None:
    assert changed([0.0] * REFERENCE, [1.0] * RECENT) is None
    assert changed([-1.0] * REFERENCE, [1.0] * RECENT) is None
    assert changed([-1.0] * REFERENCE, [-2.0] * RECENT) == 2.0


def test_the_factor_of_extreme_values_is_a_finite_number_above_0() -> None:
    higher, lower = changed([1e-300] * REFERENCE, [1e300] * RECENT), changed([1e300] * REFERENCE, [1e-300] * RECENT)
    assert higher is not None
    assert lower is not None
    assert 0.0 < lower < 1.0 < higher < float("inf")
