"""Searches made up for training the learned stop rule: many shapes, noise, plateaus, late jumps, failed runs."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from luthier.arrays import FloatArray

STEPS = 160
"""The number of configurations after the default."""


@dataclass(frozen=True)
class Curve:
    """One search: the true time of each configuration, what was measured (NaN: failed), what the run cost."""

    true: FloatArray
    measured: FloatArray
    cost: FloatArray

    def chosen(self) -> FloatArray:
        """The true time of the configuration that looks best after each step."""
        best, at = math.inf, 0
        chosen = np.empty(len(self.true))
        for step, value in enumerate(self.measured):
            if value < best:
                best, at = value, step
            chosen[step] = self.true[at]
        return chosen

    def best(self) -> FloatArray:
        """The best measured time after each step."""
        filled: FloatArray = np.where(np.isnan(self.measured), np.inf, self.measured)
        return np.minimum.accumulate(filled)


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _exponential(steps: FloatArray, scale: float, rng: np.random.Generator) -> FloatArray:
    del rng
    return 1.0 - np.exp(-steps / scale)


def _logarithmic(steps: FloatArray, scale: float, rng: np.random.Generator) -> FloatArray:
    del rng
    return np.log1p(steps / scale) / math.log1p(steps[-1] / scale)


def _power(steps: FloatArray, scale: float, rng: np.random.Generator) -> FloatArray:
    return 1.0 - (1.0 + steps / scale) ** -rng.uniform(0.3, 2.0)


def _linear(steps: FloatArray, scale: float, rng: np.random.Generator) -> FloatArray:
    del rng
    return np.minimum(steps / scale, 1.0)


def _flat(steps: FloatArray, scale: float, rng: np.random.Generator) -> FloatArray:
    del scale, rng
    return np.zeros(len(steps))


def _jump(steps: FloatArray, scale: float, rng: np.random.Generator) -> FloatArray:
    del scale
    return np.where(steps >= _log_uniform(rng, 2.0, steps[-1]), 1.0, 0.0)


def _stairs(steps: FloatArray, scale: float, rng: np.random.Generator) -> FloatArray:
    del scale
    count = int(rng.integers(2, 8))
    places = rng.uniform(0.0, 1.0, count)
    at = steps[-1] ** places if rng.random() < 0.5 else steps[-1] * places
    risen: FloatArray = rng.dirichlet(np.ones(count)) @ (steps[None, :] >= at[:, None])
    return risen


_Shape = Callable[[FloatArray, float, np.random.Generator], FloatArray]
SHAPES: Mapping[str, _Shape] = {
    "exponential": _exponential,
    "logarithmic": _logarithmic,
    "power": _power,
    "linear": _linear,
    "flat": _flat,
    "jump": _jump,
    "stairs": _stairs,
}
"""From 0 at the default towards 1, what part of the possible gain the search can reach after each step."""


def _with_plateau(steps: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The steps, with a time in between in which the search gets no further."""
    begin, length = rng.uniform(0.0, 60.0), _log_uniform(rng, 3.0, 60.0)
    return np.minimum(steps, np.maximum(begin, steps - length))


def _envelope(rng: np.random.Generator) -> FloatArray:
    """A search whose suggestions touch a falling curve now and then."""
    steps = np.arange(STEPS + 1.0)
    if rng.random() < 0.4:
        steps = _with_plateau(steps, rng)
    shape = SHAPES[list(SHAPES)[int(rng.integers(len(SHAPES)))]](steps, _log_uniform(rng, 2.0, 80.0), rng)
    curve = np.exp(-_log_uniform(rng, 0.02, 2.5) * shape)
    spread, precise = _log_uniform(rng, 0.01, 1.0), rng.random() < 0.3
    touches = rng.random(STEPS + 1) < _log_uniform(rng, 0.05, 1.0)
    near = np.zeros(STEPS + 1) if precise else rng.exponential(0.05 * spread, STEPS + 1)
    away = np.where(touches, near, rng.exponential(spread, STEPS + 1))
    away[0] = 0.0
    return curve * np.exp(away)


def _random_search(rng: np.random.Generator) -> FloatArray:
    """Independent draws from one of several distributions; the default is one of them."""
    kind, count = int(rng.integers(3)), STEPS + 1
    if kind == 0:
        times = np.exp(rng.normal(0.0, _log_uniform(rng, 0.03, 1.0), count))
    elif kind == 1:
        times = 1.0 + _log_uniform(rng, 0.05, 20.0) * rng.weibull(_log_uniform(rng, 0.6, 5.0), count)
    else:
        times = np.exp(rng.normal(0.0, rng.uniform(0.02, 0.4), count))
        is_good = rng.random(count) < _log_uniform(rng, 0.01, 0.4)
        times = np.where(is_good, times * rng.uniform(0.2, 0.95), times)
    times[0] = float(np.quantile(times, rng.beta(2.0, 2.0)))
    return times


def _local_search(rng: np.random.Generator) -> FloatArray:
    """Random draws first, then steps from the best so far towards a floor, with random draws in between."""
    times = _random_search(rng)
    initial, explores = int(rng.integers(3, 16)), rng.uniform(0.0, 0.4)
    floor = float(times.min()) * rng.uniform(0.4, 1.0)
    drift, spread = rng.uniform(-0.1, 0.6), rng.uniform(0.05, 0.8)
    best = float(times[:initial].min())
    for step in range(initial, STEPS + 1):
        if rng.random() >= explores:
            near = floor + (best - floor) * math.exp(rng.normal(drift, spread))
            times[step] = near + floor * abs(rng.normal(0.0, 0.002))
        best = min(best, float(times[step]))
    return times


def curve(rng: np.random.Generator) -> Curve:
    """One search; the time of the default as it was measured is 1."""
    kind = rng.random()
    true = _envelope(rng) if kind < 0.45 else _random_search(rng) if kind < 0.65 else _local_search(rng)
    count = len(true)
    measured = true * np.exp(rng.normal(0.0, 0.0 if rng.random() < 0.3 else _log_uniform(rng, 0.002, 0.2), count))
    if rng.random() < 0.2:
        measured = measured * np.where(rng.random(count) < 0.05, 1.0 + rng.exponential(1.0, count), 1.0)
    cost = measured
    if rng.random() < 0.25:
        fails = rng.random(count) < rng.uniform(0.0, 0.3)
        fails[0] = False
        cost = np.where(fails, cost[0] * rng.uniform(0.1, 1.0), cost)
        measured = np.where(fails, np.nan, measured)
    return Curve(true / measured[0], measured / measured[0], cost / measured[0])
