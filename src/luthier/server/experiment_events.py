"""Live changes of one experiment: one query for any number of viewers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, dataclass, field

from starlette.concurrency import run_in_threadpool

from luthier.errors import LuthierError, NotFoundError
from luthier.result.serial import run_json
from luthier.server.streams import Listener, event
from luthier.store.base import STOPS
from luthier.store.server_store import Changes, ServerStore
from luthier.trial import NO_JOBS, BatchJob, Json, Run

LOOK_EVERY_S = 0.1
MOST_RUNS = 500
"""The maximum number of runs in one event; more runs are sent as several events."""


@dataclass(eq=False, slots=True)
class _Watched:
    """An experiment with viewers: the number of events sent so far, and the listeners."""

    sent: int
    state: dict[str, Json]
    listeners: set[Listener] = field(default_factory=set)
    task: "asyncio.Task[None] | None" = None

    def tell(self, parts: list[bytes]) -> None:
        for listener in self.listeners:
            for part in parts:
                listener.tell(part)


class ExperimentEvents:
    """Sends browsers the changes of the experiments they watch, as server-sent events.

    `runs` contains runs that started or ended, with the number of events so far as its id; a run may be sent twice.
    `status` contains the status of the experiment and the batch jobs of its active runs; `gone` means that it was
    deleted. A client that reconnects with the last id gets the events it missed.
    """

    def __init__(self, server_store: ServerStore) -> None:
        self._store = server_store
        self._watched: dict[int, _Watched] = {}
        self._closed = False

    def close(self) -> None:
        """End every stream, so that the server can stop; must be called in the event loop of the server."""
        self._closed = True
        for watched in self._watched.values():
            for listener in watched.listeners:
                listener.close_stream()

    @property
    def listeners(self) -> int:
        """How many streams are open."""
        return sum(len(watched.listeners) for watched in self._watched.values())

    async def stream(
        self, experiment_id: int, since: int | None, may_go_on: Callable[[], bool]
    ) -> AsyncIterator[bytes]:
        """The events of one experiment, from event `since` on or from now on, until the listener or the server ends."""
        try:
            now = await run_in_threadpool(self._store.queue.changes, experiment_id)
        except NotFoundError:
            yield event("gone", {})
            return
        if self._closed:
            return
        watched = self._watched.get(experiment_id)
        if watched is None:
            watched = self._watched[experiment_id] = _Watched(now.events, _state(now))
            watched.task = asyncio.create_task(self._watch(experiment_id, watched))
        listener = Listener()
        watched.listeners.add(listener)
        try:
            if since is not None and since != now.events:
                missed_from = since if since < now.events else 0  # a larger number comes from another store
                for part in await run_in_threadpool(self._missed, experiment_id, missed_from):
                    yield part
            # After the runs: a client that stops at the end of the experiment has seen all of them.
            yield event("status", watched.state, now.events if since is None else None)
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
                    continue  # the store is temporarily unavailable
        finally:
            for listener in watched.listeners:
                listener.close_stream()

    async def _look(self, experiment_id: int, watched: _Watched) -> None:
        now = await run_in_threadpool(self._store.queue.changes, experiment_id)
        if now.events > watched.sent:
            parts = await run_in_threadpool(self._missed, experiment_id, watched.sent)
            watched.sent = now.events
            watched.tell(parts)
        state = _state(now)
        if state != watched.state:
            watched.state = state
            watched.tell([event("status", state)])

    def _missed(self, experiment_id: int, since: int) -> list[bytes]:
        """The runs since an event, in events of limited size; only the last one has the newest id."""
        runs = self._store.history.runs(experiment_id, since=since)
        newest = max((max(run.submit_order, run.finish_order or 0) + 1 for run in runs), default=since)
        parts = []
        for first in range(0, len(runs), MOST_RUNS):
            listed = [public_run(run) for run in runs[first : first + MOST_RUNS]]
            parts.append(event("runs", listed, newest if first + MOST_RUNS >= len(runs) else since))
        return parts


def public_run(run: Run, jobs: Mapping[int, BatchJob] = NO_JOBS) -> dict[str, Json]:
    """One run as clients see it, without the path of its log files on the server; `jobs` are those of active runs."""
    public = run_json(run)
    has_log = public.pop("logs") is not None
    if run.number in jobs:
        public["batch_job"] = jobs[run.number].number or None
    return {**public, "has_log": has_log}


def _state(now: Changes) -> dict[str, Json]:
    return {
        "status": now.status,
        "stop_requested": now.stop_request in STOPS,
        "verify_requested": now.stop_request == "verify",
        "jobs": [{"run": number, **asdict(job)} for number, job in sorted(now.jobs.items())],
    }
