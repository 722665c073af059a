"""Limits for login attempts: passwords cannot be guessed, and no user can lock out another one."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from luthier.errors import LuthierError
from luthier.server.client_addresses import source_of

FREE_PER_USER = 5
"""Wrong passwords for one name from one address before a wait is required."""

FREE_PER_ADDRESS = 20
"""Wrong passwords from one address, for all names together."""

LONGEST_WAIT_S = 900.0
"""The wait doubles up to this limit. After this time without a wrong password, the count starts again at zero."""

MOST_NOTED = 50
NOTED_WITHIN_S = 3600.0
"""At most `MOST_NOTED` failed logins per `NOTED_WITHIN_S` are written to the audit log; the others are counted."""

_MOST_REMEMBERED = 10_000
_LONGEST_NAME = 64


class TooManyError(LuthierError):
    """Too many attempts, or too much work; retry after `after_s` seconds."""

    def __init__(self, after_s: float, what: str = "too many login attempts") -> None:
        super().__init__(f"{what}; try again in {max(1.0, after_s):.0f} s")
        self.after_s = after_s


@dataclass(frozen=True, slots=True)
class Attempt:
    """A login attempt. `is_known`: this browser has logged in under this name before."""

    name: str
    keys: tuple[tuple[str, int], ...]
    is_known: bool


class LoginLimits:
    """Counts wrong passwords for a name from an address, and from an address for all names; never for a name alone.

    So an attacker who tries the names of others delays only their own address. A browser that has logged in as this
    user before has a separate count, which other browsers do not affect even from the same address.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: dict[str, tuple[int, float]] = {}
        self._noted: list[float] = []
        self._not_noted = 0

    def begin(self, name: str, address: str, *, is_known: bool) -> Attempt:
        """Count an attempt as wrong until `succeed` is called; `TooManyError` if it comes too soon."""
        name, source, now = name[:_LONGEST_NAME], source_of(address)[:_LONGEST_NAME], self._clock()
        keys: tuple[tuple[str, int], ...] = ((f"device {name}", FREE_PER_USER),)
        if not is_known:
            keys = ((f"user {name} from {source}", FREE_PER_USER), (f"address {source}", FREE_PER_ADDRESS))
        with self._lock:
            wait_s = max(self._wait_s(key, free, now) for key, free in keys)
            if wait_s > 0:
                raise TooManyError(wait_s)
            for key, _ in keys:
                count, last = self._failures.pop(key, (0, 0.0))
                self._failures[key] = (1 if now - last > LONGEST_WAIT_S else count + 1, now)
            while len(self._failures) > _MOST_REMEMBERED:  # drop the oldest, to limit the memory
                self._failures.pop(next(iter(self._failures)))
        return Attempt(name, keys, is_known)

    def succeed(self, attempt: Attempt) -> None:
        """Reset the count of a user after a correct password; other wrong passwords from the address still count."""
        own, *others = (key for key, _ in attempt.keys)
        with self._lock:
            self._failures.pop(own, None)
            for key in others:
                count, last = self._failures.get(key, (0, 0.0))
                if count > 1:
                    self._failures[key] = (count - 1, last)
                else:
                    self._failures.pop(key, None)

    def may_note(self) -> int | None:
        """None if a failure must not be logged now; else the number of failures left out since the last one logged."""
        now = self._clock()
        with self._lock:
            self._noted = [at for at in self._noted if 0 <= now - at < NOTED_WITHIN_S]
            if len(self._noted) >= MOST_NOTED:
                self._not_noted += 1
                return None
            self._noted.append(now)
            left_out, self._not_noted = self._not_noted, 0
            return left_out

    def _wait_s(self, key: str, free: int, now: float) -> float:
        count, last = self._failures.get(key, (0, 0.0))
        if count < free or now - last > LONGEST_WAIT_S:
            return 0.0
        return last + min(2.0 ** min(count - free, 20), LONGEST_WAIT_S) - now
