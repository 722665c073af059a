"""A worker: runs the experiments that wait in a store, each in a process of its own."""

import logging
import math
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from luthier.errors import InUseError, InvalidInputError, LuthierError, NotFoundError, UnavailableError
from luthier.folders import data_directory
from luthier.runners.error_message import error_message
from luthier.runners.registry import runner_kind
from luthier.store.base import Record
from luthier.store.ownership import DEAD_AFTER_S, claim, is_alive, this_process
from luthier.store.server_store import ServerStore

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
NOTED_EVERY_S = 10.0
"""How often a worker records in the store that it is alive."""

_TRIES = 3
_LONGEST_PAUSE_S = 60.0


@dataclass(slots=True)
class _Child:
    """An experiment that this worker starts processes for.

    `tries` counts processes that ended without a new run; the next one is not started before `not_before`.
    """

    process: "subprocess.Popen[bytes] | None" = None
    tries: int = 0
    runs: int = 0
    not_before: float = 0.0


@dataclass(slots=True)
class Worker:
    """Starts a process for every experiment that waits in the queue, or whose process has died.

    The processes claim their experiments in the store, so any number of workers may serve one store and nothing
    runs twice. They continue when the worker ends; a later one sees that they are alive. Experiments whose
    runs are made on this machine disturb each other's measurements: at most `local` of them run at a time, and at most
    `batch` of those that only wait for a batch system.
    """

    store: ServerStore
    store_url: str | None
    local: int = 1
    batch: int = 50
    clock: Callable[[], float] = time.monotonic
    _children: dict[int, _Child] = field(default_factory=dict)
    _places: dict[str, str] = field(default_factory=dict)
    _heartbeats: dict[int, tuple[float | None, float]] = field(default_factory=dict)

    def run(self, stopped: threading.Event) -> None:
        """Start experiments until stopped; a store that is not reachable is tried again."""
        me, noted_at = this_process(), -math.inf
        while not stopped.is_set():
            try:
                if self.clock() - noted_at >= NOTED_EVERY_S:
                    self.store.queue.note_worker(me, time.time())
                    noted_at = self.clock()
                self.look()
            except LuthierError as error:
                log.warning("worker: %s; trying again", error)
            stopped.wait(LOOK_EVERY_S)
        with suppress(LuthierError):
            self.store.queue.forget_worker(me)

    def look(self) -> None:
        """Start waiting experiments as far as the limits allow; give up those that do not start."""
        for child in self._children.values():
            if child.process is not None and child.process.poll() is not None:
                child.process = None
        waiting, now = self.store.queue.waiting(), self.clock()
        numbers = {record.id for record in waiting}
        self._children = {
            number: child for number, child in self._children.items() if number in numbers or child.process is not None
        }
        idle = [record for record in waiting if not self._is_worked_on(record, now)]
        room = {"local": self.local, "batch": self.batch}
        self._heartbeats = {number: seen for number, seen in self._heartbeats.items() if number in numbers}
        for record in waiting:
            if record not in idle and (record.owner is None or record.owner.host == platform.node()):
                room[self._place(record)] -= 1
        for record in idle:
            child = self._children.setdefault(record.id, _Child())
            if record.runs > child.runs:
                child.tries, child.runs = 0, record.runs
            if child.tries >= _TRIES:
                self._give_up(record)
            elif child.not_before <= now and room[self._place(record)] > 0:
                room[self._place(record)] -= 1
                self._start(record, child)

    @property
    def working(self) -> int:
        """How many of the processes it started are alive."""
        return sum(child.process is not None for child in self._children.values())

    def _is_worked_on(self, record: Record, now: float) -> bool:
        child = self._children.get(record.id)
        if child is not None and child.process is not None:
            return True
        if record.owner is None or record.owner.host == platform.node():
            return is_alive(record, time.time())
        # The clocks of two machines differ, so what counts is whether the heartbeat changes while this worker looks.
        seen_at, since = self._heartbeats.get(record.id, (None, now))
        if seen_at != record.seen_at:
            self._heartbeats[record.id] = (record.seen_at, now)
            return True
        return now - since < DEAD_AFTER_S

    def _place(self, record: Record) -> str:
        """Where its runs are made: `local`, on this machine, or `batch`."""
        if record.uid not in self._places:
            command = self.store.history.experiment(record.id).settings.get("command")
            where = command.get("where", "local") if isinstance(command, dict) else "local"
            self._places[record.uid] = "local" if _is_local(str(where)) else "batch"
        return self._places[record.uid]

    def _start(self, record: Record, child: _Child) -> None:
        if record.owner is not None and record.owner.host != platform.node():
            self.store.queue.enqueue(record.id, record.owner)  # the new process need not judge again
        child.tries += 1
        child.not_before = self.clock() + min(2.0**child.tries, _LONGEST_PAUSE_S)
        environment = dict(os.environ)
        if self.store_url is not None:  # not on the command line, which everybody can read: it may hold a password
            environment["LUTHIER_STORE"] = self.store_url
        path = _log_of(record)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with path.open("wb") as said:
                child.process = subprocess.Popen(
                    [sys.executable, "-m", "luthier", "resume", str(record.id), "--quiet"],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    start_new_session=True,
                )
        except OSError as error:
            raise UnavailableError(f"experiment {record.id}: cannot be started: {error.strerror}") from error
        log.info("experiment %d: process %d", record.id, child.process.pid)

    def _give_up(self, record: Record) -> None:
        """Store that an experiment failed, with the last message of its process."""
        reason = error_message(_log_of(record)).removeprefix("luthier: ") or "its process ended without a message"
        log.warning("experiment %d: given up: %s", record.id, reason)
        with suppress(InUseError, NotFoundError):
            owner = claim(self.store.history, record)
            self.store.history.close(record.id, owner, "failed", {"ending": reason, "verdict": reason})


def _is_local(where: str) -> bool:
    """Whether runs are made on this machine; assumed if the runner is unknown here, as its plug-in was removed."""
    try:
        return runner_kind(where).is_local_with(where.partition(":")[2])
    except InvalidInputError:
        return True


def _log_of(record: Record) -> Path:
    return data_directory() / "workers" / f"{record.uid}.log"
