"""Adapts the number of samples to the noise: another sample is taken only if it could change the order."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import stdev

from luthier.online.strategies.sampling import ESTIMATORS, EstimatorName
from luthier.statistics.estimate import mean_of, median_of
from luthier.trial import Config

_MOST = 5  # samples of one configuration; Tabatabaee et al. 2005 see no gain from more
# Chosen in docs/research/2026-11-18-online-strategies.md.
_MOST_BY_STEPS = 3  # of them are taken one after the other
_DOUBT = 2.0  # expected drops of a value that a better configuration may be behind the best one
_INDIFFERENT = 0.01  # differences below this share do not matter


@dataclass(frozen=True, slots=True)
class AdaptiveSampling:
    """Takes further samples of what may be the best of those that are compared, until that is clear, three at most.

    Clients without other work take further samples in the same step, up to five.

    How much lower the value of a configuration may become is estimated from the configurations that have two samples or
    more, whatever the distribution of the noise is. Without such configurations, one is sampled twice.
    """

    estimator: EstimatorName = "minimum"

    def wanted(
        self,
        samples: Mapping[Config, Sequence[float]],
        needed: Sequence[Config],
        best: Config | None,
        clients: int = 1,
    ) -> Mapping[Config, int]:
        """One sample of each configuration without any; else one more of each that may turn out to be the best.

        Clients without work in the last step take further samples of the same configurations, which takes no extra
        time.
        """
        fewest = self._fewest(samples, needed, best)
        if not fewest:
            return {}
        # What is missing to a multiple of the clients is spread over the configurations; the first get one more.
        spare, more = divmod(-sum(fewest.values()) % clients, len(fewest))
        wanted = {}
        for place, (config, count) in enumerate(fewest.items()):
            room = max(0, _MOST - count - len(samples.get(config, ())))
            wanted[config] = count + min(room, spare + (place < more))
        return wanted

    def _fewest(
        self, samples: Mapping[Config, Sequence[float]], needed: Sequence[Config], best: Config | None
    ) -> Mapping[Config, int]:
        """How many samples are wanted however many clients there are."""
        new = {config: 1 for config in needed if not samples.get(config)}
        if new:
            return new
        # The start: nothing to compare it with, but its noise is worth knowing.
        if best is None and len(needed) == 1:
            return {needed[0]: 1} if len(samples[needed[0]]) < _MOST else {}
        compared = dict.fromkeys((*needed, best) if best is not None and samples.get(best) else needed)
        values = {config: self.value(samples[config]) for config in compared}
        first = min(values, key=values.__getitem__)
        noise = typical_drop(samples.values())
        if noise is None:
            return {first: 1}
        return self._contenders(samples, values, first, noise)

    def _contenders(
        self, samples: Mapping[Config, Sequence[float]], values: Mapping[Config, float], first: Config, noise: float
    ) -> dict[Config, int]:
        """What may become the best by another sample; nothing if only one does.

        Each sample more halves how many may have it: among many that are nearly equal it matters little which one is
        chosen, but the program waits for every sample.
        """
        lowest, unit = values[first], abs(values[first]) or 1.0
        close = []
        for rank, config in enumerate(sorted(values, key=values.__getitem__)):
            count = len(samples[config])
            # The minimum of n exponential numbers has an n-th of their mean: so much may still come off.
            drop = noise / count
            is_near = drop > _INDIFFERENT and (values[config] - lowest) / unit <= _DOUBT * drop
            if is_near and rank < max(2, math.ceil(len(values) / 2**count)):
                close.append(config)
        if not any(config != first for config in close):
            return {}
        return {config: 1 for config in close if len(samples[config]) < _MOST_BY_STEPS}

    def value(self, samples: Sequence[float]) -> float:
        """The minimum, the median or the mean."""
        return ESTIMATORS[self.estimator](samples)


def proven_best(
    samples: Mapping[Config, Sequence[float]], named: Config, known: Iterable[Config], estimator: EstimatorName
) -> Config:
    """The configuration named as the best, if its samples say that it is at least as good as those `known` before.

    Otherwise the best one for which they say so, or else the best of the known ones. Configurations without samples are
    ignored.
    """
    value = ESTIMATORS[estimator]
    measured = [config for config in known if samples.get(config)]
    if not measured:
        return named
    base = min(measured, key=lambda config: value(samples[config]))
    level, noise = value(samples[base]), _noise(samples.values(), estimator)
    unit, count = abs(level) or 1.0, len(samples[base])

    def is_proven(config: Config) -> bool:
        others = len(samples[config])
        # The least possible value of the base lies below its minimum by a share of the noise; other estimates of both
        # are wrong by their standard errors.
        doubt = noise / count if estimator == "minimum" else noise * math.sqrt(1.0 / count + 1.0 / others)
        return value(samples[config]) <= level - doubt * unit

    if named in measured and value(samples[named]) <= level:
        return named
    if samples.get(named) and is_proven(named):
        return named
    return min(filter(is_proven, samples), key=lambda config: value(samples[config]), default=base)


def _noise(samples: Iterable[Sequence[float]], estimator: EstimatorName) -> float:
    """The noise of one sample as a share of its value; 0 while nothing was sampled twice."""
    samples = list(samples)
    if estimator == "minimum":
        return typical_drop(samples) or 0.0
    repeated = [values for values in samples if len(values) > 1]
    return median_of([stdev(values) / (abs(mean_of(values)) or 1.0) for values in repeated]) if repeated else 0.0


def typical_drop(samples: Iterable[Sequence[float]]) -> float | None:
    """By which share a single sample typically lies above the least possible value; None without repeated samples.

    Near their lower end most distributions look like an exponential one. Of m samples of that, the distance from the
    lowest to the next is its mean divided by m - 1 (Rényi 1953). The median over configurations ignores outliers.
    """
    drops = []
    for values in samples:
        if len(values) > 1:
            lowest, second = sorted(values)[:2]
            drops.append((len(values) - 1) * (second - lowest) / (abs(lowest) or 1.0))
    if not drops:
        return None
    drops.sort()
    half = len(drops) // 2
    median = drops[half] if len(drops) % 2 else 0.5 * (drops[half - 1] + drops[half])
    # The median of an exponential distribution is its mean times log 2.
    return median / math.log(2.0)
