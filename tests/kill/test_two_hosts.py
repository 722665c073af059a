"""Two hosts with one PostgreSQL store: one dies or stands still, the other takes its experiment over.

A host is a network, UTS and PID namespace: its name, its processes and its (empty) network are its own, and so is the
folder that it keeps runs in. Both reach the store through a unix socket. A host that is killed loses all its processes.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from tests.kill.audit import Evidence, audit
from tests.kill.site import PROGRAM

from luthier.store import open_store
from luthier.store.base import Record
from luthier.store.ownership import DEAD_AFTER_S
from luthier.store.sql import SqlStore
from luthier.trial import Run

NAMESPACES = ["unshare", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
AS_HOST = 'hostname "$0" && ip link set lo up && "$@"; exit $?'  # the shell stays: it is process 1 of the host
PATIENCE_S = 120.0
BUDGET = 12


class Host:
    """A machine of its own, as far as luthier can see."""

    def __init__(self, name: str, folder: Path, store_url: str) -> None:
        self.name, self.folder = name, folder / name
        self.folder.mkdir()
        kept = {key: value for key, value in os.environ.items() if not key.startswith("LUTHIER")}
        self.environment = {**kept, "XDG_DATA_HOME": str(self.folder), "LUTHIER_STORE": store_url}
        self.process: subprocess.Popen[str] | None = None

    def start(self, *words: str) -> None:
        """Start a command of luthier on this host."""
        argv = [*NAMESPACES, "sh", "-c", AS_HOST, self.name, sys.executable, "-m", "luthier", *words]
        null, pipe = subprocess.DEVNULL, subprocess.PIPE
        self.process = subprocess.Popen(
            argv, env=self.environment, cwd=self.folder, stdin=null, stdout=null, stderr=pipe, text=True
        )

    def ended(self) -> tuple[int, str]:
        """The exit code of the command and what it said on standard error, when it has ended."""
        assert self.process is not None
        said = self.process.communicate(timeout=PATIENCE_S)[1]
        return self.process.returncode, said

    def kill(self) -> None:
        """End the whole host at once, as a loss of power does."""
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            self.process.communicate()

    def signal_all(self, which: signal.Signals) -> None:
        """Send a signal to every process of this host."""
        assert self.process is not None
        waiting = [self.process.pid]
        while waiting:
            pid = waiting.pop()
            with suppress(OSError):
                waiting += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
                os.kill(pid, which)


class Site:
    """The store of two hosts, and the trace of the program that they tune."""

    def __init__(self, folder: Path, url: str) -> None:
        self.trace = folder / "trace"
        self.store = open_store(url)
        self.hosts = [Host(f"luthier-host-{letter}", folder, url) for letter in "ab"]

    def tune(self, host: Host) -> None:
        """Start an experiment on a host."""
        knobs = ["-p", "A=1..40", "-p", "B=1..3", "-p", "D=1..5", "--workers", "2", "-n", str(BUDGET), "--verify", "1"]
        program = ["sh", str(PROGRAM), str(self.trace), "{A}", "{B}", "{D}"]
        host.start("tune", "--quiet", *knobs, "--seed", "3", "-m", "regex:value: ([0-9]+)$", "--", *program)

    @property
    def record(self) -> Record:
        """The only experiment."""
        (found,) = self.store.experiments()
        return found

    def runs(self) -> Sequence[Run]:
        """Its runs."""
        return self.store.runs(self.record.id)

    def wait(self, what: Callable[[], bool]) -> None:
        """Wait until something is so."""
        give_up_at = time.monotonic() + PATIENCE_S
        while not what():
            assert time.monotonic() < give_up_at
            time.sleep(0.02)

    def wait_for(self, completed: int) -> None:
        """Wait until so many runs have ended, and another one is under way."""
        self.wait(lambda: len(self.store.experiments()) == 1)
        self.wait(
            lambda: (
                len(done := [run for run in self.runs() if run.outcome]) >= completed and len(self.runs()) > len(done)
            )
        )

    def expire(self) -> None:
        """Let the claim of the experiment expire, as if nobody had written a heartbeat for long."""
        record = self.record
        assert record.owner is not None
        self.store.heartbeat(record.id, record.owner, time.time() - DEAD_AFTER_S - 1, None)

    def findings(self, seen: dict[str, Run], interrupted: set[str]) -> list[tuple[str, str]]:
        """What is lost, doubled or invented; runs that a host took with it may be lost."""
        evidence = Evidence([(self.record, self.runs())], self.trace.read_text().splitlines(), seen=seen)
        found = audit(evidence)
        return [one for one in found if one[0] != "lost" or one[1].partition(":")[0] not in interrupted]

    def keys(self, *, ended: bool) -> dict[str, Run]:
        """The runs that have ended, or those that have not, by their keys."""
        uid = self.record.uid
        return {run.key(uid): run for run in self.runs() if (run.outcome is not None) == ended}


@pytest.fixture
def site(tmp_path: Path, postgresql_url: str) -> Iterator[Site]:
    """Two hosts, which share a store and nothing else."""
    if os.geteuid() != 0:
        pytest.skip("hosts are made of namespaces, which only root can make")
    if subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("namespaces cannot be made here: unshare --net --uts --pid fails")
    with psycopg.connect(postgresql_url) as connection:
        (folder,) = connection.execute("SHOW unix_socket_directories").fetchone() or ("",)
    parts = urlsplit(postgresql_url)
    site = Site(tmp_path, f"postgresql://luthier:{parts.password}@{parts.path}?host={folder}&port={parts.port}")
    yield site
    for host in site.hosts:
        host.kill()
    assert isinstance(site.store, SqlStore)
    site.store.dispose()


def test_two_hosts_take_over_from_each_other_when_one_is_killed(site: Site) -> None:
    one, other = site.hosts
    seen: dict[str, Run] = {}
    interrupted: set[str] = set()
    site.tune(one)
    for dying, heir, completed in ((one, other, 4), (other, one, 8)):
        site.wait_for(completed)
        assert site.record.owner is not None
        assert site.record.owner.host == dying.name
        dying.kill()
        seen |= site.keys(ended=True)
        interrupted |= site.keys(ended=False).keys()
        heir.start("resume", "1")
        code, said = heir.ended()
        assert code != 0
        assert re.search(rf"experiment 1 is in use by process \d+ on {dying.name}; wait for it", said)
        site.expire()
        heir.start("resume", "1")
    assert one.ended()[0] == 0
    assert interrupted
    assert site.findings(seen, interrupted) == []
    assert len(site.keys(ended=True)) >= BUDGET


def test_a_host_that_stood_still_writes_nothing_after_it_was_replaced(site: Site) -> None:
    one, other = site.hosts
    site.tune(one)
    site.wait_for(4)
    one.signal_all(signal.SIGSTOP)
    interrupted = {*site.keys(ended=False)}
    site.expire()
    other.start("resume", "1")
    assert other.ended()[0] == 0
    before = site.record, site.runs()
    one.signal_all(signal.SIGCONT)
    code, said = one.ended()
    assert code != 0
    assert "this process must not change it" in said
    assert (site.record, site.runs()) == before
    assert site.findings({}, interrupted) == []
