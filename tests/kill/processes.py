"""Finds the processes of one site, and kills them one at a time."""

import os
import select
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.kill.audit import Kill, Kind

from luthier.runners.job_folder import JobFolder

MARK = "KILL_BENCHMARK_SITE"
"""The environment variable by which the processes of a site are known; its value is the site's folder."""

_DEATH_MS = 30_000


@dataclass(frozen=True, slots=True)
class Victim:
    """A process that may be killed, and for supervisors and programs the folder of their run."""

    kind: Kind
    pid: int
    folder: Path | None = None


def commands(site: Path) -> Iterator[tuple[int, int, list[str]]]:
    """The pid, the parent's pid and the words of every process that was started at a site."""
    mark = os.fsencode(f"{MARK}={site}")
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):  # it has ended, or is somebody else's
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                words = os.fsdecode((entry / "cmdline").read_bytes()).split("\0")[:-1]
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                yield int(entry.name), parent, words


def tuners(site: Path) -> list[Victim]:
    """The processes that carry out experiments, whoever started them."""
    found = {
        pid: parent for pid, parent, words in commands(site) if words[1:3] == ["-m", "luthier"] and words[3] in _TUNERS
    }
    # A supervisor that has not yet replaced its copy of the tuner looks like one, and is its child.
    return [Victim("tuner", pid) for pid, parent in found.items() if parent not in found]


_TUNERS = ("tune", "resume")


def supervisors(site: Path) -> list[Victim]:
    """The supervisors of runs, also those that have not taken on their run yet."""
    found = []
    for pid, _, words in commands(site):
        if len(words) > 1 and words[-2].endswith("supervisor.py"):
            noted = JobFolder(Path(words[-1])).processes()
            if not noted or noted[0].pid == pid:  # another one is its copy that is about to become the program
                found.append(Victim("supervisor", pid, Path(words[-1])))
    return found


def programs(runs: Path) -> list[Victim]:
    """The tuned programs under way."""
    found = []
    for folder in runs.iterdir() if runs.exists() else ():
        if not (folder / "result").exists():
            found += [Victim("program", one.pid, folder) for one in JobFolder(folder).processes()[1:] if one.is_alive()]
    return found


def kill(victim: Victim) -> Kill | None:
    """Kill a process and wait for its death; None if it has ended before."""
    try:
        handle = os.pidfd_open(victim.pid)
    except ProcessLookupError:
        return None
    try:
        if _is_readable(handle, 0):
            return None  # ended, and not reaped yet
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        if not _is_readable(handle, _DEATH_MS):
            raise RuntimeError(f"process {victim.pid} does not die")
    except ProcessLookupError:
        return None
    finally:
        os.close(handle)
    if victim.folder is None:
        return Kill(victim.kind)
    noted = JobFolder(victim.folder).processes()
    had_claimed = bool(noted) and noted[0].pid == victim.pid
    is_fatal = victim.kind == "supervisor" and had_claimed and not (victim.folder / "result").exists()
    return Kill(victim.kind, victim.folder.name, is_fatal)


def _is_readable(handle: int, wait_ms: int) -> bool:
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    return bool(poller.poll(wait_ms))
