"""How long an experiment has been worked on."""

from collections.abc import Sequence


class WorkTime:
    """The time an experiment has been worked on, without the time in which all of its active runs waited in a queue.

    All times are those of one monotonic clock. `spent_s` is what earlier processes worked on it.
    """

    def __init__(self, now: float, spent_s: float) -> None:
        self._began = now - spent_s
        self._waiting_since: float | None = None

    def elapsed_s(self, now: float) -> float:
        """The time up to now."""
        return (now if self._waiting_since is None else self._waiting_since) - self._began

    def note(self, now: float, began: Sequence[float | None]) -> None:
        """Note when each of the active runs began; None for one that waits."""
        waits = bool(began) and all(one is None for one in began)
        if waits and self._waiting_since is None:
            self._waiting_since = now
        elif not waits and self._waiting_since is not None:
            until = min([now, *(one for one in began if one is not None)])  # runs are seen some time after they began
            self._began += max(until - self._waiting_since, 0.0)
            self._waiting_since = None
