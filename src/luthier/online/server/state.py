"""What the server keeps for on-line sessions."""

from typing import cast

from luthier.online.records import OnlineRecord, OnlineSessions
from luthier.online.server.operations import OnlineList, OnlineOperations
from luthier.online.store import online_sessions_in
from luthier.server.context import Context
from luthier.server.list_events import ListEvents
from luthier.store.server_store import ServerStore


class OnlineState:
    """On-line sessions in a running server; the pages name the `addresses` where programs reach its service."""

    def __init__(self, store: ServerStore, addresses: tuple[str, ...] = ()) -> None:
        self.sessions: OnlineSessions = online_sessions_in(store)
        self.operations = OnlineOperations(self.sessions, store.accounts)
        self.events: ListEvents[OnlineRecord] = ListEvents(OnlineList(self.sessions))
        self.addresses = addresses

    @property
    def listeners(self) -> int:
        """The number of open event streams."""
        return self.events.listeners

    def start(self) -> None:
        """Nothing must be ready before the first request."""

    def close(self) -> None:
        """Close the event streams."""
        self.events.close()


def online_of(server: Context) -> OnlineState:
    """The state of on-line sessions in a server."""
    return cast("OnlineState", server.parts["online"])
