"""How often to look at something that may take a second or a day."""

_SLOWER = 1.5


class Pace:
    """When to do something again: soon at first, then less and less often, until something happens."""

    def __init__(self, shortest_s: float, longest_s: float) -> None:
        self._shortest_s = shortest_s
        self._longest_s = longest_s
        self._step_s = shortest_s
        self._last = -longest_s

    def left_s(self, now: float) -> float:
        """How long to wait for the next time; 0 or less when it has come."""
        return self._last + self._step_s - now

    def done(self, now: float) -> None:
        """Note that it was done."""
        self._last = now
        self._step_s = min(self._step_s * _SLOWER, self._longest_s)

    def hurry(self, within_s: float | None = None) -> None:
        """Note that something happened; for the next `within_s` seconds, look more often than usual."""
        self._step_s = min(self._step_s, self._shortest_s if within_s is None else within_s)
