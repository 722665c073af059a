"""The fakeapp: an application that does nothing but read a file in a given pattern (Robert's thesis, section 2.2.3).

The file is cut into as many parts as there are *leads*, one in the middle of each part. The application reads a few
times in a row at random places next to one lead (within its *scatter*), then next to the following one; after a round
over all leads, the leads may advance.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from luthier.errors import InvalidInputError

IntArray: TypeAlias = npt.NDArray[np.int64]
Range: TypeAlias = tuple[int, int]

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True)
class Reads:
    """The reads of the application in order: before each one it computes for some time."""

    offset_bytes: IntArray
    size_bytes: int
    compute_s: float


@dataclass(frozen=True, slots=True)
class Pattern:
    """The parameters of table 2.2; where a range is given, each lead draws its own value from it.

    `scatter_bytes` is the width of the area behind a lead and `repeat` the number of reads in a row at one lead.
    """

    leads: int
    rounds: int
    scatter_bytes: Range
    repeat: Range
    advance_bytes: int = 0
    compute_s: float = 0.0
    size_bytes: int = 4 * KIB
    file_bytes: int = 100 * GIB

    def __post_init__(self) -> None:
        if min(self.leads, self.rounds, self.size_bytes) < 1:
            raise InvalidInputError("pattern: leads, rounds and size_bytes must be 1 or more")
        for name, (low, high), least in (("scatter_bytes", self.scatter_bytes, 0), ("repeat", self.repeat, 1)):
            if not least <= low <= high:
                raise InvalidInputError(f"pattern: {name} goes from {low} to {high}; give {least} <= low <= high")
        widest = self.scatter_bytes[1] + self.rounds * self.advance_bytes + self.size_bytes
        room = self.file_bytes // self.leads // 2
        if self.advance_bytes < 0 or widest > room:
            raise InvalidInputError(f"pattern: a lead needs {widest} bytes and has {room}; give a larger file_bytes")

    def reads(self, *, seed: int) -> Reads:
        """Draw the reads of one run, in order."""
        rng = np.random.default_rng(seed)
        scatter = rng.integers(*self.scatter_bytes, self.leads, endpoint=True)
        repeat = rng.integers(*self.repeat, self.leads, endpoint=True)
        start = (2 * np.arange(self.leads) + 1) * (self.file_bytes // self.leads) // 2
        lead = np.tile(np.repeat(np.arange(self.leads), repeat), self.rounds)
        passed = np.repeat(np.arange(self.rounds), repeat.sum())
        place = start[lead] + passed * self.advance_bytes + (rng.random(len(lead)) * scatter[lead]).astype(np.int64)
        return Reads(place - place % self.size_bytes, self.size_bytes, self.compute_s)


# a to d of section 2.2.3; b, c and d are SRO.1, 2 and 3 of table 4.4, hotspots is the pattern of section 5.5.1. Each is
# cut to a stretch: fewer rounds (b, c) or leads (d, hotspots), a fifth of the scatter for c, an eighth of the reads at
# each hotspot. No figures for a are published.
PATTERNS = {
    "a": Pattern(60, 100, (0, 0), (1, 1), advance_bytes=128 * KIB, compute_s=3e-3),
    "b": Pattern(4, 6, (50 * MIB, 50 * MIB), (1000, 1000), advance_bytes=10 * MIB),
    "c": Pattern(220, 200, (2 * MIB, 2 * MIB), (1, 1)),
    "d": Pattern(20, 1, (50 * KIB, 500 * MIB), (100, 500)),
    "hotspots": Pattern(8, 1, (50 * MIB, 50 * MIB), (1200, 1200), file_bytes=500 * GIB),
}
