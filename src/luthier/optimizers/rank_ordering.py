"""Rank ordering: a simplex that moves as a whole around its best vertex."""

from collections.abc import Generator
from functools import partial

import numpy as np

from luthier.arrays import FloatArray
from luthier.optimizers.option_checks import check_share_above_0
from luthier.optimizers.simplex import Landscape, RowsNeeded, SimplexSearch, Steps
from luthier.space import Space


def parallel_rank_ordering(space: Space, *, seed: int, budget: int | None = None, size: float = 0.2) -> SimplexSearch:
    """Tries all reflections of a simplex of 2N vertices at once (Tabatabaee et al. 2005, algorithm 2).

    The first simplex lies around the middle of the space, `size` of each range wide. When it has converged, another one
    starts around a random configuration, so the search goes on until the space is exhausted. If fewer configurations
    are asked for than a generation has, it is suggested in parts; what is already known is not suggested again.
    """
    del budget  # every optimizer gets it; this one does not need it
    check_share_above_0("parallel-rank-ordering", "size", size)
    return SimplexSearch(space, seed, partial(_steps, parallel=True, reach=size / 2.0))


def sequential_rank_ordering(space: Space, *, seed: int, budget: int | None = None, size: float = 0.2) -> SimplexSearch:
    """Tries the reflection of the worst vertex before it moves the others (Tabatabaee et al. 2005, algorithm 1).

    Everything else is as in `parallel_rank_ordering`.
    """
    del budget  # every optimizer gets it; this one does not need it
    check_share_above_0("sequential-rank-ordering", "size", size)
    return SimplexSearch(space, seed, partial(_steps, parallel=False, reach=size / 2.0))


def _steps(landscape: Landscape, *, parallel: bool, reach: float) -> Steps:
    """One descent after another, each from a centre of its own."""
    centre = landscape.middle()
    vertices = landscape.around(centre, reach)
    yield from descent(landscape, vertices if len(vertices) else centre[None, :], parallel=parallel, reach=reach)
    while (drawn := landscape.draw()) is not None:
        # The centre was never told: with it among the vertices no descent is made of known values alone.
        vertices = np.concatenate((drawn[None, :], landscape.around(drawn, reach)))
        yield from descent(landscape, vertices, parallel=parallel, reach=reach)


def descent(landscape: Landscape, vertices: FloatArray, *, parallel: bool, reach: float) -> Steps:
    """Move a simplex until no neighbour of its best vertex is better, or nothing of it can be measured."""
    yield RowsNeeded(vertices)
    while True:
        vertices = landscape.ranked(vertices)
        best = vertices[0]
        if landscape.value(best) == np.inf:
            return
        if landscape.coincide(vertices):
            better = yield from landscape.improve(best, reach)
            if better is None:
                return
            yield RowsNeeded(better)
            vertices = better
        else:
            moved = yield from _move(landscape, best, vertices[1:], parallel=parallel)
            vertices = np.concatenate((best[None, :], moved))


def _move(
    landscape: Landscape, best: FloatArray, others: FloatArray, *, parallel: bool
) -> Generator[RowsNeeded, None, FloatArray]:
    """Tabatabaee et al. 2005, algorithms 1 and 2, lines 5 to 16; where they print `vn` and `3 v0 - vn`, vj is meant."""
    v0, vj = landscape.unit(best), landscape.unit(others)
    reflected = landscape.project(best, 2.0 * v0 - vj)
    shrunk = landscape.project(best, 0.5 * v0 + 0.5 * vj)
    first = 0 if parallel else len(others) - 1
    yield RowsNeeded(reflected[first:], maybe_next=shrunk)
    values = [landscape.value(row) for row in reflected[first:]]
    least = first + int(np.argmin(values))
    if not min(values) < landscape.value(best):
        yield RowsNeeded(shrunk)
        return shrunk
    expanded = landscape.project(best, 3.0 * v0 - 2.0 * vj)
    yield RowsNeeded(expanded[least : least + 1], maybe_next=np.concatenate((expanded, reflected)))
    accepted = expanded if landscape.value(expanded[least]) < min(values) else reflected
    yield RowsNeeded(accepted)
    return accepted
