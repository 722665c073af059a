"""The plug points of what a server keeps beside the history: requests from outside, users, and what they did."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from luthier.store.base import Owner, Record, Status, Store

Role: TypeAlias = Literal["viewer", "user", "admin"]
"""What a user may do: look, also launch and change what is their own, or everything."""

PassKind: TypeAlias = Literal["session", "token", "once"]
"""A browser's session, a token for programs, or an invitation that works a single time."""

_REMOVED = "/removed"


class Desk(Protocol):
    """Where experiments are asked for; the history itself is a `Store`. Every method is one transaction."""

    def records(
        self,
        *,
        author: str | None = None,
        status: Status | None = None,
        text: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Sequence[Record]:
        """The newest experiments first, without their `source`; with an `author` theirs and the shared ones only.

        `text` is part of the name, in small letters or capitals; `before` is the number of the last one already seen.
        """
        ...

    def outcomes(self, *, limit: int = 100) -> Mapping[str, int]:
        """How many runs of the newest experiments ended in which way, 0 included; those under way are `running`."""
        ...

    def waiting(self) -> Sequence[Record]:
        """The unattended experiments that are `queued` or `running`, oldest first, without settings and `source`."""
        ...

    def enqueue(self, experiment_id: int, instead_of: Owner | None) -> bool:
        """Let workers go on with an experiment that is not finished; False if its owner is not `instead_of` by now.

        It is unattended, `queued` and nobody's from then on, and a request to stop is dropped. One that is finished is
        an error (`InvalidInputError`).
        """
        ...

    def share(self, experiment_id: int, *, shared: bool) -> None:
        """Let every user see an experiment, or no longer."""
        ...

    def delete(self, experiment_id: int, instead_of: Owner | None) -> bool:
        """Forget an experiment and its runs; False if its owner is not `instead_of` by now.

        Its number is never given again.
        """
        ...

    def changes(self, experiment_id: int) -> tuple[str, int, bool]:
        """What tells whether there is something new: status, the number of events so far, whether to stop."""
        ...


def author_after_removal(name: str) -> str:
    """The author of experiments whose user was removed; no account can have this name, because of the `/`."""
    return f"{name}{_REMOVED}"


def shown_author(author: str) -> str:
    """An author as people read it."""
    return f"{author.removesuffix(_REMOVED)} (removed)" if author.endswith(_REMOVED) else author


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who may use the server; without `password_hash` they come in by other ways only."""

    name: str
    role: Role
    created_at: float
    password_hash: str | None = None
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class Pass:
    """A secret that stands for a user. Only a digest of it is kept, so nobody can read it from the database."""

    id: int
    user: str
    kind: PassKind
    label: str
    created_at: float
    expires_at: float | None = None
    used_at: float | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the audit log: who did what to what, and when."""

    id: int
    at: float
    user: str
    action: str
    target: str
    detail: str = ""


class Accounts(Protocol):
    """Users, the secrets they come in with, and what they did. Every method is one transaction."""

    def users(self) -> Sequence[User]:
        """Every user, by name."""
        ...

    def user(self, name: str) -> User:
        """One user; `NotFoundError` if there is none of that name."""
        ...

    def put_user(self, user: User) -> None:
        """Add a user, or change the one of that name; a name has 1 to 200 characters."""
        ...

    def remove_user(self, name: str) -> None:
        """Forget a user and their passes; the audit log stays.

        Their experiments stay too, with `author_after_removal` as their author: somebody who gets an account of the
        same name later does not get them. `NotFoundError` if there is none of that name.
        """
        ...

    def grant(self, digest: str, issued: Pass) -> Pass:
        """Keep a new pass, numbered by the store, under the digest of its secret.

        Its user need not be among the users. Passes that had expired when this one was made are forgotten. A digest
        that is there already is an error (`InvalidInputError`).
        """
        ...

    def find(self, digest: str, now: float) -> Pass | None:
        """The pass of this digest if it has not expired; its last use is noted to the minute.

        One of kind `once` is spent: of several who show it at once exactly one gets it, and then it is forgotten.
        """
        ...

    def passes(self, user: str) -> Sequence[Pass]:
        """The passes of one user, oldest first; some may have expired."""
        ...

    def revoke(self, pass_id: int) -> None:
        """Forget a pass, if it is there."""
        ...

    def note(self, entry: Entry) -> None:
        """Add a line to the audit log; its number is the store's to give."""
        ...

    def entries(self, *, before: int | None = None, limit: int = 100) -> Sequence[Entry]:
        """The newest lines of the audit log first."""
        ...


@dataclass(frozen=True, slots=True)
class Books:
    """Everything a server keeps, in one database."""

    history: Store
    desk: Desk
    accounts: Accounts
