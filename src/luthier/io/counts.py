"""What the preload library `libluthier_io.so` counted in a run: one JSON file for each process."""

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType

from luthier.io.loop_counts import LoopTrace, loop_traces
from luthier.trial import Json

COUNT_FOLDER = "io"
"""The folder in that of a run into which its processes write what they counted."""
LAYERS = ("hdf5", "mpiio", "posix")
"""The layers of I/O, the highest first: a call of a higher one makes calls of the lower ones."""
LAYER_NAMES = {"hdf5": "HDF5", "mpiio": "MPI-IO", "posix": "POSIX"}
BUCKETS = (
    *("0-100 B", "100 B-1 kB", "1-10 kB", "10-100 kB", "0.1-1 MB"),
    *("1-4 MB", "4-10 MB", "10-100 MB", "0.1-1 GB", "more"),
)
"""The sizes of one read or write that are counted together."""
VERSION = 1

_NO_SIZES = (0,) * len(BUCKETS)
_LARGEST_FILE_BYTES = 16 << 20
_NOT_ADDED = ("smallest_write", "largest_write", "read_sizes", "write_sizes")


@dataclass(frozen=True, slots=True)
class Counts:
    """Operations, bytes and seconds; `other_s` is the time in anything that neither reads nor writes.

    `sequential_*` are those that began where the one before ended, `collective_*` those that all ranks took part in.
    """

    opens: int = 0
    reads: int = 0
    writes: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    read_s: float = 0.0
    write_s: float = 0.0
    other_s: float = 0.0
    seeks: int = 0
    syncs: int = 0
    sequential_reads: int = 0
    sequential_writes: int = 0
    collective_reads: int = 0
    collective_writes: int = 0
    smallest_write: int | None = None
    largest_write: int | None = None
    read_sizes: tuple[int, ...] = _NO_SIZES
    write_sizes: tuple[int, ...] = _NO_SIZES

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.write_bytes

    @property
    def operations(self) -> int:
        """All calls."""
        return self.opens + self.reads + self.writes + self.seeks + self.syncs

    @property
    def time_s(self) -> float:
        """Seconds in all calls."""
        return self.read_s + self.write_s + self.other_s

    @property
    def written_share(self) -> float:
        """The share of the bytes that was written; 0 without any."""
        return self.write_bytes / self.bytes if self.bytes else 0.0


NO_COUNTS = Counts()
NUMBERS = tuple(one.name for one in fields(Counts) if one.name not in _NOT_ADDED)
"""The names of the counters that can be added."""


@dataclass(frozen=True, slots=True)
class FileCounts:
    """What was counted for one file in one layer.

    `order` is a digest of its operations in their order, `operations` one that does not depend on the order. Files
    of the system, and those that MPI makes for itself, are marked. A file is shortened if it was written in a loop of a
    reduced I/O kernel, and reread if it was then read after that loop or in another one.
    """

    path: str
    layer: str
    counts: Counts
    order: str = ""
    operations: str = ""
    is_system: bool = False
    is_shortened: bool = False
    is_reread: bool = False


@dataclass(frozen=True, slots=True)
class ProcessCounts:
    """What one process counted; `rank` is None if it is not one of several ranks of an MPI program.

    `applied`, `without_effect` (with the reason) and `unknown` are the settings that were injected, or were not.
    `order` is a digest of all operations in their order, without files of the system; it means nothing if several
    threads made them. With `has_unlisted` there were more files than are listed. `scaled` are the factors of the loops
    of a reduced I/O kernel, by their numbers: all counters are those of whole loops then. `loops` is what was recorded
    about loops, if that was asked for.
    """

    program: str
    host: str
    pid: int
    wall_s: float
    layers: Mapping[str, Counts]
    rank: int | None = None
    ranks: int = 1
    files: tuple[FileCounts, ...] = ()
    applied: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    without_effect: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    unknown: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    order: str = ""
    is_threaded: bool = False
    has_unlisted: bool = False
    scaled: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    loops: tuple[LoopTrace, ...] = ()

    def layer(self, name: str) -> Counts:
        """What was counted in a layer."""
        return self.layers.get(name, NO_COUNTS)


def total(many: Iterable[Counts]) -> Counts:
    """The sum over processes or files; the sizes of the smallest and largest write are those of all."""
    listed = list(many)
    sums = {name: sum(getattr(one, name) for one in listed) for name in NUMBERS}
    return replace(
        Counts(**sums),
        smallest_write=min((one.smallest_write for one in listed if one.smallest_write is not None), default=None),
        largest_write=max((one.largest_write for one in listed if one.largest_write is not None), default=None),
        read_sizes=_added(one.read_sizes for one in listed),
        write_sizes=_added(one.write_sizes for one in listed),
    )


def _added(many: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(_NO_SIZES, *many, strict=True)))


def used_layer(processes: Sequence[ProcessCounts]) -> str:
    """The highest layer in which anything was read or written."""
    return next((name for name in LAYERS if any(one.layer(name).bytes for one in processes)), LAYERS[-1])


def layer_total(processes: Sequence[ProcessCounts], layer: str) -> Counts:
    """The sum over all processes in one layer."""
    return total(process.layer(layer) for process in processes)


def read_processes(folder: Path) -> list[ProcessCounts]:
    """What all processes of a run counted, ranks in their order; a `ValueError` names a file that is damaged."""
    found = []
    for path in sorted(folder.glob("[!.]*.json")):  # a file with a leading dot is being written
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise ValueError(f"{path.name} is longer than {_LARGEST_FILE_BYTES >> 20} MiB")
        try:
            found.append(process_from(json.loads(path.read_bytes())))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path.name}: {error}") from None
    return sorted(found, key=lambda one: (one.rank is None, one.rank or 0, one.host, one.pid))


