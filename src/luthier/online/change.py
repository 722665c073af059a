"""Whether the behaviour of a program has changed since its search has converged."""

import math
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from luthier.statistics.estimate import median_of

REFERENCE, RECENT = 40, 20
"""How many steps with the best configuration are compared: the first ones after convergence, and the last ones."""

_EVERY = 5
_ERRORS = 5.0
_SMALLEST = 1.05


@dataclass(slots=True)
class ChangeWatch:
    """Compares the last steps with those right after convergence.

    They have changed if the rank sum of the last ones (Mann & Whitney 1947) is more than five standard errors away from
    its expectation and the medians differ by more than 5 %. Ranks make no assumption about the noise, and five standard
    errors need nearly every recent step to be slower, or faster, than nearly every one before. The slowest of more
    clients is slower without any change, so only steps of as many clients are compared.
    """

    reference: list[float] = field(default_factory=list)
    _clients: int | None = None  # of the steps that are compared
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _unseen: int = 0

    def add(self, value: float, clients: int = 1) -> float | None:
        """Add the value of a step; the factor by which values have changed, or None."""
        if self._clients is not None and clients != self._clients:
            self.reference.clear()
            self._recent.clear()
        self._clients = clients
        if len(self.reference) < REFERENCE:
            self.reference.append(value)
            return None
        self._recent.append(value)
        self._unseen += 1
        if len(self._recent) < RECENT or self._unseen < _EVERY:
            return None
        self._unseen = 0
        return changed(self.reference, list(self._recent))


def changed(before: Sequence[float], after: Sequence[float]) -> float | None:
    """The factor between the medians if `after` differs clearly from `before`, else None."""
    count, other = len(after), len(before)
    wins = sum((late > early) + 0.5 * (late == early) for late in after for early in before)
    error = math.sqrt(count * other * (count + other + 1) / 12.0)
    if abs(wins - count * other / 2.0) < _ERRORS * error:
        return None
    old, new = median_of(before), median_of(after)
    if old == 0.0 or new == 0.0 or (old > 0.0) != (new > 0.0):
        return None
    factor = min(max(new / old, sys.float_info.min), sys.float_info.max)
    return factor if max(factor, 1.0 / factor) >= _SMALLEST else None
