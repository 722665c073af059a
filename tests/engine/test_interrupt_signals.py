"""Which signals count as a wish to stop."""

import signal
from collections.abc import Iterator

import pytest

from luthier.engine.interrupts import Interrupts


@pytest.fixture(autouse=True)
def hangup() -> Iterator[None]:
    """A handler of its own for SIGHUP; pytest has none, and the test must survive the signal."""
    before = signal.signal(signal.SIGHUP, lambda *_: None)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("counts_hangup", "is_ignored", "count"), [(True, False, 1), (True, True, 0), (False, False, 0), (False, True, 0)]
)
def test_a_closed_terminal_counts_where_it_is_asked_for_and_not_ignored(
    counts_hangup: bool, is_ignored: bool, count: int
) -> None:
    if is_ignored:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    before = signal.getsignal(signal.SIGHUP)
    with Interrupts(hangup=counts_hangup) as interrupts:
        signal.raise_signal(signal.SIGHUP)
        assert (interrupts.count, interrupts.terminated) == (count, count > 0)
    assert signal.getsignal(signal.SIGHUP) == before


def test_the_third_ctrl_c_ends_at_once() -> None:
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert (interrupts.count, interrupts.terminated) == (2, False)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