def read_run(folder: Path) -> list[ProcessCounts]:
    """What all processes of a run counted, from the folder of the run; what they printed to its logs does not count."""
    logs = {str(path) for name in ("stdout", "stderr") for path in (folder / name, (folder / name).resolve())}
    return [_without(logs, process) for process in read_processes(folder / COUNT_FOLDER)]


def _without(paths: Set[str], process: ProcessCounts) -> ProcessCounts:
    """What a process counted except for some files."""
    removed = [file for file in process.files if file.path in paths]
    if not removed:
        return process
    kept = tuple(file for file in process.files if file.path not in paths)
    layers = dict(process.layers)
    for file in removed:
        layers[file.layer] = _difference(layers.get(file.layer, NO_COUNTS), file.counts)
    return replace(process, files=kept, layers=layers)


def _difference(whole: Counts, part: Counts) -> Counts:
    """The counters without a part of them; the smallest and largest write stay those of all."""
    numbers = {name: max(getattr(whole, name) - getattr(part, name), 0) for name in NUMBERS}
    pairs = ((whole.read_sizes, part.read_sizes), (whole.write_sizes, part.write_sizes))
    reads, writes = (tuple(max(a - b, 0) for a, b in zip(*pair, strict=True)) for pair in pairs)
    return replace(whole, **numbers, read_sizes=reads, write_sizes=writes)


def process_from(plain: object) -> ProcessCounts:
    """What one process counted, out of its JSON; a `ValueError` tells what is wrong with that."""
    given = _mapping(plain, "it")
    if given.get("version") != VERSION:
        raise ValueError(f"version {given.get('version')!r:.20} is not supported, expected {VERSION}")
    settings = _mapping(given.get("settings", {}), "settings")
    rank, ranks = (int(_number(given.get(name, count), name)) for name, count in (("rank", 0), ("ranks", 1)))
    return ProcessCounts(
        program=str(given.get("program", "")),
        host=str(given.get("host", "")),
        pid=int(_number(given.get("pid", 0), "pid")),
        wall_s=_number(given.get("wall_s", 0.0), "wall_s"),
        layers={name: _counts(one, name) for name, one in _mapping(given.get("layers", {}), "layers").items()},
        rank=rank if ranks > 1 else None,
        ranks=ranks,
        files=tuple(map(_file, _list(given.get("files", []), "files"))),
        applied=_texts(settings.get("applied", {}), "applied"),
        without_effect=_texts(settings.get("without_effect", {}), "without_effect"),
        unknown=tuple(map(str, _list(settings.get("unknown", []), "unknown"))),
        warnings=tuple(map(str, _list(given.get("warnings", []), "warnings"))),
        order=str(given.get("order", "")),
        is_threaded=given.get("threads") is True,
        has_unlisted=given.get("unlisted") is True,
        scaled={int(n): _number(one, "scaled") for n, one in _mapping(given.get("scaled", {}), "scaled").items()},
        loops=loop_traces(given.get("loops", []), len(LAYERS)),
    )


def counts_json(counts: Counts) -> dict[str, Json]:
    """The counters as plain values."""
    return {one.name: _plain(getattr(counts, one.name)) for one in fields(counts)}


def _plain(value: Json) -> Json:
    return list(value) if isinstance(value, tuple) else value


def _file(given: object) -> FileCounts:
    plain = _mapping(given, "a file")
    if plain.get("layer") not in LAYERS:
        raise ValueError(f"a file has the layer {plain.get('layer')!r:.40}, expected one of {', '.join(LAYERS)}")
    order, operations = (str(plain.get(name, "")) for name in ("order", "operations"))
    marks = [plain.get(name) is True for name in ("system", "shortened", "reread")]
    return FileCounts(
        str(plain.get("path", "")), str(plain["layer"]), _counts(plain, "a file"), order, operations, *marks
    )


def _counts(given: object, what: str) -> Counts:
    plain = _mapping(given, what)
    numbers = {name: _number(plain.get(name, 0), name) for name in NUMBERS}
    typed = {name: value if name.endswith("_s") else int(value) for name, value in numbers.items()}
    return replace(
        Counts(**typed),  # type: ignore[arg-type]  # the types are those of the fields
        smallest_write=int(_number(plain.get("smallest_write", 0), "smallest_write")) if typed["writes"] else None,
        largest_write=int(_number(plain.get("largest_write", 0), "largest_write")) if typed["writes"] else None,
        read_sizes=_sizes(plain, "read_sizes"),
        write_sizes=_sizes(plain, "write_sizes"),
    )


def _sizes(plain: Mapping[str, object], name: str) -> tuple[int, ...]:
    listed = _list(plain.get(name, _NO_SIZES), name)
    if len(listed) != len(BUCKETS):
        raise ValueError(f"{name} has {len(listed)} numbers, expected {len(BUCKETS)}")
    return tuple(int(_number(one, name)) for one in listed)


def _mapping(given: object, what: str) -> Mapping[str, object]:
    if not isinstance(given, dict):
        raise ValueError(f"{what} is not an object")
    return given


def _list(given: object, what: str) -> Sequence[object]:
    if not isinstance(given, list | tuple):
        raise ValueError(f"{what} is not a list")
    return given


def _number(given: object, what: str) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < 2**64:
        raise ValueError(f"{what} is {given!r:.40}, expected a number of at least 0")
    return given


def _texts(given: object, what: str) -> dict[str, str]:
    return {str(name): str(text) for name, text in _mapping(given, what).items()}
