"""How the work of other users changes the time of a run, in virtual time.

A noise turns the time of a run on an idle machine into its time on a shared one. The result depends on the arguments
only: the same run at the same time with the same generator always takes the same time.
"""

import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import count
from typing import Protocol

import numpy as np

from luthier.errors import InvalidInputError, NotFoundError
from luthier.trial import Config

BLOCK_S = 3600.0
"""Random arrivals are drawn for blocks of this length."""


class Noise(Protocol):
    """How long runs take on a shared machine."""

    def elapsed_s(self, clean_s: float, started_s: float, config: Config, rng: np.random.Generator) -> float:
        """The time of a run that starts at `started_s` and takes `clean_s` on an idle machine."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """No other users."""

    def elapsed_s(self, clean_s: float, started_s: float, config: Config, rng: np.random.Generator) -> float:
        """The time on an idle machine."""
        return clean_s


@dataclass(frozen=True, slots=True)
class Interference:
    """Interference for `busy_s` every `period_s`, during which a run is `slowdown` times slower.

    With 45 s and 1.5, runs of 36 s back to back have the standard deviations of table 5.5 of Robert's thesis: 1.9, 5.4
    and 4.2 s with periods of 60, 120 and 300 s (2.04, 5.65 and 4.56 s there). Of such runs all, 61 % and 22 % are
    disturbed, which makes the noise constant, unstable or an impulse.
    """

    period_s: float
    busy_s: float = 45.0
    slowdown: float = 1.5

    def __post_init__(self) -> None:
        _check_busy(self.busy_s, self.slowdown)
        if not self.busy_s <= self.period_s < math.inf:
            raise InvalidInputError(f"period_s: {self.period_s} is shorter than the {self.busy_s} s of interference")

    def elapsed_s(self, clean_s: float, started_s: float, config: Config, rng: np.random.Generator) -> float:
        """The time of the run, longer where it overlaps with the interference."""
        begins = (number * self.period_s for number in count(int(started_s // self.period_s)))
        return _through(begins, self.busy_s, self.slowdown, clean_s, started_s)


@dataclass(frozen=True, slots=True)
class RandomInterference:
    """Interference at random times, independent and `gap_s` apart on average (a Poisson process)."""

    gap_s: float
    busy_s: float = 45.0
    slowdown: float = 1.5
    _: KW_ONLY
    seed: int

    def __post_init__(self) -> None:
        _check_busy(self.busy_s, self.slowdown)
        if not 0.0 < self.gap_s < math.inf:
            raise InvalidInputError(f"gap_s: {self.gap_s} is not a valid time between two arrivals; give more than 0 s")

    def elapsed_s(self, clean_s: float, started_s: float, config: Config, rng: np.random.Generator) -> float:
        """The time of the run, longer where it overlaps with the interference."""
        return _through(self._begins(started_s - self.busy_s), self.busy_s, self.slowdown, clean_s, started_s)

    def _begins(self, after_s: float) -> Iterator[float]:
        for block in count(max(int(after_s // BLOCK_S), 0)):
            rng = np.random.default_rng([self.seed, block])
            arrivals = rng.uniform(block * BLOCK_S, (block + 1) * BLOCK_S, rng.poisson(BLOCK_S / self.gap_s))
            yield from np.sort(arrivals).tolist()


@dataclass(frozen=True, slots=True)
class SharedCluster:
    """A machine with many users: run times vary by `variation` (deviation over mean), and a few are outliers.

    Configurations vary unequally, from 0.6 to 1.4 times as much. One run in 1 / `outliers` takes `stretch` times as
    long. The mean of many runs is the clean time (Robert's thesis, section 5.5.2: the table is one of means).
    """

    variation: float = 0.25
    outliers: float = 1 / 16
    stretch: float = 1.6

    def __post_init__(self) -> None:
        if not (0.0 <= self.outliers <= 1.0 and 1.0 <= self.stretch < math.inf):
            raise InvalidInputError(
                f"outliers: a share of {self.outliers} that takes {self.stretch} times as long is invalid"
            )
        if not self._spread(0.6 * self.variation) >= 0.0:
            raise InvalidInputError(
                f"variation: {self.variation} is less than the variation of the outliers alone; increase it"
            )

    def elapsed_s(self, clean_s: float, started_s: float, config: Config, rng: np.random.Generator) -> float:
        """The time of the run times a factor with mean 1."""
        spread = self._spread(self.variation_of(config))
        usual = math.exp(math.sqrt(spread) * rng.standard_normal() - spread / 2.0)
        stretch = self.stretch if rng.random() < self.outliers else 1.0
        return clean_s * usual * stretch / (1.0 + self.outliers * (self.stretch - 1.0))

    def variation_of(self, config: Config) -> float:
        """How much the run times of a configuration vary."""
        return self.variation * _sensitivity(config)

    def _spread(self, variation: float) -> float:
        """The variance of the logarithm of the usual factor that, together with the outliers, gives a variation."""
        mean = 1.0 + self.outliers * (self.stretch - 1.0)
        square = 1.0 + self.outliers * (self.stretch**2 - 1.0)
        return math.log((1.0 + variation**2) * mean**2 / square)


@dataclass(frozen=True, slots=True)
class SharedStorage:
    """Storage with many users: a run sometimes waits for them, but without waiting it is not much faster than usual.

    The share of a run's time that it waits is z**2 times its mean, where z is a normal variable. Run times vary by
    `variation` (deviation over mean), configurations unequally, from 0.6 to 1.4 times as much. The mean of many runs is
    the clean time.

    In table 5.8 of Robert's thesis the runs of all configurations together vary by 25 %, the means of configurations by
    17.5 %. That leaves 17 to 18 % for the runs of one configuration. The lowest of 8,640 runs took 0.9 of the best mean
    and the longest 1.9 of the worst, so the noise is far from symmetric.
    """

    variation: float = 0.17

    def __post_init__(self) -> None:
        if not 0.0 <= self.variation <= 1.0:
            raise InvalidInputError(f"variation: {self.variation} is not from 0 to 1; runs would wait all the time")

    def elapsed_s(self, clean_s: float, started_s: float, config: Config, rng: np.random.Generator) -> float:
        """The time of the run times a factor with mean 1."""
        waits = self.variation * _sensitivity(config) / math.sqrt(2.0)  # the deviation of z**2 is the root of 2
        return clean_s * (1.0 - waits + waits * float(rng.standard_normal()) ** 2)


@dataclass(frozen=True, slots=True)
class TwoSpeeds:
    """A machine with two speeds: `often` is the share of runs that take `slowdown` times as long.

    At either speed run times vary by `scatter`, the deviation of their logarithms. The repeats of some configurations
    in the measured iozone tables look like that: half of the runs are slower, by 1.3 to 5 times.
    """

    slowdown: float = 1.6
    often: float = 0.4
    scatter: float = 0.03

    def __post_init__(self) -> None:
        if not (1.0 <= self.slowdown < math.inf and 0.0 <= self.often <= 1.0 and 0.0 <= self.scatter < math.inf):
            raise InvalidInputError(
                f"slowdown {self.slowdown}, often {self.often}, scatter {self.scatter}: give a slowdown of 1 or more, a"
                " share from 0 to 1 and a scatter of 0 or more"
            )

    def elapsed_s(self, clean_s: float, started_s: float, config: Config, rng: np.random.Generator) -> float:
        """The time of the run at a speed that is drawn at random."""
        slow = self.slowdown if rng.random() < self.often else 1.0
        return clean_s * slow * math.exp(self.scatter * float(rng.standard_normal()))


@dataclass(frozen=True, slots=True)
class HeavyTail:
    """Pareto noise added to every run: `load` is the share of the machine that others use (Tabatabaee et al. 2005).

    With a `shape` between 1 and 2 the noise has a mean, load / (1 - load) of the clean time, but no variance.
    """

    load: float
    shape: float = 1.7

    def __post_init__(self) -> None:
        if not (0.0 <= self.load < 1.0 < self.shape):
            raise InvalidInputError(f"load {self.load}, shape {self.shape}: give 0 <= load < 1 and a shape above 1")

    def elapsed_s(self, clean_s: float, started_s: float, config: Config, rng: np.random.Generator) -> float:
        """The time of the run plus the time that it waits for others."""
        # Tabatabaee et al. 2005, eq. 17: the smallest possible noise
        least_s = (self.shape - 1.0) * self.load / ((1.0 - self.load) * self.shape) * clean_s
        return clean_s + least_s * (1.0 + float(rng.pareto(self.shape)))


def find_noise(name: str) -> Noise:
    """One of `NOISES`."""
    if name not in NOISES:
        raise NotFoundError(f"unknown noise {name!r}; use one of {', '.join(NOISES)}")
    return NOISES[name]


def fingerprint(config: Config) -> int:
    """A hash of a configuration below 2**32, the same in every process."""
    return zlib.crc32(repr(sorted(config.items())).encode())


def _sensitivity(config: Config) -> float:
    """How sensitive a configuration is to other users, from 0.6 to 1.4."""
    return 0.6 + 0.8 * fingerprint(config) / 2**32


def _check_busy(busy_s: float, slowdown: float) -> None:
    if not (0.0 <= busy_s < math.inf and 1.0 <= slowdown < math.inf):
        raise InvalidInputError(f"busy_s {busy_s}, slowdown {slowdown}: give 0 s or more and a slowdown of 1 or more")


def _through(begins: Iterator[float], busy_s: float, slowdown: float, clean_s: float, started_s: float) -> float:
    """The time of a run with interference that begins at these times, in order; intervals may overlap."""
    if not (0.0 <= clean_s < math.inf and 0.0 <= started_s < math.inf):
        raise InvalidInputError(f"a run of {clean_s} s at {started_s} s; give times of 0 s or more")
    now_s, left_s = started_s, clean_s
    for begin_s in begins:
        calm_s = max(begin_s - now_s, 0.0)
        if left_s <= calm_s:
            break
        now_s, left_s = now_s + calm_s, left_s - calm_s
        rest_s = max(begin_s + busy_s - now_s, 0.0)
        if left_s * slowdown <= rest_s:
            return now_s + left_s * slowdown - started_s
        now_s, left_s = now_s + rest_s, left_s - rest_s / slowdown
    return now_s + left_s - started_s


NOISES: Mapping[str, Noise] = {
    "none": Quiet(),
    "every-60": Interference(60.0),
    "every-120": Interference(120.0),
    "every-300": Interference(300.0),
    "random": RandomInterference(120.0, seed=0),
    "cluster": SharedCluster(),
    "storage": SharedStorage(),
    "two-speeds": TwoSpeeds(),
    "pareto": HeavyTail(0.2),
}
