"""The simplex search of Nelder and Mead, on a grid."""

from collections.abc import Generator
from functools import partial

import numpy as np

from luthier.arrays import FloatArray
from luthier.optimizers.option_checks import check_share_above_0
from luthier.optimizers.simplex import Landscape, RowsNeeded, SimplexSearch, Steps
from luthier.space import Space


def nelder_mead(space: Space, *, seed: int, budget: int | None = None, size: float = 0.3) -> SimplexSearch:
    """Moves the worst vertex of a simplex of N + 1 across the others (Nelder & Mead 1965; Lagarias et al. 1998).

    The first simplex starts in the middle of the space and extends over `size` of each range. Vertices lie on the grid
    and satisfy the constraints. When the simplex has collapsed onto a point that no neighbour improves on, another one
    starts at a random configuration, so the search goes on until the space is exhausted. It needs one value at a time;
    if more is asked for, the answer holds what it may need next, then neighbours of the best configuration.
    """
    del budget  # every optimizer gets it; this one does not need it
    check_share_above_0("nelder-mead", "size", size)
    return SimplexSearch(space, seed, partial(_steps, reach=size))


def _steps(landscape: Landscape, *, reach: float) -> Steps:
    """One descent after another, the first from the middle, each other from a configuration never told."""
    centre: FloatArray | None = landscape.middle()
    while centre is not None:
        yield from descent(landscape, first_simplex(landscape, centre, reach), reach)
        centre = landscape.draw()


def first_simplex(landscape: Landscape, centre: FloatArray, reach: float) -> FloatArray:
    """The centre and one point along every axis, on the side where there is more room."""
    around = landscape.around(centre, reach)
    here, rows = landscape.unit(centre)[0], [centre]
    for axis in landscape.axes:
        along = around[around[:, axis] != centre[axis]]
        if len(along):
            room = np.abs(landscape.unit(along)[:, axis] - here[axis])
            rows.append(along[np.argmax(np.round(room, 9))])
    return np.stack(rows)


def descent(landscape: Landscape, simplex: FloatArray, reach: float) -> Steps:
    """Move a simplex until no neighbour of its best vertex is better, or nothing of it can be measured."""
    yield RowsNeeded(simplex)
    while True:
        simplex = landscape.ranked(simplex)
        if landscape.value(simplex[0]) == np.inf:
            return
        if _collapsed(landscape, simplex):
            better = yield from landscape.improve(simplex[0], reach)
            if better is None:
                return
            yield RowsNeeded(better)
            best = landscape.ranked(better)[0]
            simplex = _side_by_side(landscape, best, better)
        else:
            simplex = yield from _move(landscape, simplex)


def _collapsed(landscape: Landscape, simplex: FloatArray) -> bool:
    """Whether the simplex no longer spans the axes it can move along."""
    if len(simplex) <= len(landscape.axes) or landscape.coincide(simplex):
        return True
    # On a grid, vertices are often on one line or plane long before they coincide.
    edges = landscape.unit(simplex[1:]) - landscape.unit(simplex[0])
    return int(np.linalg.matrix_rank(edges[:, landscape.axes], tol=1e-6)) < len(landscape.axes)


def _side_by_side(landscape: Landscape, best: FloatArray, better: FloatArray) -> FloatArray:
    """The best of a set of points, and the next best of them that together with it spans the axes."""
    rows = [best]
    for row in landscape.ranked(better):
        edges = landscape.unit(np.stack([*rows, row])) - landscape.unit(best)
        if int(np.linalg.matrix_rank(edges[:, landscape.axes], tol=1e-6)) == len(rows):
            rows.append(row)
    return np.stack(rows)


def _move(landscape: Landscape, simplex: FloatArray) -> Generator[RowsNeeded, None, FloatArray]:
    """One step of Lagarias et al. 1998, section 2: reflect, expand, contract, or shrink."""
    best, worst = simplex[0], simplex[-1]
    units = landscape.unit(simplex)
    centroid = units[:-1].mean(axis=0)

    def at(share: float) -> FloatArray:
        """The point centroid + share (centroid - worst), on the grid."""
        return landscape.project(best, (centroid + share * (centroid - units[-1]))[None, :], inward=False)

    # The standard coefficients of Lagarias et al. 1998, section 2.
    reflected, expanded, outside, inside = at(1.0), at(2.0), at(0.5), at(-0.5)
    yield RowsNeeded(reflected, maybe_next=np.concatenate((expanded, outside, inside)))
    value = landscape.value(reflected[0])
    if value < landscape.value(best):
        yield RowsNeeded(expanded)
        return _replaced(simplex, expanded if landscape.value(expanded[0]) < value else reflected)
    if value < landscape.value(simplex[-2]):
        return _replaced(simplex, reflected)
    contracted = outside if value < landscape.value(worst) else inside
    yield RowsNeeded(contracted)
    # Lagarias et al. also accept an outside contraction that is only as good as the reflection.
    if landscape.value(contracted[0]) < min(value, landscape.value(worst)):
        return _replaced(simplex, contracted)
    shrunk = landscape.project(best, 0.5 * (units[:1] + units[1:]))
    yield RowsNeeded(shrunk)
    return np.concatenate((best[None, :], shrunk))


def _replaced(simplex: FloatArray, row: FloatArray) -> FloatArray:
    return np.concatenate((simplex[:-1], row))
