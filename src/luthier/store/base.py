"""The plug point of histories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from luthier.trial import Run

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
"""What survives a round trip through JSON."""

Status: TypeAlias = Literal["queued", "running", "stopped", "finished", "failed"]
"""Where an experiment stands.

`queued` waits for a worker; `stopped` and `failed` can be resumed; `running` without a living owner means a crash.
"""


StopRequest: TypeAlias = Literal["drain", "kill"]
"""How an experiment is asked to end: let what is running finish, or kill it."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that works on an experiment; `started` tells two processes with one pid apart.

    `claim` is different for every claim (a fencing token): whoever lost an experiment cannot write to it any more, even
    where machines share a name, or where the same process has claimed it again.
    """

    host: str
    pid: int
    started: str
    claim: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """How an experiment came about that workers are to take care of.

    `author` is the name of the user who asked for it, `source` the text that describes it, if there was one. The same
    `key` of the same author is the same request: it makes no second experiment.
    """

    author: str
    source: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One experiment as the store keeps it, without its runs.

    `uid` is unique in the world and names the experiment's files; `settings` is everything needed to run it again;
    `result` is what the engine concluded when it ended. `unattended` experiments are taken up by workers, also after a
    crash; the others belong to whoever started them on the command line. `author` is empty for those. `shared` ones are
    for every user to see.
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


class Store(Protocol):
    """Keeps experiments and their runs: values in, values out, history only ever appended.

    Every method is one transaction. A store that cannot be reached, is locked or has no room raises `StoreError` and
    leaves nothing half written; an experiment that is not there raises `NotFoundError`. Numbers must be finite; texts
    may hold any character. A store can be used from several threads.
    """

    def create(self, name: str, settings: Mapping[str, Json], now: float, origin: Origin | None = None) -> Record:
        """Add an experiment without an owner: `running`, or `queued` and unattended if it has an origin.

        If the origin's author has used its key before, the experiment made then is returned, whatever it is.
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
        self, experiment_id: int, owner: Owner, now: float, instead_of: Owner | None, status: Status | None = None
    ) -> bool:
        """Become the owner if the owner is still `instead_of`; of several claims at once exactly one succeeds.

        With a `status`, the experiment must still have it: one that was stopped while it was waiting is not taken up.
        The experiment is `running` from then on. A request to stop that a dead owner left behind is dropped; one made
        before anybody took up the experiment stands.
        """
        ...

    def heartbeat(self, experiment_id: int, owner: Owner, now: float) -> StopRequest | None:
        """Note that the owner lives; return how somebody asked the experiment to stop, if anybody did.

        Raises `InUseError` when the experiment belongs to someone else by now.
        """
        ...

    def request_stop(self, experiment_id: int, how: StopRequest = "drain") -> None:
        """Ask whoever works on the experiment to end it; nothing is noted unless it is `running`.

        One that is `queued` is `stopped` from then on. A request to kill is not weakened by a later one to drain.
        """
        ...

    def append(self, experiment_id: int, run: Run, owner: Owner | None = None) -> None:
        """Record a run that is about to be submitted; recording the very same run again changes nothing.

        Another run under a number or a `submit_order` already taken is an error (`StoreError`), and so is a run that
        carries any of its ending. With an `owner`, `InUseError` is raised and nothing written unless the experiment is
        still theirs: a claim and a write of the former owner never overlap.
        """
        ...

    def finish(self, experiment_id: int, run: Run, owner: Owner | None = None) -> None:
        """Record how a run ended. The first ending of a run stays: another one changes nothing.

        A run that was never appended, or was appended as another one, or that lacks its outcome or `finish_order`, is
        an error (`StoreError`). `owner` is as for `append`.
        """
        ...

    def close(self, experiment_id: int, owner: Owner, status: Status, result: Mapping[str, Json] | None) -> None:
        """Give up ownership, clear any request to stop, and note how things stand and what was concluded.

        Raises `InUseError` when the experiment belongs to someone else by now; the same call again changes nothing.
        """
        ...
