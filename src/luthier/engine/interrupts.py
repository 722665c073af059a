"""Counts Ctrl-C, so that the loop can check for it."""

import signal
import threading
from types import FrameType, TracebackType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Counts SIGINT and SIGTERM while it is entered; outside the main thread none can be caught, so it stays at 0.

    With `hangup` it counts SIGHUP too, which a closed terminal sends, unless it is ignored (nohup). `terminated` tells
    whether one of them was not SIGINT.
    """

    def __init__(self, *, hangup: bool = False) -> None:
        is_counted = hangup and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
        self._signals = (*SIGNALS, signal.SIGHUP) if is_counted else SIGNALS
        self.count = 0
        self.terminated = False
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            for number in self._signals:
                self._before[number] = signal.signal(number, self._count)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # exactly what signal.signal returned

    def _count(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self.terminated = self.terminated or number != signal.SIGINT
        if self.count > 2:
            raise KeyboardInterrupt
