"""What the counters of I/O say about a program: totals, files, ranks, and hints at what to tune."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from luthier.io.counts import (
    LAYERS,
    NO_COUNTS,
    Counts,
    FileCounts,
    ProcessCounts,
    counts_json,
    layer_total,
    total,
    used_layer,
)
from luthier.io.measures import perf, read_bandwidth, time_s, write_bandwidth
from luthier.result.text import bytes_text, seconds_text
from luthier.trial import Json

_SMALL = 3  # buckets of sizes: up to 10 kB
_MANY = 500  # operations, below which their size does not matter
_MOSTLY = 0.5
_MANY_FILES, _SMALL_FILE_BYTES = 200, 65536
_INDEPENDENT = 0.1  # share of collective operations below which a program counts as independent
_MANY_CALLS = 8  # POSIX calls for one call of HDF5
_AMPLIFIED = 2.0
_UNEVEN = 2.0
_NEGLIGIBLE = 0.02  # share of the run time


@dataclass(frozen=True, slots=True)
class Hint:
    """An observation with the number that it rests on, and what to try."""

    observed: str
    advice: str

    @property
    def text(self) -> str:
        """Both as one line."""
        return f"{self.observed}: {self.advice}"


@dataclass(frozen=True, slots=True)
class Spread:
    """How evenly the ranks of an MPI program share the I/O: mean and largest, and which rank has the largest."""

    ranks: int
    mean_bytes: float
    most_bytes: int
    most_bytes_rank: int
    mean_s: float
    most_s: float
    most_s_rank: int


@dataclass(frozen=True, slots=True)
class Injected:
    """The settings that were applied in at least one process, those without effect in all (with the reason), others."""

    applied: dict[str, str]
    without_effect: dict[str, str]
    unknown: list[str]


@dataclass(frozen=True, slots=True)
class IoProfile:
    """The I/O of one run of a program.

    `files` are summed over processes, those with most bytes first. `used` is the highest layer that the program used.
    """

    processes: tuple[ProcessCounts, ...]
    wall_s: float
    layers: dict[str, Counts]
    used: str
    files: tuple[FileCounts, ...]
    spread: Spread | None

    @property
    def own(self) -> Counts:
        """What the program itself asked for."""
        return self.layers[self.used]

    @property
    def is_parallel(self) -> bool:
        """Whether it is an MPI program with several ranks."""
        return self.spread is not None and self.spread.ranks > 1


def profile_of(processes: Sequence[ProcessCounts], wall_s: float) -> IoProfile:
    """The profile of a run that took `wall_s` seconds."""
    layers = {name: layer_total(processes, name) for name in LAYERS}
    layers = {name: counts for name, counts in layers.items() if counts != NO_COUNTS}
    used = used_layer(processes)
    layers.setdefault(used, NO_COUNTS)
    return IoProfile(tuple(processes), wall_s, layers, used, _files(processes), _spread(processes, used))


def hints(profile: IoProfile) -> list[Hint]:
    """What to tune, the most promising first."""
    share = time_s(profile.processes) / profile.wall_s if profile.wall_s > 0 else 0.0
    if not profile.own.operations:
        return [Hint("no I/O with regular files was counted", "there is nothing to tune here")]
    found = []
    if share < _NEGLIGIBLE:
        observed = f"I/O takes {_percent(share)} of the run time"
        found.append(Hint(observed, "tuning it cannot make this run noticeably faster"))
    looks = (_layout, _independent, _small_files, _small_writes, _small_reads, _scattered, _metadata, _syncs, _uneven)
    return [*found, *(hint for look in looks for hint in look(profile))]


def _layout(profile: IoProfile) -> Iterator[Hint]:
    """The layout of a dataset in the file does not fit the way it is read."""
    hdf5, posix = (profile.layers.get(name, NO_COUNTS) for name in ("hdf5", "posix"))
    advice = "try chunks of the shape that is read at a time (chunk, chunk_cache_bytes), or a larger sieve_buffer"
    if hdf5.read_bytes and posix.read_bytes > _AMPLIFIED * hdf5.read_bytes:
        observed = f"{bytes_text(posix.read_bytes)} were read from files for {bytes_text(hdf5.read_bytes)} of data"
        yield Hint(observed, advice)
    elif hdf5.reads and posix.reads >= _MANY and posix.reads > _MANY_CALLS * hdf5.reads:
        each = posix.reads / hdf5.reads
        observed = f"one read of a dataset makes {each:.0f} reads of the file, as when columns are read from rows"
        yield Hint(observed, advice)


def _independent(profile: IoProfile) -> Iterator[Hint]:
    """Every rank reads or writes for itself."""
    mpiio = profile.layers.get("mpiio", NO_COUNTS)
    kinds = (
        ("write", mpiio.writes, mpiio.collective_writes),
        ("read", mpiio.reads, mpiio.collective_reads),
    )
    for verb, count, collective in kinds:
        if profile.is_parallel and count and collective < _INDEPENDENT * count:
            how = "transfer=collective" if profile.used == "hdf5" else f"collective calls such as MPI_File_{verb}_all"
            observed = f"{count - collective:,} of {count:,} MPI-IO {verb}s are independent"
            yield Hint(observed, f"try {how}, with cb_nodes and cb_buffer_size")


def _small_files(profile: IoProfile) -> Iterator[Hint]:
    posix = profile.layers.get("posix", NO_COUNTS)
    if _has_small_files(posix):
        observed = (
            f"files were opened {posix.opens:,} times, for {bytes_text(posix.bytes / posix.opens)} each on average"
        )
        yield Hint(observed, "keep many small files together in one")


def _has_small_files(posix: Counts) -> bool:
    """Whether operations are small because files are."""
    return posix.opens >= _MANY_FILES and posix.bytes < _SMALL_FILE_BYTES * posix.opens


def _small_writes(profile: IoProfile) -> Iterator[Hint]:
    posix = profile.layers.get("posix", NO_COUNTS)
    small = sum(posix.write_sizes[:_SMALL])
    if posix.writes >= _MANY and small > _MOSTLY * posix.writes and not _has_small_files(posix):
        observed = f"{small:,} of {posix.writes:,} writes ({_percent(small / posix.writes)}) are smaller than 10 kB"
        yield Hint(observed, _larger(profile, "write"))


def _small_reads(profile: IoProfile) -> Iterator[Hint]:
    posix = profile.layers.get("posix", NO_COUNTS)
    small = sum(posix.read_sizes[:_SMALL])
    if posix.reads >= _MANY and small > _MOSTLY * posix.reads and not _has_small_files(posix):
        observed = f"{small:,} of {posix.reads:,} reads ({_percent(small / posix.reads)}) are smaller than 10 kB"
        yield Hint(observed, _larger(profile, "read"))


def _larger(profile: IoProfile, verb: str) -> str:
    """How to make small operations larger, in the words of the layer that the program uses."""
    if profile.used == "posix":
        return f"{verb} larger blocks, or through a buffer"
    if profile.is_parallel:
        more = "transfer=collective or " if profile.used == "hdf5" else ""
        return f"try {more}romio_cb_{verb}=enable with a larger cb_buffer_size"
    return "try a larger sieve_buffer, larger chunks or a larger chunk_cache_bytes"


def _scattered(profile: IoProfile) -> Iterator[Hint]:
    """Small reads all over a file."""
    posix = profile.layers.get("posix", NO_COUNTS)
    share = posix.sequential_reads / posix.reads if posix.reads else 1.0
    if profile.used == "posix" and posix.reads >= _MANY and share < _MOSTLY:
        observed = f"only {_percent(share)} of {posix.reads:,} reads begin where the one before ended"
        yield Hint(
            observed, "on slow storage, try the prefetcher of docs/sro.md: LD_PRELOAD=$(luthier native path sro)"
        )


def _metadata(profile: IoProfile) -> Iterator[Hint]:
    posix = profile.layers.get("posix", NO_COUNTS)
    share = posix.other_s / posix.time_s if posix.time_s else 0.0
    if share > _MOSTLY and posix.opens + posix.seeks + posix.syncs >= _MANY:
        observed = f"{_percent(share)} of the time in POSIX calls goes to {posix.opens:,} opens, {posix.seeks:,} seeks "
        observed += f"and {posix.syncs:,} syncs instead of data"
        advice = "try metadata_block and metadata_cache" if profile.used == "hdf5" else "keep files open, seek less"
        yield Hint(observed, advice)


def _syncs(profile: IoProfile) -> Iterator[Hint]:
    posix = profile.layers.get("posix", NO_COUNTS)
    if posix.syncs >= 10 and posix.syncs > 0.1 * posix.writes:
        observed = f"{posix.syncs:,} syncs for {posix.writes:,} writes"
        yield Hint(observed, "wait for the disk less often, if the data can be computed again")


def _uneven(profile: IoProfile) -> Iterator[Hint]:
    spread = profile.spread
    if spread is None or spread.ranks < 2 or spread.mean_s <= 0 or spread.most_s < _UNEVEN * spread.mean_s:
        return
    times = spread.most_s / spread.mean_s
    observed = f"rank {spread.most_s_rank} spends {seconds_text(spread.most_s)} in I/O, {times:.1f} times the mean"
    yield Hint(observed, "share the data more evenly, or let more ranks write (cb_nodes)")


def _files(processes: Sequence[ProcessCounts]) -> tuple[FileCounts, ...]:
    found: dict[tuple[str, str], list[Counts]] = {}
    for process in processes:
        for file in process.files:
            found.setdefault((file.path, file.layer), []).append(file.counts)
    files = [FileCounts(path, layer, total(counts)) for (path, layer), counts in found.items()]
    return tuple(sorted(files, key=lambda one: (-one.counts.bytes, one.path, LAYERS.index(one.layer))))


def _spread(processes: Sequence[ProcessCounts], used: str) -> Spread | None:
    ranks = sorted({process.rank for process in processes if process.rank is not None})
    if not ranks:
        return None
    own = {rank: total(one.layer(used) for one in processes if one.rank == rank) for rank in ranks}
    by_bytes = max(own, key=lambda rank: own[rank].bytes)
    by_time = max(own, key=lambda rank: own[rank].time_s)
    return Spread(
        len(own),
        sum(one.bytes for one in own.values()) / len(own),
        own[by_bytes].bytes,
        by_bytes,
        sum(one.time_s for one in own.values()) / len(own),
        own[by_time].time_s,
        by_time,
    )


def profile_json(profile: IoProfile) -> dict[str, Json]:
    """The profile as JSON values."""
    rates = {"perf": perf, "write_bandwidth": write_bandwidth, "read_bandwidth": read_bandwidth, "time": time_s}
    return {
        "wall_s": profile.wall_s,
        "processes": len(profile.processes),
        "used_layer": profile.used,
        "measures": {f"io:{name}": rate(profile.processes) for name, rate in rates.items()},
        "layers": {name: counts_json(counts) for name, counts in profile.layers.items()},
        "files": [{"path": one.path, "layer": one.layer, **counts_json(one.counts)} for one in profile.files],
        "ranks": None if profile.spread is None else asdict(profile.spread),
        "settings": asdict(injected(profile.processes)),
        "hints": [{"observed": hint.observed, "advice": hint.advice} for hint in hints(profile)],
        "warnings": warnings_of(profile.processes),
    }


def injected(processes: Sequence[ProcessCounts]) -> Injected:
    """How the settings were applied in all processes."""
    applied = {name: text for process in processes for name, text in process.applied.items()}
    inert = {name: why for process in processes for name, why in process.without_effect.items() if name not in applied}
    return Injected(applied, inert, sorted({name for process in processes for name in process.unknown}))


def warnings_of(processes: Sequence[ProcessCounts]) -> list[str]:
    """The warnings of all processes, each once."""
    return list(dict.fromkeys(text for process in processes for text in process.warnings))


def _percent(share: float) -> str:
    return f"{100.0 * share:.2g} %" if share < 0.1 else f"{100.0 * share:.0f} %"
