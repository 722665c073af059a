"""What a server stores in addition to the history: queue, accounts, audit log and components."""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from luthier.store.base import Owner, Record, Status, StopRequest, Store
from luthier.trial import BatchJob, Json

if TYPE_CHECKING:
    from luthier.store.database import Database

Role: TypeAlias = Literal["submitter", "viewer", "user", "admin"]
"""The rights of a user: `submitter` can only ask for the configurations of jobs and report their times, `viewer` can
look, `user` can also launch experiments and change their own, `admin` all."""

CredentialKind: TypeAlias = Literal["session", "token", "once"]
"""A session of a browser, a token for programs, or an invitation that works once."""

LOCAL_USER = "local"
"""The only user of a server without accounts, and of local sockets; an account cannot have this name."""

_REMOVED = "/removed"


@dataclass(frozen=True, slots=True)
class Changes:
    """What changes of an experiment: status, number of events so far, the stop request, its batch jobs."""

    status: str
    events: int
    stop_request: StopRequest | None
    jobs: Mapping[int, BatchJob]


class Queue(Protocol):
    """Lists, queues, shares and deletes experiments; the history is a `Store`. Every method is one transaction."""

    def records(
        self,
        *,
        author: str | None = None,
        status: Status | Sequence[Status] | None = None,
        text: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Sequence[Record]:
        """The newest experiments first; with an `author`, only theirs and the shared ones.

        They are without `source` and `periods`.
        `text` is a part of the name, upper or lower case; `before` is the number of the last one on the previous page.
        """
        ...

    def outcomes(self, *, limit: int = 100) -> Mapping[str, int]:
        """The number of runs of the newest experiments by outcome, including 0; active runs count as `running`."""
        ...

    def waiting(self) -> Sequence[Record]:
        """The unattended experiments that are `queued` or `running`, oldest first, without settings and `source`."""
        ...

    def enqueue(self, experiment_id: int, instead_of: Owner | None) -> bool:
        """Queue an experiment that has not ended for the workers; False if its owner is no longer `instead_of`.

        It becomes unattended and `queued`, without an owner or a stop request. An experiment that has ended is an error
        (`InvalidInputError`).
        """
        ...

    def enqueue_again(self, record: Record, settings: Mapping[str, Json]) -> bool:
        """Queue an experiment with new settings, also one that has ended; False if owner or status have changed."""
        ...

    def share(self, experiment_id: int, *, shared: bool) -> None:
        """Share an experiment with all users, or stop sharing it."""
        ...

    def delete(self, experiment_id: int, instead_of: Owner | None) -> bool:
        """Delete an experiment and its runs; False if its owner is no longer `instead_of`.

        Its number is never used again.
        """
        ...

    def changes(self, experiment_id: int) -> Changes:
        """What shows whether something changed."""
        ...

    def note_worker(self, worker: Owner, now: float) -> None:
        """Record that a worker is alive; those that have not been seen for a day are forgotten."""
        ...

    def forget_worker(self, worker: Owner) -> None:
        """Record that a worker has ended."""
        ...

    def workers(self) -> Sequence[tuple[Owner, float]]:
        """The workers, each with the time at which it was last seen; one that died is among them for a day."""
        ...


@dataclass(frozen=True, slots=True)
class Approval:
    """A variable of a component that may be set in jobs of other people, with the values that it may have.

    `allowed` is in the notation of `luthier.spec.approvals`; `version` is that of the component that the administrator
    looked at.
    """

    component: str
    variable: str
    allowed: str
    version: str
    approved_by: str
    approved_at: float


class Components(Protocol):
    """The registered components, each as the text of a YAML file. Every method is one transaction."""

    def names(self) -> list[str]:
        """The names of all components, sorted."""
        ...

    def text(self, name: str) -> str:
        """The text of one component; `NotFoundError` if the name is unknown."""
        ...

    def put(self, texts: Mapping[str, str], *, replace: bool) -> None:
        """Register components, all of them or none.

        If one of them is registered already and `replace` is false, that is an error (`InvalidInputError`). The
        approvals of a component whose text changes are deleted.
        """
        ...

    def remove(self, name: str) -> None:
        """Delete a component and its approvals; `NotFoundError` if the name is unknown."""
        ...

    def approvals(self, name: str | None = None) -> Sequence[Approval]:
        """What is approved for one component, or for all, by component and variable."""
        ...

    def approve(self, name: str, text: str, approvals: Sequence[Approval]) -> None:
        """Approve variables of a component, all of them or none; those approved before are replaced.

        `text` is that of the component as the administrator saw it; if it has changed meanwhile, that is an error
        (`InvalidInputError`).
        """
        ...

    def withdraw(self, name: str, variables: Collection[str] | None = None) -> Sequence[str]:
        """Delete approvals of a component, by default all; returns the variables that were approved until then."""
        ...


def author_after_removal(name: str) -> str:
    """The author of experiments whose user was removed; because of the `/`, no account can have this name."""
    return f"{name}{_REMOVED}"


def is_no_account(author: str) -> bool:
    """Whether an author is the command line, the user of a server without accounts, or an account that was removed."""
    return author in ("", LOCAL_USER) or author.endswith(_REMOVED)


def shown_author(author: str) -> str:
    """The author as shown to users."""
    return f"{author.removesuffix(_REMOVED)} (removed)" if author.endswith(_REMOVED) else author


@dataclass(frozen=True, slots=True)
class User:
    """A user of the server; without `password_hash`, login with a password is disabled."""

    name: str
    role: Role
    created_at: float
    password_hash: str | None = None
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class Credential:
    """A secret that identifies a user. Only its digest is stored, so it cannot be read from the database."""

    id: int
    user: str
    kind: CredentialKind
    label: str
    created_at: float
    expires_at: float | None = None
    used_at: float | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the audit log: time, user, action and target."""

    id: int
    at: float
    user: str
    action: str
    target: str
    detail: str = ""


def digest_of(secret: str) -> str:
    """The digest under which a secret is stored: secrets are random and long, so a plain hash is enough."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class Accounts(Protocol):
    """Users, their credentials and the audit log. Every method is one transaction."""

    def users(self) -> Sequence[User]:
        """Every user, by name."""
        ...

    def user(self, name: str) -> User:
        """One user; `NotFoundError` if the name is unknown."""
        ...

    def put_user(self, user: User) -> None:
        """Add a user, or change the user with this name; a name has 1 to 200 characters."""
        ...

    def remove_user(self, name: str) -> None:
        """Delete a user and their credentials; the audit log stays.

        Their experiments and on-line sessions stay too, with `author_after_removal` as author, so that a later account
        with the same name does not get them. `NotFoundError` if the name is unknown.
        """
        ...

    def grant(self, digest: str, issued: Credential) -> Credential:
        """Store a new credential under the digest of its secret; the store numbers it.

        Its user may be unknown to the store. Credentials that have expired by then are deleted. A digest that is
        already stored is an error (`InvalidInputError`).
        """
        ...

    def find(self, digest: str, now: float) -> Credential | None:
        """The credential with this digest if it has not expired; its last use is recorded to the minute.

        A credential of kind `once` is deleted: of several simultaneous calls exactly one gets it.
        """
        ...

    def credentials(self, user: str) -> Sequence[Credential]:
        """The credentials of one user, oldest first; some may have expired."""
        ...

    def revoke(self, credential_id: int) -> None:
        """Delete a credential if it exists."""
        ...

    def note(self, entry: Entry) -> None:
        """Add a line to the audit log; the store numbers it."""
        ...

    def entries(self, *, before: int | None = None, limit: int = 100) -> Sequence[Entry]:
        """The newest lines of the audit log first."""
        ...


class Explanations(Protocol):
    """What the default and the best configuration of an experiment did under the counters.

    Every method is one transaction. An explanation is deleted with its experiment.
    """

    def get(self, experiment_id: int) -> Mapping[str, Json] | None:
        """The explanation of an experiment; None without one."""
        ...

    def put(self, experiment_id: int, explanation: Mapping[str, Json]) -> None:
        """Store the explanation of an experiment instead of an earlier one; `NotFoundError` without the experiment."""
        ...


class Learned(Protocol):
    """What luthier has learned from the experiments of the store, by name. Every method is one transaction."""

    def get(self, name: str) -> Mapping[str, Json] | None:
        """What was learned under this name; None if nothing was."""
        ...

    def change(self, name: str, better: Callable[[Mapping[str, Json] | None], Mapping[str, Json]]) -> None:
        """Replace what was learned by what `better` makes from it; of two simultaneous changes none is lost."""
        ...


@dataclass(frozen=True, slots=True)
class ServerStore:
    """Everything that a server stores, in one database; `where` names the database, without its password.

    Wings keep their tables in the same `database`.
    """

    history: Store
    queue: Queue
    accounts: Accounts
    components: Components
    explanations: Explanations
    learned: Learned
    database: "Database"
    where: str
