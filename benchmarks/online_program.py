"""A simulated program whose processes wait for each other after every iteration, tuned while it runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from benchmarks.online_surfaces import Surface
from luthier.arrays import FloatArray
from luthier.online.base import Standing, Strategy
from luthier.space import Space
from luthier.trial import Config

Noise: TypeAlias = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]
"""Draws factors by which iterations take longer than without noise."""

ALPHA = 1.7


def pareto(rho: float) -> Noise:
    """Heavy-tailed noise that takes the share `rho` of the machine (Tabatabaee et al. 2005, eq. 6 and 17)."""
    beta = (ALPHA - 1.0) * rho / ((1.0 - rho) * ALPHA)
    return lambda rng, shape: 1.0 + beta * (1.0 + rng.pareto(ALPHA, shape)) if rho else np.ones(shape)


def gaussian(deviation: float) -> Noise:
    """Noise with this relative standard deviation."""
    return lambda rng, shape: np.maximum(1.0 + deviation * rng.standard_normal(shape), 0.1)


@dataclass(frozen=True, slots=True)
class Program:
    """Iterates `steps` times on `clients` processes."""

    surface: Surface
    noise: Noise
    clients: int = 6
    steps: int = 100

    def total_time(self, strategy: Strategy, rng: np.random.Generator) -> float:
        """The sum over the steps of the slowest process, while a strategy decides (Tabatabaee et al. 2005, eq. 2)."""
        clients = [f"client {number}" for number in range(self.clients)]
        total = 0.0
        for step in range(self.steps):
            standing = strategy.standing
            if standing.converged:  # what is left is the same for all processes
                left = self.noise(rng, (self.steps - step, self.clients)).max(axis=1)
                return total + self.surface.time(standing.best) * float(left.sum())
            running = [strategy.next(client) for client in clients]
            factors = self.noise(rng, (self.clients,)).tolist()
            times = [self.surface.time(config) * factor for config, factor in zip(running, factors, strict=True)]
            for client, config, time in zip(clients, running, times, strict=True):
                strategy.report(client, config, time)
            total += max(times)
        return total


class RandomStrategy:
    """Random configurations on all clients for some reports, then the best of them: a baseline."""

    def __init__(self, space: Space, *, seed: int, reports: int) -> None:
        self._space, self._rng, self._left = space, np.random.default_rng(seed), reports
        self._values: dict[Config, float] = {}

    @property
    def standing(self) -> Standing:
        """The configuration with the lowest sample."""
        best = min(self._values, key=self._values.__getitem__, default=self._space.default)
        return Standing(best, self._values.get(best), int(best in self._values), converged=self._left <= 0)

    def next(self, client: str) -> Config:
        """A random configuration; which one does not depend on the client."""
        del client
        return self._space.decode(self._space.sample_codes(1, self._rng)[0])

    def report(self, client: str, config: Config, value: float | None) -> None:
        """Keep the lowest sample."""
        del client
        self._left -= 1
        if value is not None:
            self._values[config] = min(value, self._values.get(config, value))

    def leave(self, client: str) -> None:
        """Nothing is kept of clients."""
