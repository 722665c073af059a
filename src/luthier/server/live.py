"""Live changes of one experiment: one look at the store for however many people watch."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from luthier.analysis.serial import run_json
from luthier.errors import LuthierError, NotFoundError
from luthier.server.streams import Listener, event
from luthier.store.base import Json
from luthier.store.server_store import Books
from luthier.trial import Run

LOOK_EVERY_S = 0.1
MOST_RUNS = 500
"""How many runs one event carries at most; whoever is further behind gets several."""


@dataclass(eq=False, slots=True)
class _Watched:
    """An experiment that somebody watches: how far it has been told, and to whom."""

    told: int
    state: dict[str, Json]
    listeners: set[Listener] = field(default_factory=set)
    task: "asyncio.Task[None] | None" = None

    def tell(self, parts: list[bytes]) -> None:
        for listener in self.listeners:
            for part in parts:
                listener.tell(part)


class Live:
    """Tells browsers what happens to the experiments they watch, as server-sent events.

    `runs` carries runs that began or ended, with the number of events so far as its id; a run may be told twice.
    `status` says where the experiment stands; `gone` that it was deleted. Whoever comes back with the last id gets what
    was missed.
    """

    def __init__(self, books: Books) -> None:
        self._books = books
        self._watched: dict[int, _Watched] = {}
        self._closed = False

    def close(self) -> None:
        """End every stream, so that the server can shut down; to be called in the server's own thread."""
        self._closed = True
        for watched in self._watched.values():
            for listener in watched.listeners:
                listener.dismiss()

    @property
    def listeners(self) -> int:
        """How many streams are open."""
        return sum(len(watched.listeners) for watched in self._watched.values())

    async def stream(
        self, experiment_id: int, since: int | None, may_go_on: Callable[[], bool]
    ) -> AsyncIterator[bytes]:
        """The events of one experiment, from event `since` on or from now on, until the listener or the server ends."""
        try:
            status, events, stopping = await run_in_threadpool(self._books.desk.changes, experiment_id)
        except NotFoundError:
            yield event("gone", {})
            return
        if self._closed:
            return
        watched = self._watched.get(experiment_id)
        if watched is None:
            watched = self._watched[experiment_id] = _Watched(events, _state(status, stopping=stopping))
            watched.task = asyncio.create_task(self._watch(experiment_id, watched))
        listener = Listener()
        watched.listeners.add(listener)
        try:
            yield event("status", watched.state, events if since is None else None)
            if since is not None and since != events:
                missed_from = since if since < events else 0  # a number from the future is of another store
                for part in await run_in_threadpool(self._missed, experiment_id, missed_from):
                    yield part
            async for part in listener.parts(may_go_on):
                yield part
        finally:
            watched.listeners.discard(listener)
            if not watched.listeners:
                self._forget(experiment_id, watched)

    def _forget(self, experiment_id: int, watched: _Watched) -> None:
        if self._watched.get(experiment_id) is watched:
            del self._watched[experiment_id]
        if watched.task is not None:
            watched.task.cancel()

    async def _watch(self, experiment_id: int, watched: _Watched) -> None:
        try:
            while not self._closed:
                await asyncio.sleep(LOOK_EVERY_S)
                try:
                    await self._look(experiment_id, watched)
                except NotFoundError:
                    watched.tell([event("gone", {})])
                    return
                except LuthierError:
                    continue  # the store is away for a moment
        finally:
            for listener in watched.listeners:
                listener.dismiss()

    async def _look(self, experiment_id: int, watched: _Watched) -> None:
        status, events, stopping = await run_in_threadpool(self._books.desk.changes, experiment_id)
        if events > watched.told:
            parts = await run_in_threadpool(self._missed, experiment_id, watched.told)
            watched.told = events
            watched.tell(parts)
        state = _state(status, stopping=stopping)
        if state != watched.state:
            watched.state = state
            watched.tell([event("status", state)])

    def _missed(self, experiment_id: int, since: int) -> list[bytes]:
        """The runs since an event, in events of bounded size; only the last one has the newest id."""
        runs = self._books.history.runs(experiment_id, since=since)
        newest = max((max(run.submit_order, run.finish_order or 0) + 1 for run in runs), default=since)
        parts = []
        for first in range(0, len(runs), MOST_RUNS):
            listed = [told_run(run) for run in runs[first : first + MOST_RUNS]]
            parts.append(event("runs", listed, newest if first + MOST_RUNS >= len(runs) else since))
        return parts


def told_run(run: Run) -> dict[str, Json]:
    """One run as people outside see it: where its output is kept on this machine is nobody's business."""
    told = run_json(run)
    has_log = told.pop("logs") is not None
    return {**told, "has_log": has_log}


def _state(status: str, *, stopping: bool) -> dict[str, Json]:
    return {"status": status, "stop_requested": stopping}
