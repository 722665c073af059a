"""What the simulated programs of `benchmarks.online` spend an iteration in: the time of one for every configuration."""

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

import luthier as lt
from benchmarks import tables
from luthier.arrays import FloatArray
from luthier.trial import Value

TABLES: tuple[str, ...] = (
    "dune/cells50",
    "lrzip/602",
    "lulesh/set4",
    "matmul/all",
    "openatom/water_128n",
    "pnpoly/3090",
    "postgresql/8.3.0",
    "postgresql/11.2",
    "sevenzip/all",
    "x264/encode",
)
"""One table of each family that was measured (nearly) completely, and a second one where little can be gained."""

_WAVES = 6
_NEIGHBOURS = 4


@dataclass(frozen=True, slots=True)
class Surface:
    """The time of an iteration without noise, for every configuration of a space."""

    name: str
    space: lt.Space
    compute: Callable[[lt.Config], float]
    _known: dict[lt.Config, float] = field(default_factory=dict, compare=False)

    def time(self, config: lt.Config) -> float:
        """The time of one iteration; computed once for each configuration."""
        if config not in self._known:
            self._known[config] = self.compute(config)
        return self._known[config]

    def least(self) -> float:
        """The least time of all configurations, or of 20,000 random ones where there are too many."""
        size = self.space.size
        if size is not None and size <= 70_000:
            configs: Sequence[lt.Config] = self.space.configs(self.space.grid())
        else:
            configs = self.space.sample(20_000, np.random.default_rng(0))
        return min(map(self.time, configs))


def _space(*sizes: int) -> lt.Space:
    """Integers whose defaults lie in the middle."""
    return lt.Space(*(lt.Integer(f"x{i}", 1, n, default=(n + 1) // 2) for i, n in enumerate(sizes)))


def rough(number: int, sizes: Sequence[int] = (32, 16, 24)) -> Surface:
    """A surface of a few integers like that of GS2 (Tabatabaee et al. 2005, figure 8): a trend, waves, and jitter.

    The trend is a valley somewhere inside, steeper along some axes than along others; the waves make local minima; the
    jitter makes every point differ from its neighbours. Each `number` is another surface.
    """
    return _made(f"rough {number}", number, sizes, waves=0.12, jitter=0.03)


def smooth(number: int, sizes: Sequence[int] = (32, 16, 24)) -> Surface:
    """The trend of `rough` alone."""
    return _made(f"smooth {number}", number, sizes, waves=0.0, jitter=0.0)


def _made(name: str, number: int, sizes: Sequence[int], *, waves: float, jitter: float) -> Surface:
    rng = np.random.default_rng([number, 20])
    axes = len(sizes)
    valley, slope = rng.uniform(0.1, 0.9, axes), rng.uniform(0.5, 3.0, axes) * math.sqrt(3.0 / axes)
    directions, phases = rng.normal(0.0, 2.0 * math.pi * 1.5, (_WAVES, axes)), rng.uniform(0.0, 2.0 * math.pi, _WAVES)
    space = _space(*sizes)

    def compute(config: lt.Config) -> float:
        x = np.array([(int(value) - 1) / (n - 1) for value, n in zip(config.values(), sizes, strict=True)])
        trend = float(slope @ (x - valley) ** 2)
        waved = waves * float(np.cos(directions @ x + phases).sum()) / math.sqrt(_WAVES / 2.0)
        return math.exp(trend + waved + jitter * _normal(number, tuple(config.values())))

    return Surface(name, space, compute)


def _normal(number: int, values: tuple[Value, ...]) -> float:
    """A normal number that belongs to a point: the same at every call, and in every process."""
    return float(np.random.default_rng(zlib.crc32(f"{number}:{values}".encode())).standard_normal())


def table(name: str) -> Surface:
    """A measured table; a point that was not measured gets the weighted mean of its nearest measured neighbours.

    That is what Tabatabaee et al. 2005, section 6, do. Throughput is turned into time.
    """
    found = tables.load(name)
    space = lt.Space(*(_parameter(p, values, found) for p, values in found.parameters.items()))
    known = {point: _time(found, point) for point in found.runs}
    known = {point: time for point, time in known.items() if math.isfinite(time)}
    where, times = np.array(list(known), dtype=np.float64), np.array(list(known.values()))

    def compute(config: lt.Config) -> float:
        point = found.point(config)
        return known[point] if point in known else _of_neighbours(np.array(point, dtype=np.float64), where, times)

    return Surface(name, space, compute)


def _time(found: tables.Table, point: tables.Point) -> float:
    true = found.true(point)
    return true if found.minimise else 1.0 / true


def _of_neighbours(point: FloatArray, where: FloatArray, times: FloatArray) -> float:
    distances = np.abs(where - point).sum(axis=1)
    nearest = np.argsort(distances, kind="stable")[:_NEIGHBOURS]
    weights = 1.0 / distances[nearest]
    return float(weights @ times[nearest] / weights.sum())


def _parameter(name: str, values: Sequence[Value], found: tables.Table) -> lt.Choice:
    """Numbers are ordered. The default is the table's; without one, the middle of numbers and the first category."""
    ordered = tables.is_ordered(values)
    middle = values[(len(values) - 1) // 2] if ordered else values[0]
    default = middle if found.default is None else found.config(found.default)[name]
    return lt.Choice(name, sorted(values) if ordered else list(values), default=default, ordered=ordered)


SURFACES: Mapping[str, Callable[[int], Surface]] = {"rough": rough, "smooth": smooth}
"""Surfaces that can be made in any number."""
