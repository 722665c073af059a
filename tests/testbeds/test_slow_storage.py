"""Slow storage: set up, throttled, counted, and gone afterwards whatever happened."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from luthier.errors import UnavailableError
from testbeds.real import slow_storage as module
from testbeds.real.slow_storage import slow_storage, why_unavailable
from testbeds.real.sro import Programs

pytestmark = pytest.mark.skipif(why_unavailable() is not None, reason=why_unavailable() or "")

QUICK = {"size_bytes": 64 << 20, "read_iops": 1_000_000, "read_bytes_s": 1 << 40}
COMMAND = [sys.executable, "-m", module.__name__, "--size", "64M"]


def wait_for_end(process: int) -> None:
    """Wait for a process that is not our child."""
    watched = os.pidfd_open(process)
    try:
        assert select.select([watched], [], [], 60)[0], "it lives on"
    finally:
        os.close(watched)


def traces(folder: Path, group: Path) -> list[Path]:
    """What is left of a slow storage."""
    mounts = [Path(line.split()[1]) for line in Path("/proc/mounts").read_text().splitlines()]
    return [path for path in (group, folder.parent) if path.exists()] + [path for path in mounts if path == folder]


class Owner:
    """A process that owns slow storage and waits inside of it."""

    def __init__(self) -> None:
        say = 'echo "$SLOW_STORAGE"; grep blkio /proc/self/cgroup; read -r _; echo still here'
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([*COMMAND, "--", "sh", "-c", say], stdin=pipe, stdout=pipe, text=True)
        assert self.process.stdout is not None
        self.folder = Path(self.process.stdout.readline().strip())
        self.group = Path("/sys/fs/cgroup/blkio") / self.process.stdout.readline().strip().rpartition("/")[2]
        self.keeper = int(self.group.suffix[1:])

    def finish(self) -> str:
        return self.process.communicate("\n")[0]


def test_limits_are_set_and_everything_goes_at_the_end() -> None:
    with slow_storage(size_bytes=64 << 20, read_iops=1234, read_bytes_s=5678 << 10) as storage:
        (storage.folder / "file").write_text("content")
        number = Path("/sys/block", storage.device, "dev").read_text().strip()
        assert (storage.group / "blkio.throttle.read_iops_device").read_text() == f"{number} 1234\n"
        assert (storage.group / "blkio.throttle.read_bps_device").read_text() == f"{number} {5678 << 10}\n"
        inside = subprocess.run(
            storage.inside(["grep", "blkio", "/proc/self/cgroup"]), capture_output=True, text=True, check=True
        )
        assert inside.stdout.strip().endswith(storage.group.name)
    assert traces(storage.folder, storage.group) == []
    assert not Path("/sys/block", storage.device, "loop").exists()


ASK = """
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
for start in range(0, 16 << 20, 128 << 10):
    os.posix_fadvise(file, start, 128 << 10, os.POSIX_FADV_WILLNEED)
"""


def test_a_rest_ends_when_nothing_comes_in_of_what_an_earlier_run_asked_for(programs: Programs) -> None:
    with slow_storage(size_bytes=96 << 20, read_iops=1000, read_bytes_s=32 << 20) as storage:
        data = storage.folder / "data"
        subprocess.run([programs.fakeapp, "--create", "16M", data], check=True)
        subprocess.run(storage.inside([sys.executable, "-c", ASK, str(data)]), check=True)  # half a second's worth
        one_read = [str(programs.fakeapp), "--operations", "1", "--rest-ms", "1", str(data)]
        subprocess.run(storage.inside(one_read), check=True, stdout=subprocess.DEVNULL)
        held = subprocess.run(
            ["fincore", "--noheadings", "--bytes", "--output", "RES", data], capture_output=True, text=True, check=True
        )
    assert int(held.stdout) < 1 << 20


def test_prefetching_saves_the_storage_most_requests(programs: Programs, tmp_path: Path) -> None:
    stats, requests, sums = tmp_path / "stats", {}, set()
    with slow_storage(**QUICK) as storage:
        data = storage.folder / "data"
        subprocess.run([programs.fakeapp, "--create", "48M", data], check=True)
        sro = ["SRO_SEQUENCE_LENGTH=400", "SRO_DSC_BINSIZE=256k", "SRO_PREFETCH_SIZE=512k", f"SRO_STATS={stats}"]
        for way, settings in (("plain", []), ("prefetched", [f"LD_PRELOAD={programs.libsro}", *sro])):
            command = ["env", *settings, str(programs.fakeapp), "-L", "8", "-S", "1M", "-r", "1", "-l", "0", str(data)]
            before = storage.read_requests()
            ended = subprocess.run(storage.inside(command), capture_output=True, text=True, check=True)
            requests[way] = storage.read_requests() - before
            sums.add(json.loads(ended.stdout)["checksum"])
    assert len(sums) == 1
    assert requests["plain"] > 1000  # 2,000 reads of 2,048 pages: about 1,280 different ones
    assert requests["prefetched"] < requests["plain"] / 3
    counted = json.loads(stats.read_text())
    assert counted["covered"] > 0.9 * counted["reads"]


def test_a_killed_owner_leaves_nothing() -> None:
    owner = Owner()
    assert traces(owner.folder, owner.group) != []
    owner.process.kill()
    wait_for_end(owner.keeper)
    assert traces(owner.folder, owner.group) == []
    assert owner.finish() == "still here\n"  # the command was let go, not killed


def test_what_a_killed_keeper_left_is_taken_down_by_the_next() -> None:
    owner = Owner()
    os.kill(owner.keeper, signal.SIGKILL)
    owner.finish()
    assert traces(owner.folder, owner.group) != []
    with slow_storage(**QUICK):
        assert traces(owner.folder, owner.group) == []


def test_a_keeper_told_to_end_takes_it_down() -> None:
    owner = Owner()
    os.kill(owner.keeper, signal.SIGTERM)
    wait_for_end(owner.keeper)
    assert traces(owner.folder, owner.group) == []
    owner.finish()


def test_what_cannot_be_set_up_is_one_line_and_leaves_nothing() -> None:
    before = set(Path("/var/tmp").glob("luthier-slow.*"))
    with pytest.raises(UnavailableError, match=r"slow storage could not be set up: .*") as caught:  # noqa: SIM117
        with slow_storage(size_bytes=1, read_iops=1, read_bytes_s=1):
            pytest.fail("no file system fits into one byte")
    assert "\n" not in str(caught.value)
    assert set(Path("/var/tmp").glob("luthier-slow.*")) <= before


def test_exit_codes_and_bad_amounts() -> None:
    assert subprocess.run([*COMMAND, "--", "sh", "-c", "exit 7"], check=False).returncode == 7
    ended = subprocess.run([*COMMAND, "--read-iops", "few", "--", "true"], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "--read-iops: 'few' is not a quantity" in ended.stderr
