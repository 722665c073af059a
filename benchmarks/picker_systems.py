"""Systems to train and to test subset pickers on: generated ones of many shapes, simulated ones, and a real program.

A system has a space, and tells the value of a configuration, lower is better. The generated ones have few parameters
that matter, many that matter little, interactions of two, categories, steps, valleys, and noise.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from luthier.arrays import FloatArray
from luthier.space import Choice, Integer, Parameter, Space
from luthier.trial import Config
from testbeds.testbed import find_testbed

Shape = Callable[[FloatArray, np.random.Generator], FloatArray]


@dataclass(frozen=True)
class System:
    """A system to tune; `true` is without noise, `noise` the deviation of its logarithm; `best` the best true value."""

    name: str
    space: Space
    true: Callable[[Config], float]
    noise: float
    best: float

    def measure(self, config: Config, rng: np.random.Generator) -> float:
        """One run."""
        return self.true(config) * math.exp(self.noise * float(rng.standard_normal()))


def generated(seed: int, *, parameters: tuple[int, int] = (6, 14)) -> System:
    """A system drawn at random."""
    rng = np.random.default_rng([seed, 23])
    count = int(rng.integers(*parameters))
    space = Space(*(_parameter(f"p{at}", rng) for at in range(count)))
    weights = _weights(count, rng)
    tables = [weight * _shape(space.parameters[at], rng) for at, weight in enumerate(weights)]
    pairs = _interactions(space, weights, rng)
    names = space.names

    def true(config: Config) -> float:
        codes = [int(parameter.index(config[name])) for name, parameter in zip(names, space.parameters, strict=True)]
        total = sum(float(table[code]) for table, code in zip(tables, codes, strict=True))
        total += sum(float(table[codes[a], codes[b]]) for (a, b), table in pairs.items())
        return math.exp(total)

    noise = float(rng.choice([0.0, 0.01, 0.03, 0.1], p=[0.3, 0.3, 0.3, 0.1]))
    return System(f"generated {seed}", space, true, noise, _lowest(space, true, rng))


def _parameter(name: str, rng: np.random.Generator) -> Parameter:
    size = int(rng.choice([2, 3, 4, 5, 8, 12]))
    if rng.random() < 0.35:
        return Choice(name, [f"v{at}" for at in range(size)])
    return Integer(name, 0, size - 1)


def _weights(count: int, rng: np.random.Generator) -> FloatArray:
    """How strong each effect is: mostly a few strong ones and many weak ones."""
    strong = int(rng.integers(1, max(2, count // 2) + 1))
    weights = np.where(np.arange(count) < strong, rng.gamma(2.0, 0.35, count), 0.03 * rng.random(count))
    return rng.permutation(weights)


def _shape(parameter: Parameter, rng: np.random.Generator) -> FloatArray:
    """The effect of each value, from -1 to 1: monotone, a valley, a step, or any order for categories."""
    size = parameter.size or 1
    x = np.linspace(-1.0, 1.0, size)
    kind = "any" if not parameter.ordered else str(rng.choice(["monotone", "valley", "step", "saturating"]))
    if kind == "any":
        return rng.uniform(-1.0, 1.0, size)
    if kind == "monotone":
        return x * float(rng.choice([-1.0, 1.0]))
    if kind == "valley":
        return 2.0 * np.abs(x - float(rng.uniform(-1.0, 1.0))) - 1.0
    if kind == "step":
        return np.where(x > float(rng.uniform(-1.0, 1.0)), 1.0, -1.0) * float(rng.choice([-1.0, 1.0]))
    return 2.0 * np.exp(-2.0 * (x + 1.0)) - 1.0


def _interactions(space: Space, weights: FloatArray, rng: np.random.Generator) -> Mapping[tuple[int, int], FloatArray]:
    """Effects of pairs of the stronger parameters."""
    strong = np.argsort(-weights)[: max(2, len(weights) // 2)]
    sizes = [parameter.size or 1 for parameter in space.parameters]
    pairs = {}
    for _ in range(int(rng.integers(0, 4))):
        a, b = (int(column) for column in rng.choice(strong, 2, replace=False))
        scale = float(rng.uniform(0.1, 0.8)) * math.sqrt(max(weights[a] * weights[b], 1e-6))
        pairs[a, b] = scale * np.outer(_shape(space.parameters[a], rng), _shape(space.parameters[b], rng))
        pairs[a, b] = pairs[a, b].reshape(sizes[a], sizes[b])
    return pairs


def _lowest(space: Space, true: Callable[[Config], float], rng: np.random.Generator) -> float:
    """The best value found by many random starts and descents along single parameters."""
    best = math.inf
    for start in space.sample(20, rng):
        here, value = start, true(start)
        while True:
            near = min(space.neighbours(here) or [here], key=true)
            if not true(near) < value:
                break
            here, value = near, true(near)
        best = min(best, value)
    return best


def principal_impact(system: System, runs: int, rng: np.random.Generator) -> FloatArray:
    """The impact of each parameter by a principal component analysis of a sweep (Rajesh et al. 2024, III-C).

    Of parameters and performance together: how far each parameter goes along with the performance in each component.
    Categories are a column for each value.
    """
    sweep = system.space.sample(runs, rng)
    values = np.log([system.measure(config, rng) for config in sweep])
    codes = system.space.codes(sweep)
    columns, owner = [], []
    for at, parameter in enumerate(system.space.parameters):
        own = [codes[:, at]] if parameter.ordered else [codes[:, at] == code for code in range(parameter.size or 1)]
        columns += [np.asarray(one, dtype=np.float64) for one in own]
        owner += [at] * len(own)
    x = np.stack([*columns, values], axis=1)
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-9)
    strengths, components = np.linalg.eigh(x.T @ x / len(x))
    shared = np.abs((components[:-1] * strengths) @ components[-1])
    impact = np.bincount(owner, weights=shared**2, minlength=len(system.space.names))
    return np.asarray(impact / max(float(impact.sum()), 1e-9), dtype=np.float64)


def simulated() -> list[System]:
    """The simulated systems of `testbeds/`, and a real program as it was measured."""
    return [*map(_testbed, ("sbb/bandwidth", "sbb/latency", "sro/b", "sro/c-nfs")), compressor()]


def _testbed(name: str) -> System:
    testbed = find_testbed(name)
    return System(name, testbed.grid, testbed.seconds, 0.03, float(testbed.table().min()))


COMPRESSOR = Space(
    Integer("level", 1, 9, step=2, default=7),
    Integer("memory", 1, 9, step=4, default=9),
    Integer("window", 9, 15, step=3, default=15),
    Choice("strategy", ["default", "filtered", "huffman", "rle"]),
    Choice("chunk", [1024, 16384, 262144], default=262144, ordered=True),
    Choice("flush", [False, True]),
    Choice("copy", [False, True]),
)
"""What can be set when zlib compresses a stream."""


def compressor() -> System:
    """The compressor, by the recorded sweep of `benchmarks/sweep_compressor.py`."""
    recorded = json.loads((Path(__file__).parent / "results" / "compressor.json").read_text(encoding="utf-8"))
    values = dict(zip(COMPRESSOR.configs(COMPRESSOR.grid()), recorded["values"], strict=True))
    return System("compressor", COMPRESSOR, values.__getitem__, 0.0, min(values.values()))
