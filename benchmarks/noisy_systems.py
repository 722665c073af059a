"""The systems of `benchmarks.noise`: simulated and measured ones, each with its noise and its true values."""

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from statistics import fmean
from typing import TypeAlias

import numpy as np

from benchmarks import tables
from luthier.runners.replay import Answers, ReplayedRun
from luthier.space import Choice, Space
from luthier.trial import Config, Failed
from testbeds.noise import find_noise, fingerprint
from testbeds.testbed import NoisyTestbed, find_testbed

Published: TypeAlias = Mapping[str, tuple[float, float]]
"""Distance in percent and duration in seconds, by rule."""

RECORDED = 16
CONVOLUTION = (
    "block_size_x * block_size_y <= 1024",
    "use_padding == 0 or (use_shmem == 1 and block_size_x % 32 != 0)",
    "use_shmem == 0 or (block_size_x * tile_size_x + 14) * (block_size_y * tile_size_y + 14) * 4 <= 48 * 1024",
)
"""The authors' constraints on the convolution kernel: exactly the 4,362 of 10,240 configurations that were run."""


@dataclass(frozen=True)
class Machine:
    """A machine for a system: the times of its runs, their means, and the best mean of all configurations."""

    answers: Answers
    true: Callable[[Config], float]
    optimum: float

    def distance(self, config: Config) -> float:
        """Percent by which a configuration misses the optimum on average."""
        return 100.0 * abs(self.true(config) - self.optimum) / abs(self.optimum)

    def gain(self, config: Config, default: Config) -> float:
        """Percent of the default's average that a configuration saves, or loses if below 0."""
        best, found, usual = self.optimum, self.true(config), self.true(default)
        return 100.0 * (abs(usual - best) - abs(found - best)) / abs(usual)


@dataclass(frozen=True)
class System:
    """Something noisy to tune: `machine` makes the one of a seed.

    One that does not `count` is another way to measure one that does; means over all systems leave it out.
    """

    name: str
    space: Space
    machine: Callable[[int], Machine]
    budget: int
    maximize: bool = False
    published: Published | None = None
    counts: bool = True


# From tables 5.11 to 5.15 and 5.17 of the thesis.
PUBLISHED: Mapping[str, Published] = {
    "every-60": {
        "none": (75.54, 1201), "static:3": (23.57, 2431), "static:5": (15.98, 1947),
        "sedr:10%": (53.99, 4304), "sedr:30%": (309.31, 2241), "evadyr": (5.81, 2046),
    },
    "every-120": {
        "none": (319.92, 1080), "static:3": (30.92, 1411), "static:5": (27.37, 1844),
        "sedr:10%": (112.4, 3132), "sedr:30%": (308.15, 1994), "evadyr": (4.27, 1557),
    },
    "every-300": {
        "none": (66.25, 827), "static:3": (38.65, 1212), "static:5": (2.84, 1632),
        "sedr:10%": (28.21, 1621), "sedr:30%": (205.76, 2015), "evadyr": (2.57, 1311),
    },
    "storage": {
        "none": (12.9, 5729), "static:2": (8.19, 8925), "static:5": (6.86, 17948), "static:10": (6.71, 28205),
        "sedr:10%": (11.57, 30601), "sedr:30%": (6.64, 15658), "evadyr": (5.0, 6566),
    },
}  # fmt: skip


@cache
def known_systems() -> Mapping[str, System]:
    """All systems with data, by name; computed once, in a few seconds."""
    return {system.name: system for system in _systems()}


def _systems() -> Iterator[System]:
    """The thesis' four experiments, the same systems under other noise, and the measured tables that have repeats."""
    for noise in ("every-60", "every-120", "every-300"):
        yield _simulated("sro/hotspots", noise, 100, PUBLISHED[noise])
    yield _recorded("sbb/ior", "storage", 160, PUBLISHED["storage"])
    yield _simulated("sbb/ior", "storage", 160)
    for name, noise in (("sro/hotspots", "random"), ("sro/b", "pareto"), ("sbb/bandwidth", "cluster")):
        yield _simulated(name, noise, 100)
    known = set(tables.names())
    for name in ("convolution/A100", "convolution/A4000", "convolution/MI250X", "convolution/W6600"):
        if name in known:
            yield _measured(name, 100, CONVOLUTION)
    for name in ("iozone_fread/f64", "iozone_fread/f256", "iozone_fread/f1024"):
        if name in known:
            yield _measured(name, 100)


def _simulated(name: str, noise: str, budget: int, published: Published | None = None) -> System:
    testbed = find_testbed(name)
    best = float(testbed.table().min())

    def machine(seed: int) -> Machine:
        return Machine(NoisyTestbed(testbed, find_noise(noise), seed=seed).answer, testbed.seconds, best)

    return System(f"{name} {noise}", testbed.space, machine, budget, published=published)


def _recorded(name: str, noise: str, budget: int, published: Published) -> System:
    """The way of section 5.5.2 of the thesis: every configuration has run 16 times, and a run is one of these.

    Their mean is what a configuration gives on average. Every seed has a recording of its own.
    """
    testbed = find_testbed(name)
    configs = testbed.grid.configs(testbed.grid.grid())

    @lru_cache(maxsize=1)  # the rules play a seed one after the other
    def machine(seed: int) -> Machine:
        run = NoisyTestbed(testbed, find_noise(noise), seed=seed).answer
        runs = {config: [run(config, number, 0.0) for number in range(RECORDED)] for config in configs}
        means = {config: fmean(each.duration_s for each in runs[config]) for config in configs}

        def answer(config: Config, repeat: int, now_s: float) -> ReplayedRun:
            del now_s
            return runs[config][np.random.default_rng([seed, fingerprint(config), repeat, 1]).integers(RECORDED)]

        return Machine(answer, means.__getitem__, min(means.values()))

    return System(f"{name} recorded", testbed.grid, machine, budget, published=published, counts=False)


def _measured(name: str, budget: int, constraints: Sequence[str] = ()) -> System:
    """A table with repeats; a run takes as long as it measured, or a second where it measured something else."""
    table = tables.load(name)
    parameters = [Choice(p, list(v), ordered=tables.is_ordered(v)) for p, v in table.parameters.items()]

    def machine(seed: int) -> Machine:
        def answer(config: Config, repeat: int, now_s: float) -> ReplayedRun:
            del now_s
            point = table.point(config)
            runs = [value for value in table.runs_at(point) if not math.isnan(value)]
            if not runs:
                return ReplayedRun(0.0, Failed("never measured"))
            start = zlib.crc32(f"{seed}:{table.number(point)}".encode())
            value = runs[(start + repeat) % len(runs)]
            return ReplayedRun(value if table.minimise else 1.0, value)

        return Machine(answer, lambda config: table.true(table.point(config)), table.optimum())

    space = Space(*parameters, constraints=constraints)
    return System(name, space, machine, budget, maximize=not table.minimise)
