"""Simplex searches for running programs: rank ordering, parallel and sequential, and Nelder-Mead."""

import math
from dataclasses import replace
from typing import Literal

import numpy as np

from luthier.arrays import FloatArray
from luthier.errors import InvalidInputError
from luthier.online.base import Standing
from luthier.online.strategies.handouts import Handouts
from luthier.online.strategies.rounds import Rounds
from luthier.online.strategies.sampling import Sampling
from luthier.optimizers import nelder_mead, rank_ordering
from luthier.optimizers.option_checks import check_share_above_0
from luthier.optimizers.simplex import Landscape, Steps
from luthier.space import Space
from luthier.trial import Config


def parallel_rank_ordering(
    space: Space,
    *,
    seed: int,
    sampling: Sampling,
    centre: Config | None = None,
    size: float = 0.2,
    vertices: Literal["2N", "N+1"] = "2N",
) -> "SimplexStrategy":
    """All reflections of a simplex are measured at the same time (Tabatabaee et al. 2005, algorithm 2).

    The first simplex has 2N vertices around the middle of the space, `size` of each range wide. The search has
    converged when the simplex has collapsed to one point and none of its neighbours is better.
    """
    return _rank_ordering(space, seed, sampling, centre, parallel=True, size=size, vertices=vertices)


def sequential_rank_ordering(
    space: Space,
    *,
    seed: int,
    sampling: Sampling,
    centre: Config | None = None,
    size: float = 0.2,
    vertices: Literal["2N", "N+1"] = "2N",
) -> "SimplexStrategy":
    """The reflection of the worst vertex is measured before the others move (Tabatabaee et al. 2005, algorithm 1)."""
    return _rank_ordering(space, seed, sampling, centre, parallel=False, size=size, vertices=vertices)


def simplex_search(
    space: Space, *, seed: int, sampling: Sampling, centre: Config | None = None, size: float = 0.3
) -> "SimplexStrategy":
    """The worst vertex of a simplex of N + 1 moves across the others (Nelder & Mead 1965)."""
    check_share_above_0("nelder-mead", "size", size)
    landscape = Landscape(space, seed)
    start = landscape.middle() if centre is None else space.codes([centre])[0]
    steps = nelder_mead.descent(landscape, nelder_mead.first_simplex(landscape, start, size), size)
    return SimplexStrategy(landscape, steps, sampling, centre)


def _rank_ordering(
    space: Space,
    seed: int,
    sampling: Sampling,
    centre: Config | None,
    *,
    parallel: bool,
    size: float,
    vertices: str,
) -> "SimplexStrategy":
    check_share_above_0("pro" if parallel else "sequential", "size", size)
    if vertices not in ("2N", "N+1"):
        raise InvalidInputError(f"vertices: {vertices!r} is unknown; write 2N or N+1")
    landscape = Landscape(space, seed)
    middle = landscape.middle() if centre is None else space.codes([centre])[0]
    first = _first_vertices(landscape, middle, size / 2.0, minimal=vertices == "N+1", with_centre=centre is not None)
    steps = rank_ordering.descent(landscape, first, parallel=parallel, reach=size / 2.0)
    return SimplexStrategy(landscape, steps, sampling, centre)


def _first_vertices(
    landscape: Landscape, centre: FloatArray, reach: float, *, minimal: bool, with_centre: bool
) -> FloatArray:
    """The vertices P(c ± b_i e_i), or P(c + b_i e_i) and c (Tabatabaee et al. 2005, section 6.1)."""
    around = landscape.around(centre, reach)
    if minimal:
        higher = np.any(around > centre, axis=1)
        # The smallest simplex, which the paper compares: one way on each axis, and the centre.
        around = around[higher]
    if minimal or with_centre or len(around) == 0:
        around = np.concatenate((centre[None, :], around))
    return around


class SimplexStrategy:
    """Runs the steps of a simplex search: hands out the points that it needs, and goes on when all are measured.

    Clients that are not needed run the best known configuration. A configuration that was not asked for, such as the
    default, counts as one that was, but does not get more samples than that.
    """

    def __init__(self, landscape: Landscape, steps: Steps, sampling: Sampling, centre: Config | None) -> None:
        self._landscape, self._steps, self._sampling = landscape, steps, sampling
        self._samples: dict[Config, list[float]] = {}
        self._needed: list[Config] = []
        self._handouts, self._rounds = Handouts(), Rounds()
        self._start = landscape.space.default if centre is None else centre
        self._standing = Standing(self._start, None, 0, converged=False)
        self._go_on()

    @property
    def standing(self) -> Standing:
        """The best configuration so far, and whether the search has converged."""
        return self._standing

    def next(self, client: str) -> Config:
        """The next configuration for a client: one that is missing samples, else the best known."""
        best = self._standing.best
        return best if self._standing.converged else self._handouts.next(client, best)

    def leave(self, client: str) -> None:
        """Forget what a client runs."""
        self._handouts.leave(client)

    def report(self, client: str, config: Config, value: float | None) -> None:
        """Count a sample, and go on if it was the last one missing."""
        # Asked before `taken`, which removes it with its last sample.
        is_wanted = config in self._handouts.missing
        self._handouts.taken(client, config)
        if self._standing.converged:
            return
        self._rounds.add(client)
        # A failed configuration is worse than any other and needs no further samples.
        if value is None:
            self._landscape.values[config] = math.inf
            self._handouts.missing.pop(config, None)
            self._rank()
        elif is_wanted:
            self._add(config, value)
        else:
            # Nobody asked for it, but it may turn out to be the best.
            if self._is_welcome(config):
                self._add(config, value)
                self._landscape.values[config] = self._sampling.value(self._samples[config])
                self._rank()
            return
        if not self._handouts.missing:
            self._go_on()

    def _add(self, config: Config, value: float) -> None:
        self._samples.setdefault(config, []).append(value)

    def _is_welcome(self, config: Config) -> bool:
        """Whether a sample that nobody asked for counts: as long as the configuration would need one."""
        return not self._has_failed(config) and bool(self._sampling.wanted(self._samples, [config], None))

    def _go_on(self) -> None:
        """Ask for more samples, or let the search decide and take the next points that it needs."""
        while not self._still_missing():
            request = next(self._steps, None)
            if request is None:
                self._needed = []
                self._standing = replace(self._standing, converged=True)
                return
            self._needed = list(dict.fromkeys(self._landscape.space.configs(request.needed)))

    def _still_missing(self) -> bool:
        """Note what must be sampled before the search can compare what it needs; if nothing, note their values."""
        usable = [config for config in self._needed if not self._has_failed(config)]
        best = None if self._standing.value is None else self._standing.best
        wanted = self._sampling.wanted(self._samples, usable, best, self._rounds.clients or 1) if usable else {}
        self._handouts.plan({config: count for config, count in wanted.items() if not self._has_failed(config)})
        if self._handouts.missing:
            return True
        # The best one may have got samples too, so its value is computed again.
        for config in dict.fromkeys((*usable, *(() if best is None else (best,)))):
            self._landscape.values[config] = self._sampling.value(self._samples[config])
        self._rank()
        return False

    def _rank(self) -> None:
        """Note the best configuration: the first one with the lowest value."""
        values = self._landscape.values
        # If even the best has failed, clients go back to where the search began.
        best = min(values, key=values.__getitem__, default=None)
        if best is None or values[best] == math.inf:
            self._standing = replace(self._standing, best=self._start, value=None, samples=0)
        else:
            self._standing = replace(self._standing, best=best, value=values[best], samples=len(self._samples[best]))

    def _has_failed(self, config: Config) -> bool:
        return self._landscape.values.get(config) == math.inf
