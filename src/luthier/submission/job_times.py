"""Asks Slurm how submitted jobs ended, and withdraws configurations that make jobs slower."""

import logging
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from luthier.errors import LuthierError, NotFoundError
from luthier.runners.slurm_commands import call
from luthier.store.server_store import Entry, ServerStore
from luthier.submission.benefit import effect_of
from luthier.submission.store import job_records_in, submissions_in
from luthier.texts import visible

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 60.0
"""How often Slurm is asked; it forgets jobs after MinJobAge, which is 300 s by default."""

_FIELDS = ("JobID", "UserName", "State", "StartTime", "EndTime", "Comment", "admin_comment")
_STATES = "COMPLETED,FAILED,TIMEOUT,CANCELLED,OUT_OF_MEMORY,NODE_FAIL,PREEMPTED,BOOT_FAIL,DEADLINE"
_DECISION = re.compile(r"luthier:([0-9]{1,10})")
_PATIENCE_S = 30.0
_LONGEST_MEMORY = 100_000


@dataclass(frozen=True, slots=True)
class EndedSlurmJob:
    """A job that ended, as Slurm says: `decision` is the number in its comment."""

    job_id: str
    user: str
    state: str
    elapsed_s: float | None
    decision: int


def squeue_command(mark: str) -> list[str]:
    """The command that lists jobs that ended; each field ends with a `mark` that no comment can contain by chance."""
    fields = ",".join(f"{field}:{mark}" for field in _FIELDS)
    return ["squeue", "--all", "--noheader", f"--states={_STATES}", f"--Format={fields}"]


def parse_ended(text: str, mark: str) -> list[EndedSlurmJob]:
    """The jobs in an answer of squeue that have the number of a decision in one of their comments."""
    fields = text.split(mark)[:-1]
    found = []
    for start in range(0, len(fields) - len(_FIELDS) + 1, len(_FIELDS)):
        job_id, user, state, began, ended, *comments = (one.strip() for one in fields[start : start + len(_FIELDS)])
        decision = next(filter(None, map(_DECISION.fullmatch, reversed(comments))), None)
        if decision is not None:
            found.append(EndedSlurmJob(job_id, user, state, _elapsed(began, ended), int(decision[1])))
    return found


class JobTimes:
    """Writes the times of jobs into the store, and withdraws records that make jobs slower or fail."""

    def __init__(self, store: ServerStore, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[str, None] = {}

    def look(self) -> int:
        """Ask Slurm once; return how many jobs were new."""
        mark = f"|{secrets.token_hex(8)}|"
        new = [
            one for one in parse_ended(call(squeue_command(mark), patience_s=_PATIENCE_S), mark) if self._is_new(one)
        ]
        records = {record for one in new if (record := self._note(one)) is not None}
        for record in sorted(records):
            self.check(record)
        return len(new)

    def check(self, record_id: int) -> str | None:
        """Withdraw a record if jobs with its configuration are slower, or fail more often; return the reason."""
        reason = effect_of(submissions_in(self._store).ended(record_id)).harm
        if reason is None or job_records_in(self._store).get(record_id).withdrawn is not None:
            return None
        job_records_in(self._store).withdraw(record_id, reason)
        self._store.accounts.note(Entry(0, self._clock(), "luthier", "withdraw", f"job record {record_id}", reason))
        logger.warning("job record %d is not used any more: %s", record_id, reason)
        return reason

    def run(self, stopped: threading.Event) -> None:
        """Ask Slurm from time to time, until the event is set; nothing happens where there is no squeue."""
        complaint = ""
        while shutil.which("squeue") is not None and not stopped.wait(LOOK_EVERY_S):
            try:
                self.look()
                complaint = ""
            except (LuthierError, OSError) as error:
                if str(error) != complaint:  # not the same line every minute
                    complaint = str(error)
                    logger.warning("times of jobs are not known: %s", visible(complaint))

    def _is_new(self, ended: EndedSlurmJob) -> bool:
        if ended.job_id in self._known:
            return False
        if len(self._known) >= _LONGEST_MEMORY:
            self._known.clear()
        self._known[ended.job_id] = None
        return True

    def _note(self, ended: EndedSlurmJob) -> int | None:
        """Store how a job ended; its record if it matched one, None if the comment belongs to another job."""
        submissions = submissions_in(self._store)
        try:
            submitted = submissions.get(ended.decision)
        except NotFoundError:
            return None
        if submitted.job.user != ended.user:
            return None  # anybody can write a comment
        is_first = submissions.note_end(ended.decision, ended.job_id, ended.state, ended.elapsed_s)
        return submitted.record_id if is_first else None


def _elapsed(began: str, ended: str) -> float | None:
    """The time between two moments in seconds since the epoch; None if one is missing."""
    return float(int(ended) - int(began)) if began.isdecimal() and ended.isdecimal() else None
