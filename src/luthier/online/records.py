"""On-line sessions as they are stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from luthier.trial import Json, Sample

OnlineStatus: TypeAlias = Literal["running", "stopped"]
"""The status of an on-line session."""


@dataclass(frozen=True, slots=True)
class OnlineRecord:
    """One on-line session: the tuning of a running program, without its samples.

    `settings` are those of the session and its space under the key `space`. `view` is what the service last said about
    it, `seen_at` when the service that serves it was last alive; both are None before that. When it is `stopped`,
    every client gets the best configuration.
    """

    id: int
    uid: str
    name: str
    author: str
    shared: bool
    created_at: float
    status: OnlineStatus
    seen_at: float | None
    settings: Mapping[str, Json]
    view: Mapping[str, Json] | None

    @property
    def stop_requested(self) -> bool:
        """Whether the service must stop the search."""
        return self.status == "stopped"


class OnlineSessions(Protocol):
    """On-line sessions and their samples. Every method is one transaction.

    An unknown session raises `NotFoundError`.
    """

    def create(self, author: str, name: str, settings: Mapping[str, Json], now: float) -> OnlineRecord:
        """Add a session, or return the one of this author with this name, unchanged.

        Of several simultaneous calls exactly one creates it. Both names have at most 200 characters.
        """
        ...

    def get(self, session_id: int) -> OnlineRecord:
        """One session."""
        ...

    def find(self, author: str, name: str) -> OnlineRecord | None:
        """The session of this author with this name."""
        ...

    def all(
        self, *, author: str | None = None, before: int | None = None, limit: int | None = None
    ) -> Sequence[OnlineRecord]:
        """The newest sessions first; with an `author`, only theirs and the shared ones.

        `before` is the number of the last one on the previous page.
        """
        ...

    def status(self) -> Mapping[int, OnlineStatus]:
        """The status of every session; cheaper than `all`."""
        ...

    def append(self, session_id: int, samples: Sequence[Sample]) -> None:
        """Add samples; those with a number that the session already has are ignored."""
        ...

    def samples(self, session_id: int, *, after: int = 0, limit: int | None = None) -> Sequence[Sample]:
        """The samples with a number above `after`, by number."""
        ...

    def update(self, session_id: int, *, seen_at: float, view: Mapping[str, Json] | None = None) -> None:
        """Record that the session is served, and what it looks like; None leaves the view as it is."""
        ...

    def request_stop(self, session_id: int) -> None:
        """Stop the search; from then on every client gets the best configuration."""
        ...

    def share(self, session_id: int, *, shared: bool) -> None:
        """Share a session with all users, or stop sharing it."""
        ...

    def delete(self, session_id: int) -> None:
        """Delete a session and its samples. Its number is never used again."""
        ...
