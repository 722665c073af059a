"""One experiment in the store while this process works on it: its history and its heartbeat."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TypeVar

from luthier.errors import InUseError, LuthierError, StoreAwayError
from luthier.store.base import Owner, Record, Status, StopRequest, Store
from luthier.trial import NO_JOBS, BatchJob, Json, Run

log = logging.getLogger(__name__)

HEARTBEAT_S = 1.0
"""How often a heartbeat is written to the store, and requests to stop are read."""

_SILENT_S = 5.0  # without a heartbeat from the loop for so long, the thread sends one
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 15.0  # between two calls of a store that is not reachable

Answer = TypeVar("Answer")


class Ledger:
    """Reads and writes one experiment's history for its owner.

    While it is entered, a thread keeps the claim alive whatever the loop is busy with: reading a long history, or a
    slow suggestion. While the store is not reachable, calls are repeated until `gave_up` returns True.
    Once another process has claimed the experiment, every call raises `InUseError`. `comes_from_elsewhere` tells
    whether its last owner was on another machine.
    """

    def __init__(self, store: Store, record: Record, owner: Owner, *, gave_up: Callable[[], bool] = lambda: False):
        self.uid, self.number = record.uid, record.id
        self.comes_from_elsewhere = record.owner is not None and record.owner.host != owner.host
        self._store = store
        self._owner = owner
        self._gave_up = gave_up
        self._seen = time.monotonic()
        self._jobs = NO_JOBS
        self._lost: InUseError | None = None
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._keep_alive, name=f"heartbeat-{record.id}", daemon=True)

    def __enter__(self) -> "Ledger":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        self._thread.join()

    def runs(self) -> Sequence[Run]:
        """The history so far."""
        return self._insist(lambda: self._store.runs(self.number))

    def append(self, run: Run) -> None:
        """Record a run that is about to be submitted."""
        self._insist(lambda: self._store.append(self.number, run, self._owner))

    def finish(self, run: Run) -> None:
        """Record how a run ended."""
        self._insist(lambda: self._store.finish(self.number, run, self._owner))

    def stop_request(self, jobs: Mapping[int, BatchJob]) -> StopRequest | None:
        """Write a heartbeat, and the batch jobs of active runs if they changed; return the request to stop, if any."""
        changed = None if jobs == self._jobs else jobs
        request = self._insist(lambda: self._beat(changed))
        self._jobs = jobs
        return request

    def close(self, status: Status, result: Mapping[str, Json]) -> None:
        """Release the experiment, and store what was concluded; its last heartbeat is the end of the period of work."""
        self._insist(self._beat)
        self._insist(lambda: self._store.close(self.number, self._owner, status, result))

    def _beat(self, jobs: Mapping[int, BatchJob] | None = None) -> StopRequest | None:
        request = self._store.heartbeat(self.number, self._owner, time.time(), jobs)
        self._seen = time.monotonic()
        return request

    def _insist(self, call: Callable[[], Answer]) -> Answer:
        pause_s = _FIRST_PAUSE_S
        while True:
            if self._lost is not None:
                raise self._lost
            try:
                return call()
            except StoreAwayError as error:
                if self._gave_up():
                    raise
                log.warning("waiting for the store: %s", error)
            self._pause(pause_s)
            pause_s = min(2.0 * pause_s, _LONGEST_PAUSE_S)

    def _pause(self, pause_s: float) -> None:
        """Wait in short steps, so that an interrupt by the user is seen soon."""
        until = time.monotonic() + pause_s
        while not self._gave_up() and (left_s := until - time.monotonic()) > 0:
            time.sleep(min(left_s, 0.1))

    def _keep_alive(self) -> None:
        while not self._left.wait(HEARTBEAT_S):
            if time.monotonic() - self._seen < _SILENT_S:
                continue
            try:
                self._beat()
            except InUseError as error:
                self._lost = error
                return
            except LuthierError as error:
                log.debug("heartbeat: %s", error)
