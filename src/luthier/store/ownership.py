"""Which process works on an experiment, and whether it still lives."""

import os
import platform
import secrets
import time
from dataclasses import replace
from pathlib import Path

from luthier.errors import InUseError
from luthier.store.base import Owner, Record, Store

DEAD_AFTER_S = 60.0
"""An owner on another machine that has not been heard of for so long is taken for dead."""


def claim(store: Store, record: Record) -> Owner:
    """Become the one process that works on this experiment."""
    now, me = time.time(), replace(this_process(), claim=secrets.token_hex(8))
    if record.owner is not None and is_alive(record, now):
        raise InUseError(
            f"experiment {record.id} is being worked on by process {record.owner.pid} on {record.owner.host}; "
            f"wait for it, or end it with: luthier stop {record.id}"
        )
    if not store.claim(record.id, me, now, record.owner, record.status):
        raise InUseError(
            f"experiment {record.id} was taken up or stopped by somebody else this very moment; nothing was done here"
        )
    return me


def is_alive(record: Record, now: float) -> bool:
    """Whether the owner still works; on another machine that can only be told by when it was last heard of."""
    if record.owner is None:
        return False
    if record.owner.host == platform.node():
        return record.owner.started == _started(record.owner.pid)
    return record.seen_at is not None and abs(now - record.seen_at) < DEAD_AFTER_S  # clocks of machines differ


def this_process() -> Owner:
    """The process that calls this, as an owner."""
    return Owner(platform.node(), os.getpid(), _started(os.getpid()) or "unknown")


def _started(pid: int) -> str | None:
    """When a process began, in whatever unit the system counts; None if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        if Path("/proc/self").exists():
            return None
        try:  # no /proc: a living process with this pid is all that can be known
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass
        return "unknown"
    state, start = text.rpartition(")")[2].split()[0], text.rpartition(")")[2].split()[19]
    return None if state in "ZX" else start


def status_text(record: Record) -> str:
    """Where the experiment stands, seen from here."""
    if record.status == "running" and not is_alive(record, time.time()):
        return "interrupted"
    return record.status
