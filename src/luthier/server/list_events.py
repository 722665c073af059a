"""Live changes of the list of experiments: one query per second for any number of viewers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from luthier.errors import LuthierError, NotFoundError
from luthier.server.authentication import Principal
from luthier.server.streams import Listener, event
from luthier.server.summaries import summary_of
from luthier.store.base import Record
from luthier.store.server_store import ServerStore
from luthier.trial import Json

LOOK_EVERY_S = 1.0
NEWEST = 200
"""How many of the newest experiments are watched; older ones are watched while they are queued or running."""

_NOBODY = Principal("", "viewer", 0)


@dataclass(frozen=True, slots=True)
class _Seen:
    """An experiment as it was at the last query."""

    record: Record
    summary: dict[str, Json]


class ListEvents:
    """Sends browsers the new, changed and deleted experiments, as server-sent events.

    `experiment` contains an experiment as in the list; `gone` the number of one that was deleted or is not shared now.
    """

    def __init__(self, server_store: ServerStore) -> None:
        self._store = server_store
        self._known: dict[int, _Seen] = {}
        self._listeners: dict[Listener, Principal] = {}
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

    async def stream(self, who: Principal, may_go_on: Callable[[], bool]) -> AsyncIterator[bytes]:
        """The changes from now on; a list that is read after the first part has arrived misses nothing."""
        if self._closed:
            return
        listener = Listener()
        self._listeners[listener] = who
        try:
            if self._task is None:
                self._task = asyncio.create_task(self._watch())
                self._known, _ = await run_in_threadpool(self._look)
            yield b": open\n\n"
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
                for number, seen in fresh.items():
                    self._tell(before.get(number), seen)
                for number in gone:
                    self._tell_gone(before[number].record)
        finally:
            for listener in self._listeners:
                listener.close_stream()

    def _look(self) -> tuple[dict[int, _Seen], list[int]]:
        """The current state of the watched experiments, and the numbers of those that were deleted."""
        newest = self._store.queue.records(limit=NEWEST)
        seen = {record.id: _seen(record) for record in newest}
        first = min(seen, default=0) if len(newest) == NEWEST else 0
        gone = [number for number in self._known if number >= first and number not in seen]
        older = {record.id for record in self._store.queue.waiting() if record.id < first}
        older |= {number for number, known in self._known.items() if number < first and _is_active(known)}
        for number in older:
            try:
                seen[number] = _seen(self._store.history.experiment(number))
            except NotFoundError:
                gone += [number] if number in self._known else []
        return seen, gone

    def _tell(self, before: _Seen | None, now: _Seen) -> None:
        if before is not None and before.summary == now.summary:
            return
        for listener, who in self._listeners.items():
            if who.may_see(now.record):
                listener.tell(event("experiment", summary_of(now.record, who)))
            elif before is not None and who.may_see(before.record):
                listener.tell(event("gone", {"id": now.record.id}))

    def _tell_gone(self, record: Record) -> None:
        for listener, who in self._listeners.items():
            if who.may_see(record):
                listener.tell(event("gone", {"id": record.id}))


def _seen(record: Record) -> _Seen:
    return _Seen(record, summary_of(record, _NOBODY))


def _is_active(known: _Seen) -> bool:
    return known.record.status in ("queued", "running")
