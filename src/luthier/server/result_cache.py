"""The results of experiments, updated from new runs only."""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar, cast

from starlette.concurrency import run_in_threadpool

from luthier.result.result import Result, conclude
from luthier.result.working_time import pauses_of
from luthier.spec.experiment import Experiment
from luthier.store.base import Record
from luthier.store.server_store import ServerStore
from luthier.trial import Run

FRESH_S = 1.0
"""While an experiment runs, a result of this age is reused: it is computed at most once per second for all viewers.

A result that takes long to compute is updated less often, see `REST`.
"""

REST = 4.0
"""While an experiment runs, a value that took t seconds to compute is reused for this many times t."""

_MOST_KEPT = 32
_MOST_KINDS = 64
_MOST_SLOW = 4

T = TypeVar("T")


class _Cached(Generic[T]):
    """The newest value of one kind, with the number of events that it includes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._newest: tuple[int, T] | None = None
        self._at = self.took_s = 0.0

    def get(self, events: int, patience_s: float, work: Callable[[], tuple[int, T]]) -> tuple[int, T]:
        """A value with at least `events` events, or one at most `patience_s` old; computed once for all callers.

        If another caller is computing it and `patience_s` is not 0, the older value is returned.
        """
        newest = self._good_enough(events, patience_s)
        if newest is not None:
            return newest
        if not self._lock.acquire(blocking=self._newest is None or patience_s == 0.0):
            return cast("tuple[int, T]", self._newest)
        try:
            newest = self._good_enough(events, patience_s)
            if newest is None:
                began = self._clock()
                newest = self._newest = work()
                self._at = self._clock()
                self.took_s = self._at - began
            return newest
        finally:
            self._lock.release()

    def _good_enough(self, events: int, patience_s: float) -> tuple[int, T] | None:
        newest = self._newest
        if newest is None or newest[0] >= events or self._clock() - self._at < patience_s:
            return newest
        return None


@dataclass(slots=True)
class _CachedExperiment:
    number: int
    uid: str
    budget: tuple[object, object]
    experiment: Experiment
    result: _Cached[Result]
    runs: dict[int, Run] = field(default_factory=dict)
    events: int = 0
    pauses: tuple[tuple[float, float], ...] = ()
    others: dict[str, _Cached[object]] = field(default_factory=dict)


def _budget(record: Record) -> tuple[object, object]:
    """What of the settings changes when an experiment is given more runs."""
    return record.settings.get("budget"), record.settings.get("refinements")


class ResultCache:
    """The results of the experiments that were requested most recently."""

    def __init__(self, server_store: ServerStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = server_store
        self._clock = clock
        self._experiments: OrderedDict[int, _CachedExperiment] = OrderedDict()
        self._lock = threading.Lock()
        self._slow = asyncio.Semaphore(_MOST_SLOW)

    def of(self, record: Record) -> Result:
        """The result of an experiment; while it is running, it may be up to `FRESH_S` old."""
        now = self._store.queue.changes(record.id)
        return self._result(self._known(record), now.status, now.events)[1]

    def derived(self, record: Record, what: str, work: Callable[[Result], T]) -> tuple[int, T]:
        """A value computed from the result, and the number of events that it includes.

        `what` is its name in the cache. While the experiment is running, the value may be older than the result.
        """
        now = self._store.queue.changes(record.id)
        known = self._known(record)
        events, result = self._result(known, now.status, now.events)
        with self._lock:
            if what not in known.others and len(known.others) >= _MOST_KINDS:
                known.others.clear()
            kept = known.others.setdefault(what, _Cached(self._clock))
        patience_s = REST * kept.took_s if now.status == "running" else 0.0
        return cast("tuple[int, T]", kept.get(events, patience_s, lambda: (events, work(result))))

    async def run_slow(self, work: Callable[[], T]) -> T:
        """Run slow work in a thread, only a few at a time, so that other requests do not wait."""
        async with self._slow:
            return await run_in_threadpool(work)

    def _known(self, record: Record) -> _CachedExperiment:
        with self._lock:
            known = self._experiments.get(record.id)
            if known is None or (known.uid, known.budget) != (record.uid, _budget(record)):
                experiment = Experiment.from_json(record.settings)
                known = self._experiments[record.id] = _CachedExperiment(
                    record.id, record.uid, _budget(record), experiment, _Cached(self._clock)
                )
            known.pauses = pauses_of(record)
            self._experiments.move_to_end(record.id)
            while len(self._experiments) > _MOST_KEPT:
                self._experiments.popitem(last=False)
            return known

    def _result(self, known: _CachedExperiment, status: str, events: int) -> tuple[int, Result]:
        patience_s = max(FRESH_S, REST * known.result.took_s) if status == "running" else 0.0
        return known.result.get(events, patience_s, lambda: self._concluded(known))

    def _concluded(self, known: _CachedExperiment) -> tuple[int, Result]:
        """The result of all runs; only runs that started or ended since the last call are read."""
        for run in self._store.history.runs(known.number, since=known.events):
            known.runs[run.number] = run
            known.events = max(known.events, run.submit_order + 1, (run.finish_order or 0) + 1)
        result = conclude(known.experiment, [known.runs[number] for number in sorted(known.runs)])
        return known.events, replace(result, pauses=known.pauses)
