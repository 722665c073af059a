"""Measured tables of real systems, read from plain files, and their noise replayed run by run.

A data set is a folder with a `meta.json` that names its tables; a table is a (gzipped) CSV with one row per
configuration, its parameters, and one value or several repeats. The folder of data sets is `LUTHIER_DATA`.
The simulated systems of `testbeds/` are tables too, worked out when they are loaded: `testbed/sro/b`.
"""

import csv
import gzip
import json
import math
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Value: TypeAlias = bool | int | float | str
Point: TypeAlias = tuple[int, ...]
"""A configuration as the position of each of its values."""

PLAYED: Mapping[str, str] = {
    "convolution/A100": "GPU kernel, 57 % of the grid breaks its constraints, some runs fail, 32 repeats",
    "convolution/MI250X": "the same grid on another GPU, spread of two orders of magnitude",
    "convolution/W6600": "the same grid, noisier",
    "hepnos/4n-1s-11p": "storage service, 11 mixed parameters, time-outs; a sample: the nearest measured point answers",
    "hepnos/4n-2s-20p": "the same with 20 mixed parameters, half of the space fails",
    "iozone_fread/f1024": "throughput (maximised) with a coefficient of variation of 0.5, 40 repeats",
    "kripke/16n_2000": "MPI + OpenMP application, three decades of run time, two thirds of the grid cannot run",
    "kripke/16n_12000:pkg_limit_w=100": "its sibling at full power, a small table",
    "lulesh/set3": "compiler flags, complete grid, many ties",
    "lulesh/set4": "other compiler flags, complete grid",
    "openatom/water_128n": "Charm++ application, nearly complete grid",
    "postgresql/8.3.0": "database settings, complete grid, one switch matters most",
    "postgresql/11.2": "the same settings where next to nothing can be gained",
}
"""The tables of the comparison, and what each represents."""

LEFT_OUT: Mapping[str, str] = {
    "convolution/A4000": "resembles A100 closely; three GPUs of one kernel weigh enough",
    "hepnos/*": "the other three set-ups repeat the two that are played",
    "iozone_fread/*": "the other tables are slices of f1024 or mix workloads",
    "mpi_bcast": "at most 18 configurations for one context: nothing to search",
    "postgresql/*": "20 more releases lie between the two that are played",
}


TESTBEDS: tuple[str, ...] = (
    *(f"testbed/sro/{pattern}{storage}" for pattern in "bcd" for storage in ("", "-nfs")),
    "testbed/sbb/bandwidth",
    "testbed/sbb/latency",
)
"""Simulated systems in place of the eight tables of Robert's thesis (table 4.1): 1,920 and 4,500 configurations."""


