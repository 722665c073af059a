"""Runs batch scripts as Slurm jobs."""

import logging
import os
import secrets
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from luthier.errors import InvalidInputError, NotFoundError, UnavailableError
from luthier.runners import slurm_text
from luthier.runners.base import Runner, RunnerKind, RunnerSetup
from luthier.runners.checks import (
    checked_key,
    checked_slots,
    checked_timeout,
    checked_wait,
    require_free_slot,
    verbatim,
)
from luthier.runners.job_folder import identity_of
from luthier.runners.pace import Pace
from luthier.runners.polling import poll_watched
from luthier.runners.sbatch_options import asked
from luthier.runners.slurm_commands import Controller
from luthier.runners.slurm_folder import SlurmFolder
from luthier.runners.slurm_text import ListedJob
from luthier.runners.supervisor import JobFile
from luthier.trial import BatchJob, Config, Execution, Job

logger = logging.getLogger(__name__)

_LOOK_EVERY_S = (0.05, 1.0)
_FORGOTTEN_AFTER = 3


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch script as one would give it to sbatch, with the variables and the sbatch options of one configuration.

    The values of `environment` reach the script verbatim, whatever they hold. `options` are words for the command line
    of sbatch and win over the script's own `#SBATCH` lines; the name of the job is luthier's. `is_marked` is the same
    as for `Command`. `cwd` is where sbatch is run, by default where luthier runs: the script runs there as well, unless
    it asks for another folder.
    """

    script: str
    environment: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    is_marked: bool = False
    cwd: str | None = None

    def __post_init__(self) -> None:
        if not self.script.startswith("#!"):
            raise InvalidInputError("script: its first line names no interpreter; begin it with #!/bin/bash")
        for name in self.environment:
            if not name or "=" in name:
                raise InvalidInputError(
                    f"environment: {name!r} is not a valid name of a variable; remove the '=', or give a name"
                )
        if (word := slurm_text.refused_option(self.script, self.options)) is not None:
            raise InvalidInputError(
                f"sbatch option {word}: not supported, since each run must be one job on this cluster; remove it"
            )


@dataclass(slots=True)
class _Watched:
    """A job under way, and what is known of it.

    `number` is Slurm's, None until Slurm is known to have the job. Answers to questions asked before `since` say
    nothing about it; `listed` is what the last one said. `seen_running` is when luthier first saw that it had begun;
    `missed` counts the answers in which Slurm did not know it. `foreign` is what is reported of a folder that belongs
    to another configuration, and is not touched.
    """

    folder: SlurmFolder
    name: str
    number: int | None
    since: float
    listed: ListedJob | None = None
    began_at: float | None = None
    seen_running: float | None = None
    has_result: bool = False
    missed: int = 0
    over_since: float | None = None
    last: ListedJob | None = None
    foreign: Execution | None = None


class SlurmRunner:
    """Submits the script that `render` makes from a configuration, each run in `folder/<key>/` with its output files.

    The folder must be one that the compute nodes see under the same path. On the node the script runs under the same
    small supervisor as a local command: it takes the run on only once, so no key is ever executed twice, measures it
    without the time in the queue, and ends it `timeout_s` after its start. Jobs outlive luthier and are adopted when
    their key is submitted again for the same configuration, if necessary by the name of the job.

    A controller that does not answer is waited for, and a queue that is full is tried again: `submit` has accepted the
    job, and `poll` brings it in. A job that Slurm will never take is reported as failed. How a run ended is known once
    Slurm says that its job is over: squeue is asked about all jobs at once, at most every `ask_every_s` seconds and
    less often while nothing happens. A result may take `settle_s` seconds to show through a shared file system.
    """

    def __init__(
        self,
        render: Callable[[Config], Batch],
        folder: str | Path,
        slots: int = 1,
        *,
        grace_s: float = 2.0,
        ask_every_s: float = 1.0,
        settle_s: float = 10.0,
    ) -> None:
        self._render = render
        self._folder = Path(folder).absolute()
        self._slots = checked_slots(slots)
        self._grace_s = checked_wait("grace_s", grace_s)
        self._settle_s = checked_wait("settle_s", settle_s)
        self._watched: dict[str, _Watched] = {}
        self._controller = Controller(checked_wait("ask_every_s", ask_every_s))
        self._looking = Pace(*_LOOK_EVERY_S)

    def submit(self, job: Job) -> None:
        """Submit the job, or adopt it if its key was submitted before, by any process."""
        if checked_key(job.key) in self._watched:
            return
        require_free_slot(self._watched, self._slots)
        if shutil.which("sbatch") is None:
            raise NotFoundError("sbatch: no such program; run luthier where Slurm's commands are, or run locally")
        folder = SlurmFolder(self._folder / job.key)
        try:
            is_new = not folder.run.has_job()
            if is_new:
                _prepare(folder, job, self._render(job.config), self._grace_s)
            watched = _Watched(folder, folder.job_name(), folder.number(), time.monotonic())
            watched.last, watched.foreign = folder.last_word(), folder.run.foreign(job.config)
            if watched.foreign is not None or watched.last is not None or folder.refusal() is not None:
                watched.over_since = watched.since
            elif is_new and not self._controller.is_away:
                self._send(watched, others_queued=True)
        except OSError as error:
            raise UnavailableError(f"{folder.path}: cannot submit the run: {error.strerror}") from error
        self._watched[job.key] = watched
        self._hurry()

    def poll(self, many: Sequence[str], wait_s: float) -> Sequence[Execution]:
        """Return those of the named jobs that have ended; names that were not submitted here are ignored."""
        return poll_watched(self._watched, many, wait_s, self._endings, self._wait)

    def _endings(self, jobs: Collection[_Watched]) -> Sequence[Execution]:
        try:
            self._converse()
            self._look()
            ended = [execution for job in jobs if (execution := self._ending(job))]
        except OSError as error:
            raise UnavailableError(f"{self._folder}: cannot read how runs ended: {error.strerror}") from error
        if ended:
            self._hurry()
        return ended

    def _wait(self, _jobs: Collection[_Watched], left_s: float) -> None:
        self._controller.wait(min(left_s, max(0.0, self._looking.left_s(time.monotonic()))))

    def cancel(self, many: Sequence[str]) -> None:
        """Cancel the named jobs; `poll` ends those that run as soon as Slurm has listed them.

        They are found by name: a controller that lost its state gives the same numbers to other jobs.
        """
        for key in many:
            if key in self._watched and self._watched[key].foreign is None:
                self._watched[key].folder.run.request_cancel()
        self._hurry()

    def started_at(self, key: str) -> float | None:
        """When the time of a run began to count, in seconds since the epoch; None while its job waits or prepares."""
        job = self._watched.get(key)
        return None if job is None or job.foreign is not None or job.began_at is None else job.folder.run.counted_from()

    def batch_job(self, key: str) -> BatchJob | None:
        """What squeue last said about a job; a job that has begun since is shown as running."""
        job = self._watched.get(key)
        if job is None or job.foreign is not None:
            return None
        if job.number is None:
            return BatchJob("", "NOT SUBMITTED", self._controller.complaint or "")
        listed = job.listed or ListedJob(job.number, "SUBMITTED")
        began_at = listed.started_at if job.began_at is None and listed.has_begun else job.began_at
        if began_at is None:
            return BatchJob(str(job.number), listed.state, "" if listed.reason == "None" else listed.reason)
        return BatchJob(str(job.number), listed.state if listed.has_begun else "RUNNING", began_at=began_at)

    def _send(self, job: _Watched, *, others_queued: bool) -> None:
        """Submit a job to Slurm and note in its fields what Slurm answered."""
        answer = self._controller.submit(job.folder.sbatch_words(), others_queued=others_queued)
        if isinstance(answer, str):
            self._refuse(job, answer)
        elif answer is not None:
            job.number = answer
            job.folder.note_number(answer)
        job.since = time.monotonic()

    def _refuse(self, job: _Watched, reason: str) -> None:
        job.folder.note_refusal(reason)
        job.over_since = time.monotonic()

    def _converse(self) -> None:
        """Process Slurm's answer, if there is one, and ask again when it is time."""
        if (answer := self._controller.answer()) is not None:
            self._hear(*answer)
            self._controller.note_reached()
        if any(job.over_since is None for job in self._watched.values()):
            self._controller.ask()

    def _hear(self, listed: Sequence[ListedJob], asked_at: float) -> None:
        """Update every job from an answer of Slurm."""
        by_name: defaultdict[str, list[ListedJob]] = defaultdict(list)
        for entry in listed:
            by_name[entry.name].append(entry)
        others_queued = any(not entry.is_over for entry in listed)
        unwanted: list[int] = []
        forgotten: list[_Watched] = []
        for job in self._watched.values():
            if job.over_since is not None or job.since > asked_at:
                continue
            entries = by_name[job.name]
            if entries:
                unwanted += self._hear_of(job, entries, asked_at)
            elif job.number is not None or job.folder.run.claimed_at() is not None or job.folder.run.is_cancelled():
                job.missed += 1
                if job.has_result or job.missed >= _FORGOTTEN_AFTER:
                    forgotten.append(job)
            elif not self._controller.is_away:
                self._send(job, others_queued=others_queued)
        self._controller.cancel(unwanted)
        if forgotten:
            self._remember(forgotten)

    def _hear_of(self, job: _Watched, entries: Sequence[ListedJob], asked_at: float) -> Sequence[int]:
        """Update one run from what Slurm lists; return the numbers of the jobs to cancel.

        There may be several jobs with its name, if one was accepted although sbatch reported an error.
        """
        alive = [entry.number for entry in entries if not entry.is_over]
        has_begun = job.seen_running is not None and job.seen_running < asked_at
        own = _own(entries, job.folder.number() if has_begun else None)
        job.missed, job.listed = 0, own
        if job.number is None:
            job.number = own.number
            job.folder.note_number(own.number)
        if own.is_over:
            self._note_over(job, own)
        elif has_begun and own.state in slurm_text.WAITING_STATES:
            self._note_over(job, ListedJob(own.number, "REQUEUED"))
        elif own.is_hopeless:
            self._refuse(job, f"Slurm will never start it: {own.reason}")
        elif not job.folder.run.is_cancelled():
            return []
        if alive:
            job.folder.run.request_cancel()
        return alive

    def _note_over(self, job: _Watched, last: ListedJob | None) -> None:
        if last is not None:
            job.folder.note_last_word(last)
        job.last = last
        job.over_since = time.monotonic()

    def _remember(self, jobs: Sequence[_Watched]) -> None:
        """Look up jobs that the controller has forgotten in the accounting, if there is one."""
        listed = self._controller.accounted([job.number for job in jobs if job.number is not None])
        ended = {entry.name: entry for entry in listed if entry.is_over}
        for job in jobs:
            self._note_over(job, ended.get(job.name))

    def _look(self) -> None:
        """Check which runs have begun or written a result."""
        now = time.monotonic()
        if self._looking.left_s(now) > 0:
            return
        self._looking.done(now)
        for job in self._watched.values():
            if job.began_at is None:
                job.began_at = job.folder.run.claimed_at()
                if job.began_at is not None:
                    job.seen_running = time.monotonic()
                    self._looking.hurry()  # it may be short
            if job.began_at is not None and not job.has_result and job.folder.has_result():
                job.has_result = True
                self._looking.hurry()
                self._controller.expect_end()

    def _ending(self, job: _Watched) -> Execution | None:
        if job.over_since is None or job.foreign is not None:
            return job.foreign
        settled = time.monotonic() - job.over_since >= self._settle_s
        execution = job.folder.ending(job.last, settled=settled)
        number = job.folder.number()
        return execution if execution is None or number is None else replace(execution, batch_job=str(number))

    def _hurry(self) -> None:
        self._controller.hurry()
        self._looking.hurry()


