"""Connections over tcp that have not said hello: each address gets its share of the places, and none can take all."""

import time
from collections import Counter
from collections.abc import Callable
from ipaddress import ip_address
from typing import Protocol

GRACE_S = 0.5
"""A client says hello at once; a connection that has not done so after this time may lose its place."""

_MOST_KNOWN = 4096


class Newcomer(Protocol):
    """What is needed of a connection."""

    @property
    def source(self) -> str:
        """The address under which it is counted."""
        ...

    @property
    def is_opening(self) -> bool:
        """Whether it has said hello, and is being answered."""
        ...

    def turn_away(self, reason: str) -> None:
        """Close it; its client may come back."""
        ...


class Newcomers:
    """Gives places to new connections until they have joined a session.

    While fewer than half of the places are taken, every connection gets one. After that, a new connection may replace
    one that has waited for `GRACE_S`; if all places are taken, it may also replace one of an address that has more
    places than its own. Addresses that have never joined lose a place first, then the address with most places; of
    equal ones, the oldest connection. Addresses that have joined before, and those of this machine, never lose a place
    to others at once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[Newcomer, float] = {}  # oldest first
        self._counts: Counter[str] = Counter()
        self._known: dict[str, None] = {}  # addresses from which somebody has joined, the latest last

    def admit(self, newcomer: Newcomer, most: int) -> str | None:
        """Give a place, of at most `most`; the reason if all are taken."""
        if len(self._since) >= most // 2:
            weakest = max(self._since, key=self._rank, default=None)
            is_full = len(self._since) >= most
            if weakest is not None and self._may_replace(weakest, newcomer, is_full=is_full):
                self.forget(weakest)
                weakest.turn_away("too many connections have not said hello yet; try again later")
            elif is_full:
                return f"{most} other connections have not said hello yet; try again later"
        self._since[newcomer] = self._clock()
        self._counts[newcomer.source] += 1
        return None

    def joined(self, newcomer: Newcomer) -> None:
        """Note that a connection has joined a session: its address is known from now on."""
        self.forget(newcomer)
        self._known.pop(newcomer.source, None)
        self._known[newcomer.source] = None
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def forget(self, newcomer: Newcomer) -> None:
        """Free the place of a connection, if it has one."""
        if self._since.pop(newcomer, None) is not None:
            self._counts[newcomer.source] -= 1
            if not self._counts[newcomer.source]:
                del self._counts[newcomer.source]

    def _rank(self, waiting: Newcomer) -> tuple[bool, int, bool]:
        return not self._is_known(waiting.source), self._counts[waiting.source], not waiting.is_opening

    def _may_replace(self, weakest: Newcomer, newcomer: Newcomer, *, is_full: bool) -> bool:
        is_stale = not weakest.is_opening and self._clock() - self._since[weakest] >= GRACE_S
        if is_stale or not is_full:
            return is_stale
        known, weakest_known = self._is_known(newcomer.source), self._is_known(weakest.source)
        has_more = self._counts[weakest.source] > self._counts[newcomer.source] + 1
        return known > weakest_known or (known == weakest_known and has_more)

    def _is_known(self, source: str) -> bool:
        return source in self._known or is_loopback(source)


def is_loopback(source: str) -> bool:
    """Whether an address is one of this machine."""
    try:
        return ip_address(source).is_loopback
    except ValueError:  # a network
        return source == "::/64"  # that of ::1
