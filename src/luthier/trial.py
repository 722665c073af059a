"""The frozen values that travel between layers: configuration, job, execution, outcome, run, trial, sample, ..."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

Value: TypeAlias = bool | int | float | str
"""What one parameter can be set to."""

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
"""A value that JSON can represent."""

Purpose: TypeAlias = Literal["default", "search", "verify"]
"""Why a run was made."""

NO_METRICS: Mapping[str, float] = MappingProxyType({})


class Config(Mapping[str, Value]):
    """One value for every parameter: an immutable, hashable mapping that equals a plain dict with the same items."""

    __slots__ = ("_hash", "_values")

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(values)
        self._hash: int | None = None

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Config):
            return self._values == other._values
        return Mapping.__eq__(self, other)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._values.items()))
        return self._hash

    def __repr__(self) -> str:
        return repr(self._values)


@dataclass(frozen=True, slots=True)
class Completed:
    """The run succeeded and was measured; `others` are the values of further objectives, in the experiment's order."""

    value: float
    others: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The run failed, or its output contained no number."""

    reason: str


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The run exceeded its time limit and was killed; `at_least` is a lower bound of its value, if one is known."""

    reason: str
    at_least: float | None = None


@dataclass(frozen=True, slots=True)
class Pruned:
    """The run was stopped because it could no longer win; `at_least` as for `TimedOut`."""

    reason: str
    at_least: float | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """It is unknown how the run ended (a dead node, a second Ctrl-C); it says nothing about the configuration."""

    reason: str


Problem: TypeAlias = Failed | TimedOut | Pruned | Lost
Outcome: TypeAlias = Completed | Problem

OUTCOME_NAMES: Mapping[type[Outcome], str] = MappingProxyType(
    {Completed: "completed", Failed: "failed", TimedOut: "timed out", Pruned: "pruned", Lost: "lost"}
)
"""The name of each outcome, for people, programs and stores."""


def outcome_name(outcome: Outcome | None) -> str:
    """The name of an outcome; `running` for a run that has not ended."""
    return "running" if outcome is None else OUTCOME_NAMES[type(outcome)]


@dataclass(frozen=True, slots=True)
class Job:
    """A request to a runner: run this configuration once. The key identifies the run, also after a restart.

    `label` is a short name for people, where a runner can show one: it need not be unique. A run that a process on
    another machine submitted is marked by `from_elsewhere`: where jobs run on this machine, it is never started here.
    """

    key: str
    config: Config
    timeout_s: float | None = None
    label: str = ""
    from_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A job of a batch system that has not ended: its number, its state and why it waits, in the system's own words.

    `number` is empty while the system has not accepted the job. `began_at` is when it began, in seconds since the
    epoch; None while it waits in the queue.
    """

    number: str
    state: str
    reason: str = ""
    began_at: float | None = None

    @property
    def text(self) -> str:
        """Number, state and reason for people."""
        name = f"job {self.number} " if self.number else ""
        return f"{name}{self.state}" + (f" ({self.reason})" if self.reason else "")


NO_JOBS: Mapping[int, BatchJob] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Execution:
    """What a runner reports about one job, before a measure turns it into an outcome.

    `problem` is None when the job succeeded. `value` is the number that a Python function returned, and `others` are
    those that it returned after the first. `logs` is the folder with the files `stdout` and `stderr`. `batch_job` is
    the number of the job in the batch system, if there was one.
    """

    key: str
    started_at: float
    duration_s: float
    problem: Problem | None = None
    metrics: Mapping[str, float] = field(default_factory=lambda: NO_METRICS)
    value: float | None = None
    logs: str | None = None
    others: tuple[float, ...] = ()
    batch_job: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a configuration as the store keeps it; `outcome` is None while it is running.

    `submit_order` and `finish_order` count the events of one experiment in a single sequence, so that its history can
    be replayed exactly as it happened. `uid` is random: a store that was restored from a backup gives new runs the
    numbers of runs that it has lost, and must not use the files of those. `batch_job` is as in `Execution`.
    """

    number: int
    trial: int
    purpose: Purpose
    config: Config
    submitted_at: float
    submit_order: int
    finish_order: int | None = None
    started_at: float | None = None
    duration_s: float | None = None
    outcome: Outcome | None = None
    metrics: Mapping[str, float] = field(default_factory=lambda: NO_METRICS)
    logs: str | None = None
    uid: str = ""
    batch_job: str | None = None

    def key(self, experiment_uid: str) -> str:
        """The key of this run in its runner; runs recorded before schema 0003 have no `uid`."""
        return "-".join(filter(None, (experiment_uid, str(self.number), self.uid)))

    @property
    def began_at(self) -> float:
        """When it started or, if that is unknown, when it was submitted."""
        return self.submitted_at if self.started_at is None else self.started_at


@dataclass(frozen=True, slots=True)
class Estimate:
    """The value of a configuration, estimated from its completed runs.

    `low` and `high` bound it with 95 % confidence and, like the sample `deviation`, are None for a single run.
    """

    value: float
    count: int
    deviation: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """A configuration under test: the outcomes of its runs so far, and the estimate from them (None without a number).

    `others` are the estimates of further objectives, where there are any.
    """

    config: Config
    outcomes: tuple[Outcome, ...]
    estimate: Estimate | None
    others: tuple[Estimate, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """A value that a client of an on-line session reported; None if its run failed.

    `number` counts the samples of a session, `search` its searches; both begin with 1. The samples in their order
    restore the session.
    """

    number: int
    search: int
    client: str
    config: Config
    value: float | None
    at: float
