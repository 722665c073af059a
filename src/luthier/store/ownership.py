"""Which process works on an experiment, and whether it is still alive."""

import os
import platform
import pwd
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from luthier.errors import InUseError
from luthier.store.base import Machine, Owner, Record, Store
from luthier.trial import Json

DEAD_AFTER_S = 60.0
"""An owner on another machine counts as dead after this time without a heartbeat."""


def claim(store: Store, record: Record, settings: Mapping[str, Json] | None = None) -> Owner:
    """Become the only process that works on this experiment; `settings` replace those that it has."""
    now, me = time.time(), replace(this_process(), claim=secrets.token_hex(8))
    if record.owner is not None and is_alive(record, now):
        raise InUseError(
            f"experiment {record.id} is in use by process {record.owner.pid} on {record.owner.host}; "
            f"wait for it, or stop it with: luthier stop {record.id}"
        )
    # The store compares owner and status again in one transaction: of several processes only one succeeds.
    if not store.claim(record.id, me, now, record.owner, record.status, this_machine(), settings):
        raise InUseError(
            f"experiment {record.id} was just claimed or stopped by another process; nothing was done here"
        )
    return me


def is_alive(record: Record, now: float) -> bool:
    """Whether the owner is alive; on another machine, this is judged by its last heartbeat."""
    if record.owner is None:
        return False
    if record.owner.host == platform.node():
        return is_running(record.owner.pid, record.owner.started)
    return record.seen_at is not None and abs(now - record.seen_at) < DEAD_AFTER_S  # clocks of machines differ


def is_running(pid: int, started: str) -> bool:
    """Whether the process of this machine with this number and start time exists."""
    # A number is used again by later processes; with the start time it is unique.
    return started == start_time(pid)


def this_process() -> Owner:
    """The process that calls this, as an owner."""
    return Owner(platform.node(), os.getpid(), start_time(os.getpid()) or "unknown")


def this_machine() -> Machine:
    """The machine that this process runs on."""
    from luthier import __version__

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Machine(platform.node(), _cpu(), cores, __version__)


def _cpu() -> str:
    """The name of the processor; that of its architecture if the system does not tell it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "Model", "cpu model") and value.strip():
                return " ".join(value.split())
    return platform.processor() or platform.machine()


def start_time(pid: int) -> str | None:
    """The start time of a process, in the unit of the system; None if the process does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        if Path("/proc/self").exists():
            return None
        try:  # without /proc, only the existence of the pid can be checked
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass
        return "unknown"
    # proc(5): the name in parentheses may hold anything, so count from the last ")": field 3 is the state, 22 the start
    # in clock ticks since boot. Zombies (Z) and dead processes (X) do not work any more.
    state, start = text.rpartition(")")[2].split()[0], text.rpartition(")")[2].split()[19]
    return None if state in "ZX" else start


def status_text(record: Record) -> str:
    """The status of an experiment; `interrupted` if it is running but its owner is dead."""
    if record.status == "running" and not is_alive(record, time.time()):
        return "interrupted"
    return record.status


def own_user() -> str:
    """The user of this process: that of experiments which belong to no account."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
