"""Values with their units, as they are shown everywhere."""

import pytest

from luthier.result.text import bytes_text, duration_text, estimate_text, share_text, value_text
from luthier.trial import Estimate


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536 * 1024, "1.5 MiB"), (-2048, "-2 KiB"), (2**60, "1024 PiB")],
)
def test_bytes(size: float, text: str) -> None:
    assert bytes_text(size) == text
    assert value_text(size, "memory") == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0125, "12.5 ms"), (1.0, "1 s"), (-0.5, "-500 ms"), (-3.25, "-3.25 s"), (3.2504, "3.25 s")]
)
def test_times(seconds: float, text: str) -> None:
    assert value_text(seconds, "wall") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(9.94, "9.9 s"), (10.0, "10 s"), (59.0, "59 s"), (185.0, "3 min 05 s"), (7800.0, "2 h 10 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_an_estimate_is_shown_with_its_interval_where_it_has_one() -> None:
    assert estimate_text(None, "wall") == "no value"
    assert estimate_text(Estimate(2.0, 1), "wall") == "2 s"
    assert estimate_text(Estimate(2.0, 5, 0.1, 2.0, 2.0), "wall") == "2 s"
    assert estimate_text(Estimate(2.0, 5, 0.1, 1.9, 2.1), "wall") == "2 s (1.9 s to 2.1 s)"
    assert estimate_text(Estimate(2.0, 5, 0.1, None, 2.1), "wall") == "2 s"
    assert estimate_text(Estimate(2.0, 5, 0.1, 1.9, None), "wall") == "2 s"


def test_a_share_has_two_digits_and_no_exponent() -> None:
    shown = [share_text(share) for share in (0.0, 0.0345, 0.5, 0.994, 0.996, 1.0, 1.34, 25.0)]
    assert shown == ["0 %", "3.5 %", "50 %", "99 %", "100 %", "100 %", "134 %", "2500 %"]
