"""Rank ordering: a simplex that moves as a whole around its best vertex."""

from collections.abc import Generator, Sequence
from functools import partial

import numpy as np

from luthier.arrays import FloatArray
from luthier.errors import InvalidInputError
from luthier.optimizers.option_checks import check_share
from luthier.optimizers.simplex import Conversation, Course, Field, Wish
from luthier.space import Space
from luthier.trial import Config, Trial


class ParallelRankOrdering:
    """Tries all reflections of a simplex of 2N vertices at once (Tabatabaee et al. 2005, algorithm 2).

    The first simplex lies around the middle of the space, `size` of each range wide. Where it has converged, another
    begins around a random configuration, so the search goes on until the space is exhausted. A generation is handed out
    piecemeal if fewer are asked for; values already known are not asked for again.
    """

    def __init__(self, space: Space, *, seed: int, budget: int | None = None, size: float = 0.2) -> None:
        del budget  # every optimizer is told; this one needs no plan
        _check_size("parallel-rank-ordering", size)
        self._conversation = Conversation(space, seed, partial(_course, parallel=True, reach=size / 2.0))

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        return self._conversation.ask(count, running)

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials; the simplex moves when all it waits for is known."""
        self._conversation.tell(finished)


class SequentialRankOrdering:
    """Tries the reflection of the worst vertex before it moves the others (Tabatabaee et al. 2005, algorithm 1).

    In all else like `ParallelRankOrdering`.
    """

    def __init__(self, space: Space, *, seed: int, budget: int | None = None, size: float = 0.2) -> None:
        del budget  # every optimizer is told; this one needs no plan
        _check_size("sequential-rank-ordering", size)
        self._conversation = Conversation(space, seed, partial(_course, parallel=False, reach=size / 2.0))

    def ask(self, count: int, running: Sequence[Config]) -> list[Config]:
        """Suggest up to `count` configurations; an empty answer while nothing runs means that none is left."""
        return self._conversation.ask(count, running)

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials; the simplex moves when all it waits for is known."""
        self._conversation.tell(finished)


def _check_size(optimizer: str, size: object) -> None:
    check_share(optimizer, "size", size)
    if size == 0:
        raise InvalidInputError(f"optimizer {optimizer}: size is {size!r}; give a number above 0")


def _course(field: Field, *, parallel: bool, reach: float) -> Course:
    """One descent after another, each from a centre of its own."""
    centre = field.middle()
    vertices = field.around(centre, reach)
    yield from _descent(field, vertices if len(vertices) else centre[None, :], parallel=parallel, reach=reach)
    while (drawn := field.draw()) is not None:
        # The centre was never told: with it among the vertices no descent is made of known values alone.
        vertices = np.concatenate((drawn[None, :], field.around(drawn, reach)))
        yield from _descent(field, vertices, parallel=parallel, reach=reach)


def _descent(field: Field, vertices: FloatArray, *, parallel: bool, reach: float) -> Course:
    """Move the simplex until no neighbour of its best vertex is better, or nothing of it can be measured."""
    yield Wish(vertices)
    while True:
        vertices = field.ranked(vertices)
        best = vertices[0]
        if field.value(best) == np.inf:
            return
        if field.coincide(vertices):
            better = yield from field.improve(best, reach)
            if better is None:
                return
            yield Wish(better)
            vertices = better
        else:
            moved = yield from _move(field, best, vertices[1:], parallel=parallel)
            vertices = np.concatenate((best[None, :], moved))


def _move(field: Field, best: FloatArray, others: FloatArray, *, parallel: bool) -> Generator[Wish, None, FloatArray]:
    """Tabatabaee et al. 2005, algorithms 1 and 2, lines 5 to 16; where they print `vn` and `3 v0 - vn`, vj is meant."""
    v0, vj = field.unit(best), field.unit(others)
    reflected = field.project(best, 2.0 * v0 - vj)
    shrunk = field.project(best, 0.5 * v0 + 0.5 * vj)
    first = 0 if parallel else len(others) - 1
    yield Wish(reflected[first:], perhaps=shrunk)
    values = [field.value(row) for row in reflected[first:]]
    least = first + int(np.argmin(values))
    if not min(values) < field.value(best):
        yield Wish(shrunk)
        return shrunk
    expanded = field.project(best, 3.0 * v0 - 2.0 * vj)
    yield Wish(expanded[least : least + 1], perhaps=np.concatenate((expanded, reflected)))
    accepted = expanded if field.value(expanded[least]) < min(values) else reflected
    yield Wish(accepted)
    return accepted
