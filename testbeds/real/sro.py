"""A real Small Read Optimizer to tune: fakeapp with libsro.so preloaded (see `docs/sro.md`)."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import luthier as lt
from luthier.compiled import library
from testbeds.real.slow_storage import SlowStorage

# The names are those of SHAMan's component file (Robert's thesis, listing 6.4), and so are the defaults.
SPACE = lt.Space(
    lt.Integer("SRO_SEQUENCE_LENGTH", 25, 400, step=4, scale="log", default=100),
    lt.Integer("SRO_DSC_BINSIZE", 64 << 10, 1 << 20, step=4, scale="log", default=1 << 20),
    lt.Integer("SRO_CLUSTER_THRESHOLD", 2, 8, step=2, scale="log", default=2),
    lt.Integer("SRO_PREFETCH_SIZE", 320 << 10, 20 << 20, step=2, scale="log", default=20 << 20),
)

# Options of fakeapp. Each makes about a second of plain reads on the storage below.
PATTERNS: dict[str, tuple[str, ...]] = {
    "b": ("--pattern", "b", "--operations", "6000"),
    "c": ("--pattern", "c", "--operations", "2000"),
}
FILE_BYTES, READ_IOPS, READ_BYTES_S = 256 << 20, 2000, 128 << 20
# A throttled device lets a tenth of a second's worth of requests pass at once after a pause, and less without one.
REST_MS = 200


@dataclass(frozen=True, slots=True)
class Programs:
    """Where the built programs are."""

    fakeapp: Path
    libsro: Path


def build() -> Programs:
    """Build the programs, unless that was done before."""
    return Programs(library("fakeapp"), library("sro"))


@dataclass(frozen=True, slots=True)
class Fakeapp:
    """Fakeapp with one pattern on slow storage; a call with a configuration measures it in seconds."""

    programs: Programs
    storage: SlowStorage
    pattern: Sequence[str]

    def __call__(self, config: lt.Config) -> float:
        """Seconds of one run from a cold cache, prefetched as the configuration says."""
        return self._run(
            {**{name: str(value) for name, value in config.items()}, "LD_PRELOAD": str(self.programs.libsro)}
        )

    def plain(self) -> float:
        """Seconds of one run without the prefetcher."""
        return self._run({})

    def create(self) -> None:
        """Write the data file."""
        create = [str(self.programs.fakeapp), "--create", str(FILE_BYTES), str(self._data)]
        subprocess.run(create, check=True)

    @property
    def _data(self) -> Path:
        return self.storage.folder / "data"

    def _run(self, variables: dict[str, str]) -> float:
        command = [str(self.programs.fakeapp), *self.pattern, "--rest-ms", str(REST_MS), str(self._data)]
        # With env, so that the library is not preloaded into the shell that enters the group.
        command = self.storage.inside(["env", *(f"{name}={value}" for name, value in variables.items()), *command])
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ)
        return float(json.loads(ended.stdout)["seconds"])