def _prepare(folder: SlurmFolder, job: Job, batch: Batch, grace_s: float) -> None:
    """Check the job and write its files; nothing is written if it is invalid."""
    timeout_s = checked_timeout(job.timeout_s)
    environment = verbatim("environment", (f"{name}={value}" for name, value in batch.environment.items()))
    limit_s = None if timeout_s is None else timeout_s + grace_s
    text = slurm_text.batch_script(batch.script, str(folder.path), sys.executable, limit_s)
    name = slurm_text.job_name(job.label or job.key, secrets.token_hex(6))  # another luthier may use the same key
    log = str(folder.path / "slurm.log")
    command = slurm_text.sbatch_command(str(folder.path / "batch"), name, log, batch.options)
    script, cwd = os.fsencode(folder.path / "script"), os.fsencode(folder.path / "cwd")
    asked_for = asked(batch.script, batch.options, os.environ)
    if asked_for.job_name:
        environment = [*verbatim("job name", [f"SLURM_JOB_NAME={asked_for.job_name}"]), *environment]
    folder.prepare(
        JobFile(
            timeout_s, grace_s, cwd, [script], environment, identity=identity_of(job.config), is_marked=batch.is_marked
        ),
        name=name,
        script=verbatim("script", [batch.script])[0],
        batch=os.fsencode(text),
        sbatch=verbatim("sbatch options", [str(Path(batch.cwd or ".").absolute()), *command]),
        output=asked_for.encoded(name) if asked_for.has_output else None,
    )


def _own(entries: Sequence[ListedJob], number: int | None) -> ListedJob:
    """The job that claimed the run, by its number; before that, one that may do so, or the last one."""
    by_number = {entry.number: entry for entry in entries}
    alive = [entry.number for entry in entries if not entry.is_over]
    return by_number[number] if number in by_number else by_number[max(alive or by_number)]


def _make(setup: RunnerSetup, _argument: str) -> Runner:
    return SlurmRunner(setup.batch, setup.folder, setup.slots)


SLURM = RunnerKind(_make, is_local=False, program="sbatch")
"""Submits batch scripts to Slurm."""
