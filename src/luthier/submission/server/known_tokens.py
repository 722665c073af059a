"""Tokens that were accepted a moment ago."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from luthier.errors import LuthierError
from luthier.server.authentication import Principal
from luthier.store.server_store import digest_of

KEEP_S = 5.0
"""How long a token is accepted without asking the store."""

_LONGEST_S = 30.0
"""How long it is accepted while the store has not answered."""

_MOST = 10_000


class KnownTokens:
    """Who sent which token in the last few seconds, for requests that are too many to ask the store each time.

    Only one request asks the store about a token at a time; those that come meanwhile use the last answer, or wait for
    the new one. It belongs to one event loop.
    """

    def __init__(self, stopwatch: Callable[[], float] = time.monotonic) -> None:
        self._stopwatch = stopwatch
        self._known: dict[str, tuple[Principal, float]] = {}
        self._checks: dict[str, asyncio.Task[Principal]] = {}

    async def user(self, header: str, check: Callable[[], Awaitable[Principal]]) -> Principal:
        """The user behind an Authorization header; raises what `check`, which asks the store, raises."""
        digest = digest_of(header)
        known = self._known.get(digest)
        age_s = float("inf") if known is None else self._stopwatch() - known[1]
        if known is not None and age_s < KEEP_S:
            return known[0]
        running = self._checks.get(digest)
        if running is None:
            running = self._checks[digest] = asyncio.create_task(self._checked(digest, check))
        elif known is not None and age_s < _LONGEST_S:
            return known[0]
        return await asyncio.shield(running)

    async def _checked(self, digest: str, check: Callable[[], Awaitable[Principal]]) -> Principal:
        try:
            who = await check()
        except LuthierError:
            self._known.pop(digest, None)
            raise
        else:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[digest] = who, self._stopwatch()
            return who
        finally:
            with suppress(KeyError):
                del self._checks[digest]
