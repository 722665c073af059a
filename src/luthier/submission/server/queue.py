"""Jobs that are being submitted: each is matched, decided about and recorded, in one thread.

Everything that waits when the thread is free is answered together, with one commit: a commit takes longer than a match.
"""

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from luthier.errors import UnavailableError
from luthier.store.ownership import own_user
from luthier.store.server_store import ServerStore
from luthier.submission.matching import Match, NewJob, job_of_script
from luthier.submission.server.job_index import LOOK_EVERY_S, JobIndex
from luthier.submission.store import submissions_in
from luthier.submission.store.submitted import Decision, NewSubmission
from luthier.submission.store.tuned_jobs import JobRecord
from luthier.submission.submitted_job import JobText, objection
from luthier.texts import visible

logger = logging.getLogger(__name__)

MOST_WAITING = 500
"""Above this, jobs are submitted without a configuration: their clients do not wait that long."""

LONGEST_WAIT_S = 2.0
"""A job that waited longer is not decided about: its client has submitted it without a configuration."""

_MOST_AT_ONCE = 200
_LONGEST_LINE = 300


@dataclass(frozen=True, slots=True)
class AskedJob:
    """A job that is being submitted, and who may see it."""

    author: str
    job: NewJob
    script: JobText


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """The decision about a job, its number in the store, and the CPU time that the decision took."""

    id: int
    decided: NewSubmission
    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Waiting:
    asked: AskedJob
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[RecordedDecision]"
    since: float


class SubmissionQueue:
    """Decides about jobs that are being submitted.

    `keep_default` is the share of matched jobs that keep the default configuration, so that the two can be compared.
    With `accounts_are_logins`, an account is the user of the cluster with the same name, whose jobs get what that
    account's experiments found; all others get only what an administrator approved.
    """

    def __init__(
        self,
        store: ServerStore,
        keep_default: float = 0.0,
        chance: Callable[[], float] | None = None,
        *,
        accounts_are_logins: bool = False,
    ) -> None:
        self._submissions = submissions_in(store)
        self._keep_default = keep_default
        self._accounts_are_logins = accounts_are_logins
        self._chance = chance or random.SystemRandom().random
        self._index = JobIndex(store, own_user())
        self._waiting: list[_Waiting] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._complaint = ""

    def start(self) -> None:
        """Start the thread, which reads the records first: the first job does not wait for that."""
        with self._changed:
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._work, name="submissions", daemon=True)
                self._thread.start()

    async def decide(self, asked: AskedJob) -> RecordedDecision:
        """The decision about a job, when it is recorded."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(asked, loop, loop.create_future(), time.monotonic())
        with self._changed:
            if self._is_closed or len(self._waiting) >= MOST_WAITING:
                raise UnavailableError("too many jobs are being submitted; submit this one without a configuration")
            self._waiting.append(waiting)
            self._changed.notify()
        return await waiting.answer

    def close(self) -> None:
        """End the thread when everything that waits is answered."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        with suppress(Exception):  # a store that is busy now will be asked again
            self._index.refresh()
            self._index.match(job_of_script("srun true", "luthier", datetime.now(UTC)))  # imports what it needs
        while True:
            with self._changed:
                has_work = self._changed.wait_for(lambda: self._waiting or self._is_closed, LOOK_EVERY_S)
                batch, self._waiting = self._waiting[:_MOST_AT_ONCE], self._waiting[_MOST_AT_ONCE:]
            if has_work and not batch:
                return
            batch = self._without_late(batch)
            try:
                self._index.refresh()
                decided, times = [], [time.thread_time()]
                for one in batch:
                    decided.append(self._decide(one.asked))
                    times.append(time.thread_time())
                numbers = self._submissions.add(decided)
            except Exception as error:  # noqa: BLE001 - the thread must go on, and each client gets the reason
                self._fail(batch, error)
            else:
                self._complaint = ""
                for one, number, new, (began, ended) in zip(batch, numbers, decided, pairwise(times), strict=True):
                    _tell(one, RecordedDecision(number, new, ended - began))

    def _without_late(self, batch: list[_Waiting]) -> list[_Waiting]:
        """Those whose clients may still wait; the others get an error."""
        earliest = time.monotonic() - LONGEST_WAIT_S
        for one in batch:
            if one.since < earliest:
                _tell(one, UnavailableError("the server is busy; submit this job without a configuration"))
        return [one for one in batch if one.since >= earliest]

    def _fail(self, batch: list[_Waiting], error: Exception) -> None:
        if str(error) != self._complaint:  # not the same line many times
            self._complaint = str(error)
            logger.warning("jobs are submitted without a configuration: %s", visible(self._complaint))
        for one in batch:
            _tell(one, error)

    def _decide(self, asked: AskedJob) -> NewSubmission:
        match = self._index.match(asked.job)
        if match is None:
            return NewSubmission(asked.author, asked.job, "none", "no tuned job is similar enough")
        record, offer = self._index.offer(match.record)
        is_own = self._accounts_are_logins and offer.author == asked.job.user
        problem = objection(offer, asked.script) or (None if is_own else self._index.refusal(offer))
        if problem is not None:
            return _matched(asked, match, record, "unused", problem)
        if self._chance() < self._keep_default:
            why = "it keeps the default this time, to compare its time with that of others"
            return _matched(asked, match, record, "default", why)
        return _matched(asked, match, record, "set", "", offer.environment)


def _matched(
    asked: AskedJob,
    match: Match,
    record: JobRecord,
    decision: Decision,
    why: str,
    environment: Mapping[str, str] | None = None,
) -> NewSubmission:
    """The decision about a job that matched a record; `why` it does not get the configuration."""
    settings = " ".join(f"{name}={text}" for name, text in (environment or {}).items())
    found = f"as found by experiment {record.experiment_id} (similarity {match.score:.2f})"
    said = (
        f"sets {settings} {found}" if decision == "set" else f"sets nothing: {why} (experiment {record.experiment_id})"
    )
    return NewSubmission(
        asked.author,
        asked.job,
        decision,
        visible(said)[:_LONGEST_LINE],
        record.id,
        record.experiment_id,
        record.tuned.component,
        match.score,
        match.by_field,
        environment or {},
    )


def _tell(one: _Waiting, answer: RecordedDecision | Exception) -> None:
    with suppress(RuntimeError):  # the loop is closed: the server stops
        one.loop.call_soon_threadsafe(_settle, one.answer, answer)


def _settle(waiting: "asyncio.Future[RecordedDecision]", answer: RecordedDecision | Exception) -> None:
    if waiting.done():  # the client has gone
        return
    if isinstance(answer, Exception):
        waiting.set_exception(answer)
    else:
        waiting.set_result(answer)
