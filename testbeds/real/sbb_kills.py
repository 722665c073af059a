"""Kill the burst buffer's daemon during bursts of writes, and count what is missing of the data it had acknowledged."""

import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from testbeds.real import sbb_writer
from testbeds.real.sbb import Daemon, Programs
from testbeds.real.sbb_writer import FILE_BYTES, LARGEST, write_of
from testbeds.real.slow_storage import SlowStorage

WRITERS = 3
SYNC_EVERY = 5  # in mode ram the promise is made by fsync
IN_FLIGHT = SYNC_EVERY + 1  # writes that may have been sent after the last acknowledged one
LATEST_S = 0.4  # of the kill, after the first writes
BOUND_S = 60.0


@dataclass(frozen=True, slots=True)
class Kill:
    """What one kill did: the acknowledged writes, and the bytes of them that were not in the target after a restart."""

    acknowledged: int
    lost_bytes: int
    recovered_bytes: int


def lost_bytes(path: Path, seed: int, acknowledged: int) -> int:
    """Bytes of the file that are neither what was acknowledged last nor part of a later write."""
    content = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    expected = np.zeros(FILE_BYTES + LARGEST, dtype=np.uint8)
    size = 0
    for number in range(acknowledged + 1):
        offset, data = write_of(seed, number)
        expected[offset : offset + len(data)] = np.frombuffer(data, dtype=np.uint8)
        size = max(size, offset + len(data))
    found = np.zeros_like(expected)
    found[: len(content)] = content[: len(found)]
    wrong = found != expected
    for number in range(acknowledged + 1, acknowledged + 1 + IN_FLIGHT):  # may have arrived, or not
        offset, data = write_of(seed, number)
        later = slice(offset, offset + len(data))
        wrong[later] &= found[later] != np.frombuffer(data, dtype=np.uint8)
    return int(wrong.sum()) + max(0, size - len(content))


class Writers:
    """Several programs that write through the burst buffer until it is gone."""

    def __init__(self, target: Path, variables: Mapping[str, str], seed: int, sync_every: int) -> None:
        self._seeds = [seed * WRITERS + number for number in range(WRITERS)]
        self._paths = [target / f"kill-{number}" for number in range(WRITERS)]
        # With env, so that the library is preloaded into the writer alone.
        start = ["env", *(f"{name}={value}" for name, value in variables.items()), sys.executable, "-S"]
        self._processes = [
            subprocess.Popen(
                [*start, str(sbb_writer.__file__), str(path), str(number), str(sync_every)],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,  # communicate() would not see what readline() has read ahead
            )
            for path, number in zip(self._paths, self._seeds, strict=True)
        ]
        # Each has an acknowledged write before the daemon is killed: else it would go on without one.
        self._first = [process.stdout.readline() for process in self._processes if process.stdout is not None]

    def finish(self) -> Iterator[tuple[Path, int, int]]:
        """Wait for their end; path, seed and the number of the last acknowledged write of each."""
        for index, process in enumerate(self._processes):
            try:
                lines = process.communicate(timeout=BOUND_S)[0].split()
            except subprocess.TimeoutExpired:
                for hanging in self._processes:
                    hanging.kill()
                    hanging.communicate()
                raise
            if process.returncode != sbb_writer.DIED:
                raise RuntimeError(f"a writer ended with {process.returncode} instead of being refused")
            yield self._paths[index], self._seeds[index], int(lines[-1] if lines else self._first[index])


def kill_once(
    programs: Programs,
    folder: Path,
    target: Path,
    settings: Mapping[str, object],
    *,
    seed: int,
    storage: SlowStorage | None = None,
) -> Kill:
    """One burst, one kill at a random moment, one restart."""
    daemon = Daemon(programs.sbbd, folder, target, settings, storage=storage)
    sync_every = SYNC_EVERY if settings.get("SBB_MODE") == "ram" else 0
    writers = Writers(target, daemon.preload(programs.libsbb), seed, sync_every)
    time.sleep(random.Random(seed).uniform(0.0, LATEST_S))  # noqa: S311 - no secret
    daemon.kill()
    ended = list(writers.finish())
    again = Daemon(programs.sbbd, folder, target, settings, storage=storage)
    recovered = again.counter("recovered_bytes")
    lost = sum(lost_bytes(path, number, last) for path, number, last in ended)
    again.stop()
    return Kill(sum(last + 1 for _, _, last in ended), lost, recovered)
