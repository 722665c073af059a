"""Simulated runs in virtual time, for tests and benchmarks."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from luthier.errors import InvalidInputError
from luthier.runners.checks import checked_slots, not_adopted, require_free_slot
from luthier.trial import Config, Execution, Job, Lost, Problem, Pruned, TimedOut


@dataclass(frozen=True, slots=True)
class ReplayedRun:
    """How long a run takes, and the value it returns or the problem it ends with; with `math.inf` it never ends."""

    duration_s: float
    result: float | Problem

    def __post_init__(self) -> None:
        if not self.duration_s >= 0:
            raise InvalidInputError(f"duration_s: a run cannot take {self.duration_s} s; give 0 or more")


Answers: TypeAlias = Callable[[Config, int, float], ReplayedRun]
"""Called with the configuration, how often it ran before, and the virtual time of its start."""


@dataclass(frozen=True, slots=True)
class _Run:
    key: str
    started_at: float
    ends_at: float
    result: float | Problem
    config: Config

    def execution(self) -> Execution:
        duration_s = self.ends_at - self.started_at
        if isinstance(self.result, Lost):
            return Execution(self.key, self.started_at, duration_s, self.result)
        metrics = {"wall_s": duration_s}
        if isinstance(self.result, float | int):
            return Execution(self.key, self.started_at, duration_s, metrics=metrics, value=float(self.result))
        return Execution(self.key, self.started_at, duration_s, self.result, metrics)


class ReplayRunner:
    """Simulates jobs: `answers` decides how each of them ends, and only `poll` lets virtual time pass.

    `poll` moves the time to the first end among the named jobs or by `wait_s`, whichever comes first, so that an
    engine that is given `runner.clock` as its clock simulates hours in a moment, and in the same way every time.
    """

    def __init__(self, answers: Answers, slots: int = 1) -> None:
        self._answers = answers
        self._slots = checked_slots(slots)
        self._now = 0.0
        self._repeats: Counter[Config] = Counter()
        self._runs: dict[str, _Run] = {}
        self._reported: dict[str, _Run] = {}

    @property
    def now(self) -> float:
        """The virtual time in seconds, from 0."""
        return self._now

    def clock(self) -> float:
        """The virtual time, as a function to hand on."""
        return self._now

    def submit(self, job: Job) -> None:
        """Start the job at the present virtual time; a key that ran before is reported again, not run again.

        For another configuration it is reported as lost.
        """
        if job.key in self._runs:
            return
        require_free_slot(self._runs, self._slots)
        if (past := self._reported.get(job.key)) is not None:
            lost = self._run(job, ReplayedRun(0.0, not_adopted(job.key)))
            self._runs[job.key] = past if past.config == job.config else lost
            return
        answer = self._answers(job.config, self._repeats[job.config], self._now)
        self._repeats[job.config] += 1
        if job.timeout_s is not None and answer.duration_s > job.timeout_s:
            answer = ReplayedRun(job.timeout_s, TimedOut(f"took longer than {job.timeout_s:g} s"))
        self._runs[job.key] = self._run(job, answer)

    def _run(self, job: Job, answer: ReplayedRun) -> _Run:
        return _Run(job.key, self._now, self._now + answer.duration_s, answer.result, job.config)

    def poll(self, many: Sequence[str], wait_s: float) -> Sequence[Execution]:
        """Return those of the named jobs that have ended, in that order; unknown names are ignored."""
        wanted = set(many)
        runs = [run for run in self._runs.values() if run.key in wanted]
        first_end = min((run.ends_at for run in runs), default=math.inf)
        until = min(first_end, self._now + max(0.0, wait_s))
        if math.isfinite(until):
            self._now = max(self._now, until)
        ended = sorted((run for run in runs if run.ends_at <= self._now), key=lambda run: run.ends_at)
        for run in ended:
            self._reported.setdefault(run.key, self._runs.pop(run.key))
        return [run.execution() for run in ended]

    def cancel(self, many: Sequence[str]) -> None:
        """Stop the named jobs at the present virtual time."""
        for key in many:
            run = self._runs.get(key)
            if run is not None and run.ends_at > self._now:
                self._runs[key] = replace(run, ends_at=self._now, result=Pruned("cancelled"))

    def started_at(self, key: str) -> float | None:
        """When the job began, in virtual time; None if it was reported, or never submitted."""
        return self._runs[key].started_at if key in self._runs else None
