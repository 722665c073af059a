"""Which configurations of a space its constraints allow: counted, listed, sampled.

Parameters that share a constraint form a group; groups are independent, so that the space is their product.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np

from luthier.arrays import FloatArray, IntArray
from luthier.errors import SpaceError
from luthier.space.boxes import Frontier, LinkedParameters, dive, explore, spread
from luthier.space.constraints import Constraint
from luthier.space.parameters import Parameter

LARGEST_LISTING = 2_000_000
"""Groups with at most this many combinations are listed and counted exactly."""

_CHUNK = 65_536
_ROUNDS = 40
_RARE_SHARE = 1e-3
_ROUNDS_FOR_RARE = 2
_DIVES = 6


class FreeParameter:
    """A parameter without constraints."""

    def __init__(self, position: int, parameter: Parameter) -> None:
        self.positions = (position,)
        self.count = parameter.size
        self._parameter = parameter

    def sample(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw codes: uniform values of a finite parameter, uniform on its scale for a continuous one."""
        if self.count is None:
            return self._parameter.from_unit(rng.random(count))[:, None]
        return rng.integers(0, self.count, count).astype(np.float64)[:, None]

    def at(self, ranks: IntArray) -> FloatArray:
        """The codes at some ranks."""
        return ranks.astype(np.float64)[:, None]


class HeldParameter:
    """A parameter that keeps its value."""

    count = 1

    def __init__(self, position: int, code: float) -> None:
        self.positions = (position,)
        self._code = code

    def sample(self, count: int, rng: np.random.Generator) -> FloatArray:  # noqa: ARG002 - nothing is random
        """The code, as often as asked for."""
        return np.full((count, 1), self._code)

    def at(self, ranks: IntArray) -> FloatArray:
        """The code, for every rank."""
        return np.full((len(ranks), 1), self._code)


class ListedGroup:
    """Linked parameters with few enough combinations to list the valid ones."""

    def __init__(self, problem: LinkedParameters) -> None:
        self.positions = problem.positions
        self._problem = problem
        self._sizes = tuple(parameter.size or 1 for parameter in problem.parameters)

    @cached_property
    def _valid(self) -> IntArray:
        """The valid combinations, as ranks in the product of the parameters."""
        total, found = math.prod(self._sizes), []
        for start in range(0, total, _CHUNK):
            ranks = np.arange(start, min(start + _CHUNK, total), dtype=np.int64)
            found.append(ranks[self._problem.satisfied(self._unravel(ranks))])
        return np.concatenate(found)

    def _unravel(self, ranks: IntArray) -> FloatArray:
        return np.stack(np.unravel_index(ranks, self._sizes), axis=1).astype(np.float64)

    @property
    def count(self) -> int:
        """How many valid combinations there are."""
        return len(self._valid)

    def sample(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw codes uniformly."""
        return self.at(rng.integers(0, self.count, count))

    def at(self, ranks: IntArray) -> FloatArray:
        """The codes at some ranks."""
        return self._unravel(self._valid[ranks])


class SearchedGroup:
    """Linked parameters with too many combinations to list, or continuous ones."""

    count = None

    def __init__(self, problem: LinkedParameters) -> None:
        self.positions = problem.positions
        self._problem = problem

    @cached_property
    def _frontier(self) -> Frontier:
        return explore(self._problem)

    @property
    def impossible(self) -> bool:
        """Whether it is proven that there is no valid combination."""
        return len(self._frontier.boxes) == 0

    @cached_property
    def _rare(self) -> FloatArray:
        """Valid combinations that were hard to find, looked for once and always in the same way."""
        rng, boxes = np.random.default_rng(0), self._frontier.boxes
        drawn = [self._problem.draw(boxes, _CHUNK, rng) for _ in range(_ROUNDS_FOR_RARE)]
        found = [points[self._problem.satisfied(points)] for points in drawn]
        points = np.concatenate([*found, *(dive(self._problem, boxes, rng) for _ in range(_DIVES))])
        return spread(self._problem, points, rng)

    def sample(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw codes; the few that are found are repeated where valid combinations are rare; empty if none is found."""
        if self.impossible:
            return np.empty((0, len(self.positions)))
        found = self._draw(count, rng) if self._frontier.share >= _RARE_SHARE else self._rare
        if 0 < len(found) != count:
            return found[rng.integers(0, len(found), count)]
        return found

    def _draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw until enough points are valid, or it takes too long."""
        found, missing = [np.empty((0, len(self.positions)))], count
        for _ in range(_ROUNDS):
            wanted = 1.3 * missing / self._frontier.share + 16
            points = self._problem.draw(self._frontier.boxes, min(int(wanted), _CHUNK), rng)
            found.append(points[self._problem.satisfied(points)][:missing])
            missing -= len(found[-1])
            if missing == 0:
                break
        return np.concatenate(found)

    def at(self, ranks: IntArray) -> FloatArray:
        """Combinations that are not listed have no ranks."""
        raise SpaceError(f"combination number {ranks[:1]} does not exist")


Group: TypeAlias = FreeParameter | HeldParameter | ListedGroup | SearchedGroup


def make_groups(parameters: Sequence[Parameter], constraints: Sequence[Constraint]) -> tuple[Group, ...]:
    """Find the parameters that constraints link, directly or through others."""
    group_of = list(range(len(parameters)))
    for constraint in constraints:
        linked = {group_of[position] for position in constraint.positions}
        group_of = [min(linked) if group in linked else group for group in group_of]
    return tuple(_make_group(number, group_of, parameters, constraints) for number in sorted(set(group_of)))


def _make_group(
    number: int, group_of: Sequence[int], parameters: Sequence[Parameter], constraints: Sequence[Constraint]
) -> Group:
    positions = tuple(position for position, group in enumerate(group_of) if group == number)
    inside = tuple(constraint for constraint in constraints if constraint.positions <= set(positions))
    if not inside:
        return FreeParameter(positions[0], parameters[positions[0]])
    problem = LinkedParameters(positions, tuple(parameters[position] for position in positions), inside)
    sizes = [parameter.size for parameter in problem.parameters]
    finite = [size for size in sizes if size is not None]
    listed = len(finite) == len(sizes) and math.prod(finite) <= LARGEST_LISTING
    return ListedGroup(problem) if listed else SearchedGroup(problem)
