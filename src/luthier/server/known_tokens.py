"""Tokens that were accepted a moment ago."""

import time
from collections.abc import Callable

from luthier.server.authentication import Principal
from luthier.store.server_store import digest_of

KEEP_S = 5.0
"""How long a token is accepted after it was deleted."""

_MOST = 10_000


class KnownTokens:
    """Who sent which token in the last few seconds, for requests that are too many to ask the store each time."""

    def __init__(self, stopwatch: Callable[[], float] = time.monotonic) -> None:
        self._stopwatch = stopwatch
        self._known: dict[str, tuple[Principal, float]] = {}

    def get(self, header: str) -> Principal | None:
        """The user behind an Authorization header; None if it has to be checked."""
        found = self._known.get(digest_of(header)) if header else None
        return found[0] if found is not None and self._stopwatch() - found[1] < KEEP_S else None

    def put(self, header: str, who: Principal) -> None:
        """Remember a header that was accepted."""
        if len(self._known) >= _MOST:
            self._known.clear()
        if header:
            self._known[digest_of(header)] = who, self._stopwatch()
