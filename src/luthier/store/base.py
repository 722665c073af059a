"""The interface of stores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias

from luthier.trial import NO_JOBS, BatchJob, Json, Run

Status: TypeAlias = Literal["queued", "running", "stopped", "finished", "no result", "failed"]
"""The status of an experiment.

`queued` experiments wait for a worker; `stopped` and `failed` ones can be resumed; `running` without a living owner
means a crash. Those that ended are `finished` or, if there is no configuration to recommend because runs failed, have
`no result`. `failed` means that luthier itself could not continue.
"""

ENDED: Mapping[str, str] = MappingProxyType({"finished": "is finished", "no result": "has no result"})
"""The status of experiments that have ended, with the words for messages; only a larger budget continues them."""


StopRequest: TypeAlias = Literal["verify", "drain", "kill"]
"""How an experiment is asked to stop, weakest first.

`verify` ends the search, not the experiment: the best configuration is still verified. `drain` waits for active runs;
`kill` kills them.
"""

STOPS: tuple[StopRequest, ...] = ("drain", "kill")
"""The requests after which no new run starts."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that works on an experiment; `started` distinguishes two processes with the same pid.

    `claim` is different for every claim (a fencing token): a process that lost an experiment can no longer write to it,
    even if machines share a name or the same process has claimed it again.
    """

    host: str
    pid: int
    started: str
    claim: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """Where luthier itself runs, and its version; the runs of a batch system are made elsewhere."""

    host: str
    cpu: str
    cores: int
    version: str


@dataclass(frozen=True, slots=True)
class Period:
    """A period in which a process worked on an experiment; `until` is None for the last one."""

    since: float
    until: float | None
    machine: Machine


@dataclass(frozen=True, slots=True)
class RequestedBy:
    """Who requested an experiment that a worker will run.

    `author` is the name of the user, `source` the text that describes the experiment, if there is one. A second request
    with the same `key` and author does not create a second experiment.
    """

    author: str
    source: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One experiment in the store, without its runs.

    `uid` is globally unique and names the experiment's files; `settings` is everything needed to run it again; `result`
    is the conclusion of the engine when it ended. `unattended` experiments are run by workers, also after a crash; the
    others were started on the command line, and their `author` is empty. All users can see `shared` experiments.
    `jobs` are the jobs that active runs have in a batch system, by the number of the run, as of the last heartbeat.
    `periods` are those in which a process worked on it, as far as they were recorded.
    """

    id: int
    uid: str
    name: str
    created_at: float
    settings: Mapping[str, Json]
    status: Status
    stop_requested: StopRequest | None = None
    owner: Owner | None = None
    seen_at: float | None = None
    result: Mapping[str, Json] | None = None
    runs: int = field(default=0)
    unattended: bool = False
    author: str = ""
    shared: bool = False
    source: str | None = None
    jobs: Mapping[int, BatchJob] = field(default_factory=lambda: NO_JOBS)
    periods: tuple[Period, ...] = ()


class Store(Protocol):
    """Stores experiments and their runs; the history is only ever appended to.

    Every method is one transaction. A store that cannot be reached, is locked or is full raises `StoreError` and writes
    nothing; an unknown experiment raises `NotFoundError`. Numbers must be finite; texts may contain any character. A
    store can be used from several threads.
    """

    def create(self, name: str, settings: Mapping[str, Json], now: float, origin: RequestedBy | None = None) -> Record:
        """Add an experiment without an owner: `running`, or `queued` and unattended if it has an origin.

        If the origin's author has used its key before, the experiment created then is returned unchanged.
        """
        ...

    def experiments(self) -> Sequence[Record]:
        """Every experiment, oldest first."""
        ...

    def experiment(self, experiment_id: int) -> Record:
        """One experiment."""
        ...

    def runs(self, experiment_id: int, since: int = 0) -> Sequence[Run]:
        """The runs of an experiment that were submitted or ended at event `since` or later, in order of submission."""
        ...

    def claim(
        self,
        experiment_id: int,
        owner: Owner,
        now: float,
        instead_of: Owner | None,
        status: Status | None = None,
        machine: Machine | None = None,
        settings: Mapping[str, Json] | None = None,
    ) -> bool:
        """Become the owner if the owner is still `instead_of`; of several simultaneous claims exactly one succeeds.

        With a `status`, the experiment must still have it: one that was stopped in the queue is not claimed. The status
        becomes `running`. A request to stop a dead owner is dropped, except `verify`; one made before the first claim
        is kept. With a `machine`, a new period of work is recorded; the last one ended with its last heartbeat. New
        `settings` replace those of the experiment, and any request to stop is dropped.
        """
        ...

    def heartbeat(
        self, experiment_id: int, owner: Owner, now: float, jobs: Mapping[int, BatchJob] | None = None
    ) -> StopRequest | None:
        """Record that the owner is alive; return the stop request, if there is one.

        `jobs` replace those of the record; None leaves them as they are, and the next claim or close removes them.
        Raises `InUseError` if the experiment has another owner now.
        """
        ...

    def request_stop(self, experiment_id: int, how: StopRequest = "drain") -> None:
        """Ask the owner of the experiment to stop; ignored unless the experiment is `running` or `queued`.

        A `queued` experiment becomes `stopped` immediately. A request is not weakened by a later one.
        """
        ...

    def append(self, experiment_id: int, run: Run, owner: Owner | None = None) -> None:
        """Record a run that is about to be submitted; recording the same run again changes nothing.

        Another run with a number or a `submit_order` that is already used is an error (`StoreError`), and so is a run
        with any field of its ending. With an `owner`, `InUseError` is raised and nothing is written unless this owner
        still has the experiment: a claim and a write of the former owner never overlap.
        """
        ...

    def finish(self, experiment_id: int, run: Run, owner: Owner | None = None) -> None:
        """Record how a run ended. Only the first ending counts; a second one changes nothing.

        It is an error (`StoreError`) if the run was not appended, was appended with other values, or has no outcome or
        `finish_order`. `owner` is as for `append`.
        """
        ...

    def close(self, experiment_id: int, owner: Owner, status: Status, result: Mapping[str, Json] | None) -> None:
        """Give up ownership, clear any stop request, and record the status and the result.

        A request to `verify` is kept until the experiment has ended. Raises `InUseError` if the experiment has another
        owner now; repeating the same call changes nothing.
        """
        ...
