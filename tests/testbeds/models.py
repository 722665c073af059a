"""What fakeapp and libsro should do, in plain Python: written after docs/sro.md, to hold the C programs against."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
ZONES = 64


class SplitMix:
    """The random numbers of fakeapp."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def next(self) -> int:
        self._state = (self._state + GOLDEN) & MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def draw(self, low: int, high: int) -> int:
        return low + self.next() % (high - low + 1)


@dataclass(frozen=True)
class Pattern:
    """The options of fakeapp; `operations` None: every lead has one turn."""

    operations: int | None
    leads: int
    scatter: tuple[int, int]
    repeat: tuple[int, int]
    advance: int
    sizes: tuple[int, int]
    seed: int

    def options(self) -> list[str]:
        (low, high), (few, many) = self.scatter, self.repeat
        scatter = ["-S", str(low)] if low == high else ["-g", f"{low}:{high}"]
        repeat = ["-r", str(few)] if few == many and self.operations is not None else ["-G", f"{few}:{many}"]
        total = [] if self.operations is None else ["-N", str(self.operations)]
        rest = {"-L": self.leads, "-l": self.advance, "-w": self.sizes[0], "-W": self.sizes[1], "--seed": self.seed}
        return [*scatter, *repeat, *total, *(word for name, value in rest.items() for word in (name, str(value)))]

    def reads(self, file_bytes: int) -> Iterator[tuple[int, int]]:
        """The offset and size of every read."""
        luck = SplitMix(self.seed)
        scatters = [luck.draw(*self.scatter) for _ in range(self.leads)]
        part, moved, done = file_bytes // self.leads, 0, 0
        while True:
            for lead, scatter in enumerate(scatters):
                for _ in range(luck.draw(*self.repeat)):
                    if done == self.operations:
                        break
                    size, shift = luck.draw(*self.sizes), luck.draw(0, scatter)
                    offset = (lead * part + part // 2 + moved - scatter // 2 + shift) % file_bytes
                    yield min(offset - offset % self.sizes[0], file_bytes - size), size
                    done += 1
            moved = (moved + self.advance) % file_bytes
            if self.operations in (None, done):
                return


def checksum(data: bytes, reads: list[tuple[int, int]]) -> str:
    """What fakeapp prints after these reads of a file with this content."""
    value = 0
    for offset, size in reads:
        for at in range(offset, offset + size, 8):
            word = int.from_bytes(data[at : min(at + 8, offset + size)], "little")
            value = ((value ^ word) * GOLDEN) & MASK
            value ^= value >> 32
    return f"{value:016x}"


def data_file(size: int) -> bytes:
    """What `fakeapp --create` writes."""
    luck = SplitMix(0)
    return b"".join(luck.next().to_bytes(8, "little") for _ in range(-(-size // 8)))[:size]


@dataclass(frozen=True)
class Sro:
    """The four parameters of libsro."""

    sequence_length: int
    bin_size: int
    cluster_threshold: int
    prefetch_size: int

    def environment(self) -> dict[str, str]:
        return {
            "SRO_SEQUENCE_LENGTH": str(self.sequence_length),
            "SRO_DSC_BINSIZE": str(self.bin_size),
            "SRO_CLUSTER_THRESHOLD": str(self.cluster_threshold),
            "SRO_PREFETCH_SIZE": str(self.prefetch_size),
        }

    def counters(self, reads: list[tuple[int, int]], file_bytes: int) -> dict[str, int]:
        """What SRO_STATS should tell after these reads of one file."""
        window: deque[int] = deque(maxlen=self.sequence_length)
        zones: deque[int] = deque(maxlen=ZONES)
        counted = dict.fromkeys(("reads", "sequential", "covered", "loads", "loaded_bytes"), 0)
        expected = 0
        for offset, size in reads:
            if size >= self.bin_size:
                continue
            counted["reads"] += 1
            in_sequence, expected = offset == expected, offset + size
            if in_sequence:
                counted["sequential"] += 1
                continue
            window.append(offset // self.bin_size)
            zone = offset // self.prefetch_size
            if zone in zones:
                counted["covered"] += 1
            elif window.count(offset // self.bin_size) >= self.cluster_threshold:
                zones.append(zone)
                counted["loads"] += 1
                counted["loaded_bytes"] += min((zone + 1) * self.prefetch_size, file_bytes) - zone * self.prefetch_size
        return counted
