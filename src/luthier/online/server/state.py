"""What the server keeps for on-line sessions."""

import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import cast

from luthier.errors import NotFoundError
from luthier.online.records import OnlineRecord, OnlineSessions
from luthier.online.server.summaries import online_summary_of
from luthier.online.store import online_sessions_in
from luthier.server.authentication import ForbiddenError, Principal
from luthier.server.context import Context
from luthier.server.list_events import ListEvents
from luthier.server.operations import ConflictError
from luthier.store.server_store import Accounts, Entry, ServerStore, shown_author
from luthier.trial import Json

NEWEST = 100
"""How many of the newest sessions are watched; older ones are watched while their page is open."""


@dataclass(frozen=True, slots=True)
class OnlineOperations:
    """The on-line sessions of one store, as users with limited rights may see and change them.

    A session that a user may not see is reported as not found.
    """

    sessions: OnlineSessions
    accounts: Accounts
    clock: Callable[[], float] = time.time

    def visible(self, who: Principal, session_id: int) -> OnlineRecord:
        """A session that this user may see."""
        try:
            record = self.sessions.get(session_id)
        except NotFoundError:
            record = None
        if record is None or not who.may_see(record):  # the same error for both, so that hidden ones stay unknown
            raise NotFoundError(f"on-line session {session_id} does not exist")
        return record

    def stop(self, who: Principal, session_id: int) -> OnlineRecord:
        """End the search: from then on every client gets the best configuration."""
        record = self._changeable(who, session_id)
        if record.stop_requested:
            raise ConflictError(f"on-line session {session_id} is already stopped")
        self.sessions.request_stop(session_id)
        self._note(who, "stop", record)
        return replace(record, status="stopped")

    def share(self, who: Principal, session_id: int, *, shared: bool) -> OnlineRecord:
        """Share a session with all users, or stop sharing it."""
        record = self._changeable(who, session_id)
        self.sessions.share(session_id, shared=shared)
        self._note(who, "share" if shared else "unshare", record)
        return replace(record, shared=shared)

    def delete(self, who: Principal, session_id: int) -> None:
        """Delete a session and its samples; programs that still run begin a new session with the same name."""
        record = self._changeable(who, session_id)
        self.sessions.delete(session_id)
        self._note(who, "delete", record)

    def _changeable(self, who: Principal, session_id: int) -> OnlineRecord:
        record = self.visible(who, session_id)
        if not who.may_change(record):
            raise ForbiddenError(f"on-line session {session_id} belongs to {shown_author(record.author)}")
        return record

    def _note(self, who: Principal, action: str, record: OnlineRecord) -> None:
        target = f"on-line session {record.id}"
        self.accounts.note(Entry(0, self.clock(), who.name, action, target, record.name))


class OnlineList:
    """The newest on-line sessions, and those whose page is open."""

    kind = "session"

    def __init__(self, sessions: OnlineSessions) -> None:
        self._sessions = sessions

    def look(self, known: Mapping[int, OnlineRecord], wanted: Set[int]) -> tuple[Sequence[OnlineRecord], Sequence[int]]:
        """The current state of the watched sessions, and the numbers of those that were deleted."""
        newest = self._sessions.all(limit=NEWEST)
        seen = {record.id: record for record in newest}
        first = min(seen, default=0) if len(newest) == NEWEST else 0
        gone = [number for number in known if number >= first and number not in seen]
        for number in wanted - set(seen) - set(gone):
            try:
                seen[number] = self._sessions.get(number)
            except NotFoundError:
                gone += [number] if number in known else []
        return list(seen.values()), gone

    def summary(self, item: OnlineRecord, who: Principal) -> dict[str, Json]:
        """A session as a user sees it in the list."""
        return online_summary_of(item, who)


class OnlineState:
    """On-line sessions in a running server; the pages name the `addresses` where programs reach its service."""

    def __init__(self, store: ServerStore, addresses: tuple[str, ...] = (), says: str = "") -> None:
        self.sessions: OnlineSessions = online_sessions_in(store)
        self.operations = OnlineOperations(self.sessions, store.accounts)
        self.events: ListEvents[OnlineRecord] = ListEvents(OnlineList(self.sessions))
        self.addresses = addresses
        self.says = says

    @property
    def listeners(self) -> int:
        """The number of open event streams."""
        return self.events.listeners

    def start(self) -> None:
        """Nothing needs to be started before the first request."""

    def close(self) -> None:
        """Close the event streams."""
        self.events.close()


def online_of(server: Context) -> OnlineState:
    """The state of on-line sessions in a server."""
    return cast("OnlineState", server.parts["online"])
