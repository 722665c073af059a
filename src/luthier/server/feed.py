"""Live changes of the list of experiments: one look at the store a second for however many people watch."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from luthier.errors import LuthierError, NotFoundError
from luthier.server.access import Principal
from luthier.server.streams import Listener, event
from luthier.server.summaries import summary_of
from luthier.store.base import Json, Record
from luthier.store.server_store import Books

LOOK_EVERY_S = 1.0
NEWEST = 200
"""How many of the newest experiments are watched; older ones are while they wait for workers or are worked on."""

_NOBODY = Principal("", "viewer", 0)


@dataclass(frozen=True, slots=True)
class _Seen:
    """An experiment as it was when it was looked at last."""

    record: Record
    summary: dict[str, Json]


class Feed:
    """Tells browsers which experiments are new, have changed or are gone, as server-sent events.

    `experiment` carries what a listing shows of one; `gone` the number of one that was deleted or is no longer shared.
    """

    def __init__(self, books: Books) -> None:
        self._books = books
        self._known: dict[int, _Seen] = {}
        self._listeners: dict[Listener, Principal] = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def close(self) -> None:
        """End every stream; to be called in the server's own thread."""
        self._closed = True
        for listener in self._listeners:
            listener.dismiss()

    @property
    def listeners(self) -> int:
        """How many streams are open."""
        return len(self._listeners)

    async def stream(self, who: Principal, may_go_on: Callable[[], bool]) -> AsyncIterator[bytes]:
        """What changes from now on; whatever is listed after the first part has come misses nothing."""
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
                    continue  # the store is away for a moment
                before, self._known = self._known, fresh
                for number, seen in fresh.items():
                    self._tell(before.get(number), seen)
                for number in gone:
                    self._tell_gone(before[number].record)
        finally:
            for listener in self._listeners:
                listener.dismiss()

    def _look(self) -> tuple[dict[int, _Seen], list[int]]:
        """The experiments to watch as they are now, and the numbers of those that are no longer there."""
        newest = self._books.desk.records(limit=NEWEST)
        seen = {record.id: _seen(record) for record in newest}
        first = min(seen, default=0) if len(newest) == NEWEST else 0
        gone = [number for number in self._known if number >= first and number not in seen]
        older = {record.id for record in self._books.desk.waiting() if record.id < first}
        older |= {number for number, known in self._known.items() if number < first and _is_active(known)}
        for number in older:
            try:
                seen[number] = _seen(self._books.history.experiment(number))
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
