"""Which configurations are worth a step of a running program: what they may gain against what they cost."""

import math
from dataclasses import dataclass

import numpy as np

from luthier.arrays import FloatArray, IntArray
from luthier.online.strategies.sample_noise import SampleNoise

_RATIOS = np.concatenate((np.linspace(1.0, 2.0, 11), np.geomspace(2.2, 20.0, 12)))
_CAUTION = 0.75  # deviations above its mean that a configuration is expected to cost
_DRAWS = 64  # random draws for the expected best of several configurations, which has no formula
_FIRST_TRUST = 0.02  # gain that is believed without any proof
_MEMORY = 0.9  # weight of a step after the next one
_LEAST_GAIN = 0.001  # a smaller expected gain of a step, as a share of the value, is not worth a search


@dataclass(frozen=True, slots=True)
class Prospects:
    """What is predicted of configurations, relative to the best: positive means are worse.

    `learned` is the standard deviation of the change of the mean by one more sample: all of the `deviation` without
    noise, less with it. `chance` is how probable it is that a configuration works.
    """

    mean: FloatArray
    deviation: FloatArray
    learned: FloatArray
    chance: FloatArray

    @staticmethod
    def of(mean: FloatArray, deviation: FloatArray, single: float, chance: FloatArray) -> "Prospects":
        """Prospects of configurations; `single` is the standard deviation of one sample."""
        return Prospects(mean, deviation, learned_by_sample(deviation, single), chance)

    def gains(self) -> FloatArray:
        """The expected improvement by one sample of each."""
        return expected_gain(self.mean, self.learned) * self.chance


def learned_by_sample(deviation: FloatArray, single: float) -> FloatArray:
    """The standard deviation of the posterior mean before a sample is taken (Frazier et al. 2009, eq. 3)."""
    # The variance of the mean after one more sample is variance² / (variance + noise²), seen from before it.
    variance = deviation * deviation
    return np.asarray(variance / np.sqrt(np.maximum(variance + single * single, 1e-30)), dtype=np.float64)


def expected_gain(mean: FloatArray, learned: FloatArray) -> FloatArray:
    """E[max(-m, 0)] of a normal m."""
    from scipy.special import ndtr

    # Expected improvement (Jones et al. 1998, eq. 15) over a best of 0.
    safe = np.maximum(learned, 1e-12)
    z = -mean / safe
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return np.maximum(-mean * ndtr(z) + safe * density, 0.0)


class Trust:
    """Compares expected gains with those that were reached, so that a model that promises too much is noticed."""

    def __init__(self) -> None:
        self._expected = self._came = 0.0

    def add(self, expected: float, came: float) -> None:
        """Count a step; older ones count less and less."""
        self._expected = _MEMORY * self._expected + expected
        self._came = _MEMORY * self._came + came

    @property
    def share(self) -> float:
        """The share of an expected gain that is usually reached: at most 1."""
        return min(1.0, (_FIRST_TRUST + self._came) / (_FIRST_TRUST + self._expected))


@dataclass(frozen=True, slots=True)
class StepChoice:
    """What a step may cost and is expected to gain: `limit` is in multiples of the best."""

    limit: float
    gain: float


def worthwhile(prospects: Prospects, noise: SampleNoise, clients: int, horizon: float) -> StepChoice | None:
    """The longest expected time of a configuration worth a try, in multiples of the best; None if none is.

    For every such limit the expected gain of the best step within it, over `horizon` further steps, is compared with
    what the slowest of its configurations costs.
    """
    gains, expected = prospects.gains(), expected_ratios(prospects)
    order = np.argsort(-gains, kind="stable")
    draws = np.random.default_rng(5).standard_normal((_DRAWS, clients))
    found: StepChoice | None = None
    most = 0.0
    for limit, cost in zip(_RATIOS, noise.cost(_RATIOS, clients), strict=True):
        # The most promising that are cheap enough; the slowest of them is taken to be at the limit.
        chosen = order[expected[order] <= limit][:clients]
        gain = _joint_gain(prospects, chosen, draws) if len(chosen) else 0.0
        if gain > _LEAST_GAIN and gain * horizon - cost > most:
            found, most = StepChoice(float(limit), gain), gain * horizon - float(cost)
    return found


def expected_ratios(prospects: Prospects) -> FloatArray:
    """A cautious estimate of the time of each configuration, in multiples of the best."""
    # Predictions are differences of logarithms.
    return np.exp(np.minimum(prospects.mean + _CAUTION * prospects.deviation, 50.0))


def _joint_gain(prospects: Prospects, chosen: IntArray, draws: FloatArray) -> float:
    """The expected improvement by the best of several configurations, taken to be independent of each other."""
    values = prospects.mean[chosen] + prospects.learned[chosen] * draws[:, : len(chosen)]
    return float(np.maximum(-values * prospects.chance[chosen], 0.0).max(axis=1).mean())
