"""The simplex search of Nelder and Mead, on a grid."""

from collections.abc import Generator, Sequence
from functools import partial

import numpy as np

from luthier.arrays import FloatArray
from luthier.errors import InvalidInputError
from luthier.optimizers.option_checks import check_share
from luthier.optimizers.simplex import Conversation, Course, Field, Wish
from luthier.space import Space
from luthier.trial import Config, Trial


class NelderMead:
    """Moves the worst vertex of a simplex of N + 1 across the others (Nelder & Mead 1965; Lagarias et al. 1998).

    The first simplex begins in the middle of the space and reaches `size` of each range. Vertices lie on the grid and
    within the constraints. A simplex that has collapsed onto a point none of whose neighbours is better gives way to
    another around a random configuration, so the search goes on until the space is exhausted. It needs one value at a
    time: questions beyond are answered with what it may need next, then with neighbours of the best configuration.
    """

    def __init__(self, space: Space, *, seed: int, budget: int | None = None, size: float = 0.3) -> None:
        del budget  # every optimizer is told; this one needs no plan
        check_share("nelder-mead", "size", size)
        if size == 0:
            raise InvalidInputError(f"optimizer nelder-mead: size is {size!r}; give a number above 0")
        self._conversation = Conversation(space, seed, partial(_course, reach=size))

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        return self._conversation.ask(count, running)

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials; the simplex moves when what it waits for is known."""
        self._conversation.tell(finished)


def _course(field: Field, *, reach: float) -> Course:
    """One descent after another, the first from the middle, each other from a configuration never told."""
    centre: FloatArray | None = field.middle()
    while centre is not None:
        yield from _descent(field, _first_simplex(field, centre, reach), reach)
        centre = field.draw()


def _first_simplex(field: Field, centre: FloatArray, reach: float) -> FloatArray:
    """The centre and one point along every axis, on the side where there is more room."""
    around = field.around(centre, reach)
    here, rows = field.unit(centre)[0], [centre]
    for axis in field.axes:
        along = around[around[:, axis] != centre[axis]]
        if len(along):
            room = np.abs(field.unit(along)[:, axis] - here[axis])
            rows.append(along[np.argmax(np.round(room, 9))])
    return np.stack(rows)


def _descent(field: Field, simplex: FloatArray, reach: float) -> Course:
    """Move the simplex until no neighbour of its best vertex is better, or nothing of it can be measured."""
    yield Wish(simplex)
    while True:
        simplex = field.ranked(simplex)
        if field.value(simplex[0]) == np.inf:
            return
        if _collapsed(field, simplex):
            better = yield from field.improve(simplex[0], reach)
            if better is None:
                return
            yield Wish(better)
            best = field.ranked(better)[0]
            simplex = _side_by_side(field, best, better)
        else:
            simplex = yield from _move(field, simplex)


def _collapsed(field: Field, simplex: FloatArray) -> bool:
    """Whether the simplex no longer spans the axes it can move along."""
    if len(simplex) <= len(field.axes) or field.coincide(simplex):
        return True
    edges = field.unit(simplex[1:]) - field.unit(simplex[0])
    return int(np.linalg.matrix_rank(edges[:, field.axes], tol=1e-6)) < len(field.axes)


def _side_by_side(field: Field, best: FloatArray, better: FloatArray) -> FloatArray:
    """The best of a set of points, and the next best of them that together with it spans the axes."""
    rows = [best]
    for row in field.ranked(better):
        edges = field.unit(np.stack([*rows, row])) - field.unit(best)
        if int(np.linalg.matrix_rank(edges[:, field.axes], tol=1e-6)) == len(rows):
            rows.append(row)
    return np.stack(rows)


def _move(field: Field, simplex: FloatArray) -> Generator[Wish, None, FloatArray]:
    """One step of Lagarias et al. 1998, section 2: reflect, expand, contract, or shrink."""
    best, worst = simplex[0], simplex[-1]
    units = field.unit(simplex)
    centroid = units[:-1].mean(axis=0)

    def at(share: float) -> FloatArray:
        """The point centroid + share (centroid - worst), on the grid."""
        return field.project(best, (centroid + share * (centroid - units[-1]))[None, :], inward=False)

    reflected, expanded, outside, inside = at(1.0), at(2.0), at(0.5), at(-0.5)
    yield Wish(reflected, perhaps=np.concatenate((expanded, outside, inside)))
    value = field.value(reflected[0])
    if value < field.value(best):
        yield Wish(expanded)
        return _replaced(simplex, expanded if field.value(expanded[0]) < value else reflected)
    if value < field.value(simplex[-2]):
        return _replaced(simplex, reflected)
    contracted = outside if value < field.value(worst) else inside
    yield Wish(contracted)
    if field.value(contracted[0]) < min(value, field.value(worst)):
        return _replaced(simplex, contracted)
    shrunk = field.project(best, 0.5 * (units[:1] + units[1:]))
    yield Wish(shrunk)
    return np.concatenate((best[None, :], shrunk))


def _replaced(simplex: FloatArray, row: FloatArray) -> FloatArray:
    return np.concatenate((simplex[:-1], row))
