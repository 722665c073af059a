"""A strategy: moves to better neighbours until there is none; one sample decides."""

import math

from luthier.online.base import Standing
from luthier.online.strategies.sampling import Sampling
from luthier.space import Space
from luthier.trial import Config


class Neighbours:
    def __init__(self, space: Space, *, seed: int, sampling: Sampling, centre: Config | None = None) -> None:
        self._space, self._start = space, centre or space.default
        self._values: dict[Config, float] = {}
        self._running: dict[str, Config] = {}

    @property
    def standing(self) -> Standing:
        best = min(self._values, key=self._values.__getitem__, default=self._start)
        value = self._values.get(best, math.inf)
        converged = bool(self._values) and not self._missing()
        return Standing(self._start, None, 0, converged) if value == math.inf else Standing(best, value, 1, converged)

    def next(self, client: str) -> Config:
        if client not in self._running or self.standing.converged:
            missing = [config for config in self._missing() if config not in self._running.values()]
            self._running[client] = missing[0] if missing else self.standing.best
        return self._running[client]

    def report(self, client: str, config: Config, value: float | None) -> None:
        self.leave(client)
        self._values.setdefault(config, math.inf if value is None else value)

    def leave(self, client: str) -> None:
        self._running.pop(client, None)

    def _missing(self) -> list[Config]:
        best = min(self._values, key=self._values.__getitem__, default=self._start)
        return [config for config in (self._start, *self._space.neighbours(best)) if config not in self._values]
