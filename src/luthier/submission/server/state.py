"""What the server keeps for jobs at submission, and what works beside it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from luthier.server.context import Context
from luthier.store.server_store import ServerStore
from luthier.submission.commands import SubmissionServeOptions
from luthier.submission.job_times import JobTimes
from luthier.submission.server.cpu_budget import CpuBudget
from luthier.submission.server.known_tokens import KnownTokens
from luthier.submission.server.queue import SubmissionQueue
from luthier.submission.signing_key import kept_signing_key
from luthier.submission.store import job_records_in, submissions_in


class SubmissionState:
    """Jobs at submission in a running server."""

    listeners = 0

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
