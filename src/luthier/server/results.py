"""What experiments have found out so far, kept up to date without reading all runs again and again."""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from starlette.concurrency import run_in_threadpool

from luthier.analysis.result import Result, conclude
from luthier.spec.experiment import Experiment
from luthier.store.base import Record
from luthier.store.server_store import Books
from luthier.trial import Run

FRESH_S = 1.0
"""While runs come in, a result that is so young is given again: however many people look, it is made once a second.

A long one is made less often, see `REST`.
"""

REST = 4.0
"""While runs come in, what took long to work out rests for so many times as long before it is worked out again."""

_MOST_KEPT = 32
_MOST_KINDS = 64
_MOST_SLOW = 4

T = TypeVar("T")


class _Kept(Generic[T]):
    """The newest answer to one question, with the number of events that it knows of."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._newest: tuple[int, T] | None = None
        self._at = self.took_s = 0.0

    def get(self, events: int, patience_s: float, work: Callable[[], tuple[int, T]]) -> tuple[int, T]:
        """The answer that knows of so many events, or one that is at most `patience_s` old; worked out once for all.

        With patience, whoever finds another one at work takes the older answer.
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
class _Known:
    number: int
    uid: str
    experiment: Experiment
    result: _Kept[Result]
    runs: dict[int, Run] = field(default_factory=dict)
    events: int = 0
    others: dict[str, _Kept[object]] = field(default_factory=dict)


class Results:
    """The results of the experiments that were looked at last."""

    def __init__(self, books: Books, clock: Callable[[], float] = time.monotonic) -> None:
        self._books = books
        self._clock = clock
        self._kept: OrderedDict[int, _Known] = OrderedDict()
        self._lock = threading.Lock()
        self._slow = asyncio.Semaphore(_MOST_SLOW)

    def of(self, record: Record) -> Result:
        """The result of an experiment: of all its runs, or of those up to `FRESH_S` ago while it is running."""
        status, events, _ = self._books.desk.changes(record.id)
        return self._result(self._known(record), status, events)[1]

    def worked_out(self, record: Record, what: str, work: Callable[[Result], T]) -> tuple[int, T]:
        """Something made of the result, and the number of events that it knows of.

        `what` names it. While the experiment is running it may be older than the result, but not much.
        """
        status, events, _ = self._books.desk.changes(record.id)
        known = self._known(record)
        events, result = self._result(known, status, events)
        with self._lock:
            if what not in known.others and len(known.others) >= _MOST_KINDS:
                known.others.clear()
            kept = known.others.setdefault(what, _Kept(self._clock))
        patience_s = REST * kept.took_s if status == "running" else 0.0
        return cast("tuple[int, T]", kept.get(events, patience_s, lambda: (events, work(result))))

    async def slowly(self, work: Callable[[], T]) -> T:
        """The answer of something that takes its time; few of them at a time, so that others need not wait."""
        async with self._slow:
            return await run_in_threadpool(work)

    def _known(self, record: Record) -> _Known:
        with self._lock:
            known = self._kept.get(record.id)
            if known is None or known.uid != record.uid:
                experiment = Experiment.from_json(record.settings)
                known = self._kept[record.id] = _Known(record.id, record.uid, experiment, _Kept(self._clock))
            self._kept.move_to_end(record.id)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
            return known

    def _result(self, known: _Known, status: str, events: int) -> tuple[int, Result]:
        patience_s = max(FRESH_S, REST * known.result.took_s) if status == "running" else 0.0
        return known.result.get(events, patience_s, lambda: self._concluded(known))

    def _concluded(self, known: _Known) -> tuple[int, Result]:
        """The result of all runs; only those that are new or have ended since the last time are read."""
        for run in self._books.history.runs(known.number, since=known.events):
            known.runs[run.number] = run
            known.events = max(known.events, run.submit_order + 1, (run.finish_order or 0) + 1)
        return known.events, conclude(known.experiment, [known.runs[number] for number in sorted(known.runs)])
