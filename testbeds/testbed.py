"""The simulated systems by name, on an idle or a shared machine."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from luthier.errors import NotFoundError
from luthier.runners.replay import ReplayedRun
from luthier.space import Choice, Space
from luthier.trial import Config, Value
from testbeds import sbb_setups, sro
from testbeds.fakeapp import PATTERNS
from testbeds.noise import Noise, fingerprint

FloatArray: TypeAlias = npt.NDArray[np.float64]
Model: TypeAlias = Callable[[Sequence[Config]], FloatArray]
"""Run times in seconds of configurations, without noise."""


class Testbed:
    """A system to tune; smaller times are better.

    `grid` has the published configurations, and its own default is the one next to the published default, which may lie
    beside the grid. `space` is the one to tune in: the grid and the published default.
    """

    __test__ = False  # not a test class, although its name begins with Test

    def __init__(self, name: str, grid: Space, default: Config, model: Model) -> None:
        self.name = name
        self.grid = grid
        self.space = _with_default(grid, default)
        self._model = model
        self._known: dict[Config, float] = {}
        self._table: FloatArray | None = None

    @property
    def default(self) -> Config:
        """The published default."""
        return self.space.default

    def seconds(self, config: Mapping[str, Value]) -> float:
        """The time of a run on an idle machine."""
        wanted = Config(config)
        if wanted not in self._known:
            self._known[wanted] = float(self._model([self.space.check(wanted)])[0])
        return self._known[wanted]

    def table(self) -> FloatArray:
        """The times of all configurations of the grid, by their number in it; computed once, in a few seconds."""
        if self._table is None:
            configs = self.grid.configs(self.grid.grid())
            self._table = self._model(configs)
            self._table.setflags(write=False)
            self._known.update(zip(configs, self._table.tolist(), strict=True))
        return self._table

    @property
    def optimum(self) -> Config:
        """The best configuration of the grid."""
        return self.grid.at(int(self.table().argmin()))

    @property
    def gap(self) -> float:
        """The share of the default's time that the optimum saves."""
        return 1.0 - float(self.table().min()) / self.seconds(self.default)


class NoisyTestbed:
    """A testbed on a shared machine.

    Hand `answer` to a `ReplayRunner`, whose virtual clock then decides what each run meets; or call `run`, which keeps
    a clock of its own. What is drawn for a run depends only on the seed, the configuration and how often it ran before.
    """

    def __init__(self, testbed: Testbed, noise: Noise, *, seed: int) -> None:
        self.testbed = testbed
        self._noise = noise
        self._seed = seed
        self._now_s = 0.0
        self._repeats: Counter[Config] = Counter()

    @property
    def now_s(self) -> float:
        """The virtual time at which the last `run` ended."""
        return self._now_s

    def answer(self, config: Config, repeat: int, now_s: float) -> ReplayedRun:
        """A run that starts at a virtual time, after `repeat` earlier ones of the same configuration."""
        rng = np.random.default_rng([self._seed, fingerprint(config), repeat])
        elapsed_s = self._noise.elapsed_s(self.testbed.seconds(config), now_s, config, rng)
        return ReplayedRun(elapsed_s, elapsed_s)

    def run(self, config: Config) -> float:
        """Run a configuration now; return how long it took."""
        elapsed_s = self.answer(config, self._repeats[config], self._now_s).duration_s
        self._repeats[config] += 1
        self._now_s += elapsed_s
        return elapsed_s


def _with_default(grid: Space, default: Config) -> Space:
    """The grid and one more configuration, which becomes the default."""
    beside = [parameter.name for parameter in grid.parameters if not parameter.contains(default[parameter.name])]
    if not beside:
        return grid
    parameters = []
    for parameter in grid.parameters:
        first = default[parameter.name]
        values = {parameter.value(index) for index in range(parameter.size or 0)} | {first}
        parameters.append(Choice(parameter.name, sorted(values), first, ordered=True))
    on_grid = " and ".join(f"{name} != {default[name]}" for name in beside)
    is_default = " and ".join(f"{name} == {value}" for name, value in default.items())
    return Space(*parameters, constraints=[f"{on_grid} or {is_default}"])


def _prefetched(pattern: str, storage: sro.Storage, times: int) -> sro.Sro:
    return sro.Sro(PATTERNS[pattern].reads(seed=1), storage, times=times)


# A stretch of reads is repeated until a run takes about as long as published: table means of 59, 21 and 13 s for b, c
# and d on Lustre (table 4.1), a default of 36 s for hotspots (table 5.2). NFS reads the same.
TESTBEDS: Mapping[str, Testbed] = {
    testbed.name: testbed
    for testbed in (
        Testbed("sro/a", sro.SPACE, sro.DEFAULT, _prefetched("a", sro.LUSTRE, 3)),
        Testbed("sro/b", sro.SPACE, sro.DEFAULT, _prefetched("b", sro.LUSTRE, 7)),
        Testbed("sro/c", sro.SPACE, sro.DEFAULT, _prefetched("c", sro.LUSTRE, 1)),
        Testbed("sro/d", sro.SPACE, sro.DEFAULT, _prefetched("d", sro.LUSTRE, 5)),
        Testbed("sro/b-nfs", sro.SPACE, sro.DEFAULT, _prefetched("b", sro.NFS, 7)),
        Testbed("sro/c-nfs", sro.SPACE, sro.DEFAULT, _prefetched("c", sro.NFS, 1)),
        Testbed("sro/d-nfs", sro.SPACE, sro.DEFAULT, _prefetched("d", sro.NFS, 5)),
        Testbed("sro/hotspots", sro.HOTSPOTS_SPACE, sro.DEFAULT, _prefetched("hotspots", sro.LUSTRE, 11)),
        Testbed("sbb/bandwidth", sbb_setups.BANDWIDTH_SPACE, sbb_setups.BANDWIDTH_DEFAULT, sbb_setups.BANDWIDTH),
        Testbed("sbb/latency", sbb_setups.LATENCY_SPACE, sbb_setups.LATENCY_DEFAULT, sbb_setups.LATENCY),
        Testbed("sbb/ior", sbb_setups.IOR_SPACE, sbb_setups.IOR_DEFAULT, sbb_setups.IOR),
    )
}


def find_testbed(name: str) -> Testbed:
    """One of `TESTBEDS`."""
    if name not in TESTBEDS:
        raise NotFoundError(f"unknown testbed {name!r}; use one of {', '.join(TESTBEDS)}")
    return TESTBEDS[name]
