"""What the server keeps for jobs at submission, and the threads that work on them."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import cast

from luthier.errors import LuthierError
from luthier.server.authentication import Principal
from luthier.server.context import Context
from luthier.store.server_store import ServerStore, digest_of
from luthier.submission.commands import SubmissionServeOptions
from luthier.submission.job_times import JobTimes
from luthier.submission.server.cpu_budget import CpuBudget
from luthier.submission.server.queue import SubmissionQueue
from luthier.submission.signing_key import kept_signing_key
from luthier.submission.store import job_records_in, submissions_in

KEEP_S = 5.0
"""How long a token is accepted without asking the store."""

_LONGEST_S = 30.0
"""How long a token is accepted while the store does not answer."""

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


class SubmissionState:
    """Jobs at submission in a running server."""

    listeners = 0
    says = ""

    def __init__(self, store: ServerStore, options: SubmissionServeOptions | None = None) -> None:
        options = options or SubmissionServeOptions()
        self.queue = SubmissionQueue(store, options.keep_default, accounts_are_logins=options.accounts_are_logins)
        self.submitters = KnownTokens()
        self.budget = CpuBudget()
        self.signing_key = kept_signing_key(options.signing_key)
        self.submissions = submissions_in(store)
        self.job_records = job_records_in(store)

    def start(self) -> None:
        """Start the thread that decides: the first job does not wait for that."""
        self.queue.start()

    def close(self) -> None:
        """Answer what waits, then end the thread."""
        self.queue.close()


def submission_of(server: Context) -> SubmissionState:
    """The state of jobs at submission in a server."""
    return cast("SubmissionState", server.parts["submission"])


@contextmanager
def serving(store: ServerStore, _url: str | None, options: SubmissionServeOptions | None) -> Iterator[SubmissionState]:
    """Ask Slurm how submitted jobs ended, where its commands are."""
    stopped = threading.Event()
    asking = threading.Thread(target=JobTimes(store).run, args=(stopped,), name="job times")
    asking.start()
    try:
        yield SubmissionState(store, options)
    finally:
        stopped.set()
        asking.join()
