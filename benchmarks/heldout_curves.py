"""Searches for judging the learned stop rule: other shapes, other searches and other noise than in its training."""

import math

import numpy as np

from benchmarks.stop_curves import Curve
from luthier.arrays import FloatArray

STEPS = 100


def _sigmoid(rng: np.random.Generator) -> FloatArray:
    """A slow start, a steep middle, a flat end."""
    steps = np.arange(STEPS + 1.0)
    middle, width = rng.uniform(3.0, 60.0), rng.uniform(1.0, 15.0)
    return 1.0 / (1.0 + np.exp(-(steps - middle) / width))


def _hyperbolic(rng: np.random.Generator) -> FloatArray:
    steps = np.arange(STEPS + 1.0)
    return steps / (steps + rng.uniform(1.0, 40.0))


def _two_phases(rng: np.random.Generator) -> FloatArray:
    """A fast gain, a plateau, and a second gain that comes late or never."""
    steps, share = np.arange(STEPS + 1.0), rng.uniform(0.2, 0.9)
    second = rng.uniform(20.0, 150.0)
    first = 1.0 - np.exp(-((steps / rng.uniform(2.0, 12.0)) ** rng.uniform(0.5, 1.5)))
    late = np.where(steps > second, 1.0 - np.exp(-(steps - second) / 5.0), 0.0)
    return share * first + (1.0 - share) * late


def _tracked(rng: np.random.Generator) -> FloatArray:
    """A search that follows a curve, with suggestions that are worse by a uniform factor."""
    shape = (_sigmoid, _hyperbolic, _two_phases)[int(rng.integers(3))](rng)
    reachable = 1.0 - rng.uniform(0.02, 0.85) * shape
    worse = 1.0 + rng.uniform(0.02, 1.5) * rng.uniform(0.0, 1.0, STEPS + 1) ** rng.uniform(1.0, 4.0)
    worse[0] = 1.0
    return reachable * worse


def _genetic(rng: np.random.Generator) -> FloatArray:
    """A steady-state genetic search of a landscape of interacting switches and levels."""
    parameters, levels = int(rng.integers(4, 14)), int(rng.integers(2, 8))
    weights = rng.gamma(0.5, 1.0, parameters)
    goals = rng.integers(levels, size=parameters)
    pairs = rng.integers(parameters, size=(parameters, 2))
    bonus = rng.gamma(0.3, 0.5, parameters)

    def time_of(genes: FloatArray) -> float:
        away = np.abs(genes - goals) / max(levels - 1, 1)
        hits = (away[pairs] == 0.0).all(axis=1)
        return 1.0 + float(weights @ away) + float(bonus @ (1.0 - hits))

    population = [rng.integers(levels, size=parameters).astype(float) for _ in range(12)]
    times = [time_of(genes) for genes in population]
    while len(times) < STEPS + 1:
        ranked = sorted(range(len(population)), key=lambda at: times[at])[:12]
        one, other = (population[ranked[int(rng.integers(6))]] for _ in range(2))
        child = np.where(rng.random(parameters) < 0.5, one, other)
        changes = rng.random(parameters) < rng.uniform(0.05, 0.4)
        child = np.where(changes, rng.integers(levels, size=parameters), child)
        population.append(child)
        times.append(time_of(child))
    return np.array(times)


def _noise(rng: np.random.Generator) -> FloatArray:
    """Factors with a heavy tail: Student's t with 3 degrees of freedom, or Pareto's, which only slows runs down."""
    size = math.exp(rng.uniform(math.log(0.001), math.log(0.08)))
    if rng.random() < 0.5:
        return np.exp(np.clip(size * rng.standard_t(3.0, STEPS + 1), -0.5, 1.0))
    return 1.0 + size * np.minimum(rng.pareto(1.7, STEPS + 1), 20.0)


def heldout(rng: np.random.Generator) -> Curve:
    """One search of `STEPS` configurations after the default, which takes 1."""
    true = _tracked(rng) if rng.random() < 0.6 else _genetic(rng)
    measured = true * _noise(rng)
    cost = measured + (rng.uniform(0.0, 0.3) * measured[0] if rng.random() < 0.3 else 0.0)
    if rng.random() < 0.2:
        fails = rng.random(STEPS + 1) < rng.uniform(0.02, 0.25)
        fails[0] = False
        measured = np.where(fails, np.nan, measured)
    return Curve(true / true[0], measured / true[0], cost / true[0])