def data_folder() -> Path:
    """The folder of data sets: `LUTHIER_DATA`, or `../shared/data` beside this clone."""
    named = os.environ.get("LUTHIER_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Table:
    """Every measured run of one system. `runs` holds NaN for a run that failed; an absent point cannot run."""

    name: str
    parameters: Mapping[str, tuple[Value, ...]]
    runs: Mapping[Point, tuple[float, ...]]
    minimise: bool = True
    default: Point | None = None
    nearest: Callable[[Point], Point] | None = field(default=None, compare=False)

    @property
    def size(self) -> int:
        """How many points the grid has, measured or not."""
        return math.prod(len(values) for values in self.parameters.values())

    def config(self, point: Point) -> dict[str, Value]:
        """The values at a point."""
        return {name: values[i] for (name, values), i in zip(self.parameters.items(), point, strict=True)}

    def point(self, config: Mapping[str, Value]) -> Point:
        """The point of a configuration."""
        return tuple(values.index(config[name]) for name, values in self.parameters.items())

    def number(self, point: Point) -> int:
        """The point as one number, for files."""
        number = 0
        for values, i in zip(self.parameters.values(), point, strict=True):
            number = number * len(values) + i
        return number

    def from_number(self, number: int) -> Point:
        """The point with this number."""
        point = []
        for values in list(self.parameters.values())[::-1]:
            number, i = divmod(number, len(values))
            point.append(i)
        return tuple(reversed(point))

    def runs_at(self, point: Point) -> tuple[float, ...]:
        """The runs measured at a point, or at the nearest one where the table is a sample; none if it cannot run."""
        if point not in self.runs and self.nearest is not None:
            point = self.nearest(point)
        return self.runs.get(point, ())

    def true(self, point: Point) -> float:
        """The mean of the completed runs; NaN if there are none."""
        good = [value for value in self.runs_at(point) if not math.isnan(value)]
        return sum(good) / len(good) if good else math.nan

    def optimum(self) -> float:
        """The best mean of all points."""
        means = [mean for mean in map(self.true, self.runs) if not math.isnan(mean)]
        return min(means) if self.minimise else max(means)

    def distance(self, true: float, optimum: float) -> float:
        """Percent by which a mean misses the optimum; infinite for NaN."""
        if math.isnan(true):
            return math.inf
        return 100.0 * (true - optimum if self.minimise else optimum - true) / abs(optimum)


def is_ordered(values: Iterable[Value]) -> bool:
    """Whether values are numbers, not switches or names."""
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


class Replay:
    """Replays the repeats of a table: the n-th run of a point is its n-th repeat, and after the last the first again.

    The first repeat depends on the seed and the point only, so all players get the same noise.
    """

    def __init__(self, table: Table, seed: int) -> None:
        self._table = table
        self._seed = seed
        self._count: Counter[Point] = Counter()

    def run(self, point: Point) -> float | None:
        """Run a point once more: its value, or None for a failure."""
        runs = self._table.runs_at(point)
        if not runs:
            return None
        start = zlib.crc32(f"{self._seed}:{self._table.number(point)}".encode())
        value = runs[(start + self._count[point]) % len(runs)]
        self._count[point] += 1
        return None if math.isnan(value) else value


def names() -> list[str]:
    """Every `<set>/<table>` in the data folder, and the testbeds."""
    found = list(TESTBEDS)
    for meta in sorted(data_folder().glob("*/meta.json")):
        found += [f"{meta.parent.name}/{table}" for table in json.loads(meta.read_text())["tables"]]
    return found


def load(name: str) -> Table:
    """Read `<set>/<table>`, or `<set>/<table>:parameter=value,...` with some parameters pinned; or a testbed."""
    set_name, _, testbed = name.partition("/")
    return _simulated(name, testbed) if set_name == "testbed" else _load(name, data_folder())


@lru_cache(32)
def _simulated(name: str, testbed: str) -> Table:
    """The whole grid of a testbed; imported here, as players' own interpreters need nothing of luthier otherwise."""
    from testbeds.testbed import find_testbed

    system = find_testbed(testbed)
    grid = system.grid
    values = {p.name: tuple(p.value(index) for index in range(p.size or 0)) for p in grid.parameters}
    points = [tuple(map(int, row)) for row in grid.grid()]
    return Table(name, values, {p: (s,) for p, s in zip(points, system.table().tolist(), strict=True)})


@lru_cache(32)
def _load(name: str, folder: Path) -> Table:
    full, _, pins = name.partition(":")
    set_name, _, table_name = full.partition("/")
    path = folder / set_name / "meta.json"
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such data set; set LUTHIER_DATA to the folder that holds {set_name}/")
    meta = json.loads(path.read_text())
    table_name = table_name or meta["primary"]
    if table_name not in meta["tables"]:
        raise KeyError(f"{name}: {set_name} has the tables {', '.join(meta['tables'])}")
    head = meta["tables"][table_name]
    pinned = dict(pin.split("=", 1) for pin in pins.split(",")) if pins else {}
    rows = list(_rows(path.parent / head["file"], {**head.get("filter", {}), **pinned}))
    kept = [parameter for parameter in head["params"] if parameter not in pinned]
    keys = [tuple(_typed(row[p], head["types"][p]) for p in kept) for row in rows]
    measured = [_measured(row, head) for row in rows]
    default = {p: value for p, value in (head["default"] or {}).items() if p in kept}
    if any("range" in domain for domain in head.get("domain", {}).values()):
        return _sampled(name, head, keys, measured, default)
    seen = [{key[i] for key in keys} for i in range(len(kept))]
    parameters = {p: tuple(v for v in head["params"][p] if v in seen[i]) for i, p in enumerate(kept)}
    runs: dict[Point, tuple[float, ...]] = {}
    for key, values in zip(keys, measured, strict=True):
        point = tuple(parameters[p].index(v) for p, v in zip(kept, key, strict=True))
        runs[point] = runs.get(point, ()) + values
    table = Table(name, parameters, runs, head["minimise"])
    return Table(name, parameters, runs, head["minimise"], table.point(default)) if set(default) == set(kept) else table


def _rows(path: Path, wanted: Mapping[str, Value]) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
        for row in csv.DictReader(file):
            if all(row[column] == str(value) for column, value in wanted.items()):
                yield row


def _typed(text: str, kind: str) -> Value:
    if kind == "bool":
        return text.lower() in ("true", "1", "1.0")
    return int(text) if kind == "int" else float(text) if kind == "float" else text


def _measured(row: Mapping[str, str], head: Mapping[str, list[str]]) -> tuple[float, ...]:
    """The repeats of a row (short rows are padded with blanks), or its one value; NaN for a failure."""
    values = [float(row[column]) for column in head["repeats"] if row[column]]
    return tuple(values) or (float(row[str(head["value"])] or "nan"),)


def _grid(domain: Mapping[str, list[int]]) -> tuple[Value, ...]:
    """The values offered for a declared range: all integers, or the powers of two of a logarithmic one."""
    if "values" in domain:
        return tuple(domain["values"])
    low, high = domain["range"]
    if not domain["log"]:
        return tuple(range(low, high + 1))
    steps = [low]
    while steps[-1] * 2 < high:
        steps.append(steps[-1] * 2)
    return (*steps, high)


def _sampled(
    name: str,
    head: Mapping[str, Mapping[str, Mapping[str, list[int]]]],
    keys: Sequence[tuple[Value, ...]],
    measured: Sequence[tuple[float, ...]],
    default: Mapping[str, Value],
) -> Table:
    """A table for a sample of a wide space: rows snap to a grid, and the nearest one answers for every point."""
    names = [p for p in head["params"] if p in head["domain"]]
    parameters = {p: _grid(head["domain"][p]) for p in names}
    scales = [_coordinates(parameters[p], bool(head["domain"][p].get("log"))) for p in names]
    runs: dict[Point, tuple[float, ...]] = {}
    for key, values in zip(keys, measured, strict=True):
        point = tuple(_snap(v, parameters[p], scale) for p, v, scale in zip(names, key, scales, strict=True))
        runs[point] = runs.get(point, ()) + values
    points = list(runs)
    where = np.array([_place(point, scales) for point in points])

    def nearest(point: Point) -> Point:
        return points[int(np.argmin(((where - _place(point, scales)) ** 2).sum(axis=1)))]

    start = tuple(parameters[p].index(default[p]) for p in names) if default else None
    return Table(name, parameters, runs, bool(head["minimise"]), start, lru_cache(None)(nearest))


def _coordinates(values: Sequence[Value], log: bool) -> list[list[float]]:
    """Where each value lies: numbers within [0, 1], names at the corners of a simplex with edges of length 1."""
    if not is_ordered(values):
        return [[math.sqrt(0.5) * (i == j) for j in range(len(values))] for i in range(len(values))]
    numbers = [float(value) for value in values]
    if min(numbers) > 0 and (log or len(numbers) < 8):  # a short list of numbers usually contains powers of two
        numbers = [math.log2(number) for number in numbers]
    return [[(number - numbers[0]) / (numbers[-1] - numbers[0] or 1.0)] for number in numbers]


def _snap(value: Value, values: Sequence[Value], scale: Sequence[Sequence[float]]) -> int:
    if value in values or len(scale[0]) > 1:
        return values.index(value)
    return min(range(len(values)), key=lambda i: abs(math.log(float(values[i])) - math.log(float(value))))


def _place(point: Point, scales: Sequence[Sequence[Sequence[float]]]) -> npt.NDArray[np.float64]:
    return np.array([x for i, scale in zip(point, scales, strict=True) for x in scale[i]])
