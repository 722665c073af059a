"""A Dask cluster for tests: a scheduler and workers, each a real process."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from luthier.runners.dask_cluster import DaskPlace, connect

LONG_S = 60.0


def wait_until(happened: Callable[[], bool], what: str) -> None:
    """Wait for something that will happen, and not for ever."""
    give_up_at = time.monotonic() + LONG_S
    while not happened():
        assert time.monotonic() < give_up_at, f"it did not happen: {what}"
        time.sleep(0.02)


class Site:
    """Starts and kills workers of a scheduler of its own."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self._folder = folder
        self.file = folder / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", **environment)
        wait_until(lambda: self.file.exists() and self.file.read_text().endswith("}"), "the scheduler starts")
        self._connection = connect(DaskPlace(str(self.file)), 1)
        self.address = str(self._connection.client.scheduler_info()["address"])

    def _start(self, kind: str, *options: str, **environment: str) -> "subprocess.Popen[bytes]":
        words = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--scheduler-file", str(self.file), *options]
        with (self._folder / f"{kind}.log").open("ab") as log:
            return subprocess.Popen(
                words,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
            )

    def add(self, *options: str, threads: int = 1, **environment: str) -> "subprocess.Popen[bytes]":
        """Start a worker; it joins a little later."""
        more = ["--no-nanny", "--no-dashboard", "--nthreads", str(threads), "--host", "127.0.0.1"]
        more += ["--local-directory", str(self._folder / "scratch")]
        self.workers.append(self._start("worker", *more, *options, **environment))
        return self.workers[-1]

    def count(self) -> int:
        """How many workers the scheduler knows."""
        return len(self._connection.client.nthreads())

    def names(self) -> list[str]:
        """The addresses of the workers."""
        return sorted(self._connection.client.nthreads())

    def has_finished(self, prefix: str) -> bool:
        """Whether a worker has finished a task whose name begins so, and has its result."""

        def states(dask_scheduler: Any) -> list[str]:
            return [task.state for name, task in dask_scheduler.tasks.items() if str(name).startswith(prefix)]

        return "memory" in self._connection.client.run_on_scheduler(states)

    def kill(self, worker: "subprocess.Popen[bytes]") -> None:
        """Kill a worker at once."""
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        self.workers.remove(worker)

    def known_tasks(self) -> list[str]:
        """The tasks that the scheduler has not forgotten."""
        names = self._connection.client.run_on_scheduler(lambda dask_scheduler: [*map(str, dask_scheduler.tasks)])
        return [name for name in names if name.startswith("luthier-")]

    def close(self) -> None:
        """End all processes."""
        self._connection.close()
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@contextmanager
def dask_site(folder: Path, workers: int, **environment: str) -> Iterator[Site]:
    """A cluster whose workers have joined; its scheduler has these variables."""
    folder.mkdir(exist_ok=True)
    site = Site(folder, **environment)
    try:
        for _ in range(workers):
            site.add()
        wait_until(lambda: site.count() == workers, "workers join")
        yield site
    finally:
        site.close()


def parents() -> dict[int, int]:
    """The parent of every process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                found[int(entry.name)] = int(fields[1])
    return found


def descendants(pid: int) -> list[int]:
    """The processes below a process."""
    known = parents()
    found: set[int] = set()
    new = {pid}
    while new:
        new = {child for child, parent in known.items() if parent in new} - found
        found |= new
    return sorted(found)


def listening(pids: list[int]) -> set[str]:
    """The addresses at which processes wait for connections, as the kernel writes them."""
    inodes = set()
    for pid in pids:
        with suppress(OSError):  # it ended meanwhile
            inodes |= {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                found.add(fields[1].partition(":")[0])
    return found


def is_alive(pid: int) -> bool:
    """Whether a process is there and not a zombie."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
