"""What a queued experiment waits for."""

from dataclasses import dataclass

from luthier.store.base import Owner, Record
from luthier.store.ownership import DEAD_AFTER_S, is_running, status_text, this_process
from luthier.store.server_store import Queue


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many workers there are, how many experiments are before this one, and how many run now."""

    workers: int
    before: int
    running: int

    @property
    def sentence(self) -> str:
        """The reason in words."""
        if not self.workers:
            return "no worker is running; start one with: luthier worker"
        if self.before:
            are = "1 experiment is" if self.before == 1 else f"{self.before} experiments are"
            return f"{are} before it in the queue, and {self.running} {'is' if self.running == 1 else 'are'} running"
        if self.running:
            return f"it is next in the queue; {self.running} {'is' if self.running == 1 else 'are'} running"
        return "a worker is about to start it"


def waiting_for(queue: Queue, record: Record, now: float) -> Waiting:
    """What a queued experiment waits for."""
    others = [other for other in queue.waiting() if other.id != record.id]
    return Waiting(
        workers=sum(_is_alive(worker, seen_at, now) for worker, seen_at in queue.workers()),
        before=sum(other.status == "queued" and other.id < record.id for other in others),
        running=sum(status_text(other) == "running" for other in others),
    )


def _is_alive(worker: Owner, seen_at: float, now: float) -> bool:
    """Whether a worker is alive; on another machine, whether it was seen a short time ago."""
    if worker.host == this_process().host:
        return is_running(worker.pid, worker.started)
    return abs(now - seen_at) < DEAD_AFTER_S
