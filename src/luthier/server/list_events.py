"""Live changes of a list, such as that of experiments: one query per second for any number of viewers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from starlette.concurrency import run_in_threadpool

from luthier.errors import LuthierError, NotFoundError
from luthier.server.authentication import Owned, Principal
from luthier.server.streams import Listener, event
from luthier.server.summaries import summary_of
from luthier.store.base import Record
from luthier.store.server_store import ServerStore
from luthier.trial import Json

LOOK_EVERY_S = 1.0
NEWEST = 200
"""How many of the newest experiments are watched; older ones are watched while they are queued or running."""

_NOBODY = Principal("", "viewer", 0)


class ListedItem(Owned, Protocol):
    """An item of a list."""

    @property
    def id(self) -> int:
        """Its number."""
        ...


Item = TypeVar("Item", bound=ListedItem)


class Watchable(Protocol[Item]):
    """A list that can be watched; events about its items are called `kind`."""

    kind: str

    def look(self, known: Mapping[int, Item], wanted: Set[int]) -> tuple[Sequence[Item], Sequence[int]]:
        """The current state of the watched items, and the numbers of those that were deleted.

        `known` are the items of the last look; `wanted` are numbers that clients watch.
        """
        ...

    def summary(self, item: Item, who: Principal) -> dict[str, Json]:
        """An item as a user sees it in the list."""
        ...


@dataclass(frozen=True, slots=True)
class _Viewer:
    """Who listens, and to which item; None for all items."""

    who: Principal
    number: int | None


class ListEvents(Generic[Item]):
    """Sends browsers the new, changed and deleted items of a list, as server-sent events.

    An event that is named after the kind of the list contains an item as in the list; `gone` the number of one that was
    deleted or is not shared now.
    """

    def __init__(self, watched: Watchable[Item]) -> None:
        self._list = watched
        self._known: dict[int, tuple[Item, dict[str, Json]]] = {}
        self._listeners: dict[Listener, _Viewer] = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def close(self) -> None:
        """End every stream; must be called in the event loop of the server."""
        self._closed = True
        for listener in self._listeners:
            listener.close_stream()

    @property
    def listeners(self) -> int:
        """How many streams are open."""
        return len(self._listeners)

    async def stream(
        self, who: Principal, may_go_on: Callable[[], bool], number: int | None = None
    ) -> AsyncIterator[bytes]:
        """The changes from now on, of all items or of one; what is read after the event `watching` is complete."""
        if self._closed:
            return
        listener = Listener()
        self._listeners[listener] = _Viewer(who, number)
        try:
            if self._task is None:
                self._task = asyncio.create_task(self._watch())
                self._known, _ = await run_in_threadpool(self._look)
            yield event("watching", {})
            async for part in listener.parts(may_go_on):
                yield part
        finally:
            del self._listeners[listener]
            if not self._listeners and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _watch(self) -> None:
        try:
            while not self._closed:
                await asyncio.sleep(LOOK_EVERY_S)
                try:
                    fresh, gone = await run_in_threadpool(self._look)
                except LuthierError:
                    continue  # the store is temporarily unavailable
                before, self._known = self._known, fresh
                for number, (item, summary) in fresh.items():
                    if number not in before or before[number][1] != summary:
                        self._tell(before[number][0] if number in before else None, item)
                for number in gone:
                    self._tell_gone(before[number][0])
        finally:
            for listener in self._listeners:
                listener.close_stream()

    def _look(self) -> tuple[dict[int, tuple[Item, dict[str, Json]]], Sequence[int]]:
        wanted = {viewer.number for viewer in list(self._listeners.values()) if viewer.number is not None}
        items, gone = self._list.look({number: item for number, (item, _) in self._known.items()}, wanted)
        return {item.id: (item, self._list.summary(item, _NOBODY)) for item in items}, gone

    def _tell(self, before: Item | None, now: Item) -> None:
        for listener, who in self._viewers(now.id):
            if who.may_see(now):
                listener.tell(event(self._list.kind, self._list.summary(now, who)))
            elif before is not None and who.may_see(before):
                listener.tell(event("gone", {"id": now.id}))

    def _tell_gone(self, item: Item) -> None:
        for listener, who in self._viewers(item.id):
            if who.may_see(item):
                listener.tell(event("gone", {"id": item.id}))

    def _viewers(self, number: int) -> list[tuple[Listener, Principal]]:
        return [(one, viewer.who) for one, viewer in self._listeners.items() if viewer.number in (None, number)]


class ExperimentList:
    """The newest experiments, and the older ones that are queued or running."""

    kind = "experiment"

    def __init__(self, server_store: ServerStore) -> None:
        self._store = server_store

    def look(self, known: Mapping[int, Record], wanted: Set[int]) -> tuple[Sequence[Record], Sequence[int]]:
        """The current state of the watched experiments, and the numbers of those that were deleted."""
        newest = self._store.queue.records(limit=NEWEST)
        seen = {record.id: record for record in newest}
        first = min(seen, default=0) if len(newest) == NEWEST else 0
        gone = [number for number in known if number >= first and number not in seen]
        older = {record.id for record in self._store.queue.waiting() if record.id < first}
        older |= {number for number, record in known.items() if number < first and _is_active(record)}
        for number in older | (wanted - set(seen) - set(gone)):
            try:
                seen[number] = self._store.history.experiment(number)
            except NotFoundError:
                gone += [number] if number in known else []
        return list(seen.values()), gone

    def summary(self, item: Record, who: Principal) -> dict[str, Json]:
        """An experiment as a user sees it in the list."""
        return summary_of(item, who)


def _is_active(record: Record) -> bool:
    return record.status in ("queued", "running")
