"""How much CPU time the texts of one client may cost, so that no client slows the server down for the others."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from luthier.server.authentication import Principal
from luthier.server.client_addresses import source_of
from luthier.server.login_limits import TooManyError

BUDGET_S = 0.25
"""CPU time for one token from one address within `WINDOW_S`."""

WINDOW_S = 10.0

FREE_S = 0.001
"""The first part of each piece of work is not counted: hundreds of ordinary jobs in a second are never refused."""

_MOST_REMEMBERED = 10_000
Client = tuple[int, str]


def client_of(who: Principal, address: str) -> Client:
    """Who is counted together: all requests with one token, or session, from one address."""
    return who.credential_id, source_of(address)


class CpuBudget:
    """The CPU time that clients have used; what was used is forgotten evenly in the course of a window."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._used: dict[Client, tuple[float, float]] = {}

    def check(self, client: Client) -> None:
        """Raise `TooManyError` if the client has used up its budget."""
        with self._lock:
            above_s = self._used_s(client, self._clock()) - BUDGET_S
        if above_s >= 0:
            text = f"this token and address used more than {BUDGET_S:g} s of CPU time within {WINDOW_S:g} s"
            raise TooManyError(above_s * WINDOW_S / BUDGET_S, text)

    def spend(self, client: Client, cpu_s: float) -> None:
        """Count one piece of work."""
        if cpu_s <= FREE_S:
            return
        now = self._clock()
        with self._lock:
            used_s = self._used_s(client, now) + cpu_s - FREE_S
            self._used.pop(client, None)
            self._used[client] = used_s, now
            while len(self._used) > _MOST_REMEMBERED:  # the oldest, to limit the memory
                self._used.pop(next(iter(self._used)))

    @contextmanager
    def charged(self, client: Client) -> Iterator[None]:
        """Check the budget, and count the work of this thread within the block, which must not await."""
        self.check(client)
        began = time.thread_time()
        try:
            yield
        finally:
            self.spend(client, time.thread_time() - began)

    def _used_s(self, client: Client, now: float) -> float:
        used_s, at = self._used.get(client, (0.0, now))
        return max(0.0, used_s - (now - at) * BUDGET_S / WINDOW_S)
