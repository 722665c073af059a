"""What processes counted, as the preload library writes it."""

import json
from collections.abc import Mapping
from pathlib import Path


def layer(**counts: object) -> dict[str, object]:
    """The counters of a layer or file; those not given are 0."""
    names = ("opens", "reads", "writes", "read_bytes", "write_bytes", "seeks", "syncs", "sequential_reads")
    more = ("sequential_writes", "collective_reads", "collective_writes")
    times = {"read_s": 0.0, "write_s": 0.0, "other_s": 0.0}
    sizes = {"read_sizes": [0] * 10, "write_sizes": [0] * 10}
    ends = {"smallest_write": 0, "largest_write": 0}
    return {**dict.fromkeys([*names, *more], 0), **times, **ends, **sizes, **counts}


def sizes(bucket: int, count: int) -> list[int]:
    """`count` operations in one bucket."""
    return [count if place == bucket else 0 for place in range(10)]


def process(pid: int = 1, rank: int | None = None, **more: object) -> dict[str, object]:
    """One process; `posix`, `mpiio` and `hdf5` are its layers."""
    layers = {name: more.pop(name, layer()) for name in ("posix", "mpiio", "hdf5")}
    return {
        "version": 1,
        "program": "/usr/bin/app",
        "pid": pid,
        "host": "n1",
        "rank": rank or 0,
        "ranks": 1 if rank is None else 2,
        "wall_s": 4.0,
        "layers": layers,
        "files": [],
        "settings": {"applied": {}, "without_effect": {}, "unknown": []},
        "warnings": [],
        **more,
    }


def record(folder: Path, *processes: Mapping[str, object]) -> Path:
    """Write the files of a run; return the folder of the run."""
    (folder / "io").mkdir(exist_ok=True)
    for one in processes:
        (folder / "io" / f"n1-{one['pid']}.json").write_text(json.dumps(one))
    return folder
