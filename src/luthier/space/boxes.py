"""Boxes of configurations, cut in halves until constraints allow most of what is left in them."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from luthier.arrays import BoolArray, FloatArray, IntArray
from luthier.space.constraints import Constraint
from luthier.space.expressions import Columns
from luthier.space.parameters import Parameter

Rows: TypeAlias = IntArray | BoolArray

_NARROWEST = 1e-9
_STAGES = (64, 512, 4096)
_GOOD_SHARE = 0.2
_PILOT_DRAWS = 1000
_BEAM = 256
_DEEPEST_DIVE = 400
_SPREAD_FROM = 16
_SPREAD_DRAWS = 1024


@dataclass(frozen=True, slots=True)
class Boxes:
    """Many boxes: lowest and highest codes, a row for each; `certain` ones satisfy the constraints everywhere."""

    low: FloatArray
    high: FloatArray
    certain: BoolArray

    def __len__(self) -> int:
        return len(self.low)

    def pick(self, rows: Rows) -> "Boxes":
        """Some of the boxes."""
        return Boxes(self.low[rows], self.high[rows], self.certain[rows])


@dataclass(frozen=True, slots=True)
class LinkedParameters:
    """Linked parameters, their positions in the space, and the constraints over them; codes hold only their columns."""

    positions: tuple[int, ...]
    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]

    def columns(self, codes: FloatArray) -> Columns:
        """Codes by the position of their parameter in the space."""
        return {position: codes[:, column] for column, position in enumerate(self.positions)}

    def satisfied(self, codes: FloatArray) -> BoolArray:
        """Which configurations satisfy every constraint."""
        columns, mask = self.columns(codes), np.ones(len(codes), dtype=np.bool_)
        for constraint in self.constraints:
            mask &= constraint.satisfied(columns, len(codes))
        return mask

    def everything(self) -> Boxes:
        """The one box that holds everything, or none if the constraints forbid all of it."""
        ends = np.array([[0.0, 1.0]] * len(self.parameters))
        low, high = (
            np.array([[float(p.from_unit(end)[0]) for p, end in zip(self.parameters, ends[:, [side]], strict=True)]])
            for side in (0, 1)
        )
        return self._judge(low, high)

    def refine(self, boxes: Boxes, at_least: int) -> Boxes:
        """Halve boxes that are neither certain nor single points, until there are enough or none is left."""
        while 0 < len(boxes) < at_least:
            halves = self.halve(boxes)
            if halves is None:
                return boxes
            boxes = halves
        return boxes

    def halve(self, boxes: Boxes) -> Boxes | None:
        """Halve every uncertain box along its widest side and drop what the constraints forbid; None: all are done."""
        width = np.where(boxes.certain[:, None], 0.0, self._shares(boxes) * self._open(boxes))
        side, rows = width.argmax(axis=1), np.flatnonzero(width.max(axis=1) > 0.0)
        if len(rows) == 0:
            return None
        left, right = boxes.pick(rows), boxes.pick(rows)
        for column, parameter in enumerate(self.parameters):
            cut = np.flatnonzero(side[rows] == column)
            low, high = left.low[cut, column], left.high[cut, column]
            if parameter.size is None:
                middle = parameter.from_unit(0.5 * (parameter.to_unit(low) + parameter.to_unit(high)))
                left.high[cut, column] = right.low[cut, column] = middle
            else:
                left.high[cut, column] = np.floor(0.5 * (low + high))
                right.low[cut, column] = left.high[cut, column] + 1.0
        kept = boxes.pick(width.max(axis=1) == 0.0)
        new = self._judge(np.concatenate([left.low, right.low]), np.concatenate([left.high, right.high]))
        return Boxes(*(np.concatenate(pair) for pair in zip(_arrays(kept), _arrays(new), strict=True)))

    def draw(self, boxes: Boxes, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw points uniformly out of the boxes; those in uncertain boxes may violate constraints."""
        volume = np.cumsum(self._shares(boxes).prod(axis=1))
        rows = np.searchsorted(volume, rng.random(count) * volume[-1], side="right").clip(max=len(boxes) - 1)
        codes = np.empty((count, len(self.parameters)))
        for column, parameter in enumerate(self.parameters):
            low, high = boxes.low[rows, column], boxes.high[rows, column]
            if parameter.size is None:
                start, end = parameter.to_unit(low), parameter.to_unit(high)
                codes[:, column] = parameter.from_unit(start + rng.random(count) * (end - start)).clip(low, high)
            else:
                codes[:, column] = np.minimum(low + np.floor(rng.random(count) * (high - low + 1.0)), high)
        return codes

    def _judge(self, low: FloatArray, high: FloatArray) -> Boxes:
        """Drop the boxes that hold no valid point, and mark those that hold no other."""
        possible, certain = np.ones(len(low), dtype=np.bool_), np.ones(len(low), dtype=np.bool_)
        lows, highs = self.columns(low), self.columns(high)
        for constraint in self.constraints:
            may_hold, always_holds = constraint.verdict(lows, highs, len(low))
            possible &= may_hold
            certain &= always_holds
        single = np.flatnonzero(possible & (low == high).all(axis=1))
        possible[single] = certain[single] = self.satisfied(low[single])
        return Boxes(low, high, certain).pick(possible)

    def _shares(self, boxes: Boxes) -> FloatArray:
        """The share of each axis that each box takes."""
        shares = np.empty(boxes.low.shape)
        for column, parameter in enumerate(self.parameters):
            low, high = boxes.low[:, column], boxes.high[:, column]
            if parameter.size is None:
                shares[:, column] = np.maximum(parameter.to_unit(high) - parameter.to_unit(low), _NARROWEST / 2)
            else:
                shares[:, column] = (high - low + 1.0) / parameter.size
        return shares

    def _open(self, boxes: Boxes) -> BoolArray:
        """Which sides of which boxes can still be halved."""
        continuous = np.array([parameter.size is None for parameter in self.parameters])
        narrow = continuous & (self._shares(boxes) < _NARROWEST)
        return (boxes.low < boxes.high) & ~narrow


@dataclass(frozen=True, slots=True)
class Frontier:
    """Boxes that together hold every valid point, and the share of their volume that is valid, as a trial showed."""

    boxes: Boxes
    share: float


def explore(problem: LinkedParameters) -> Frontier:
    """Cut the space of a problem until a large enough share of the rest is valid; no boxes mean that nothing is.

    The outcome depends on the problem alone, so that samples do too.
    """
    boxes, share = problem.everything(), 0.0
    for stage in _STAGES:
        boxes = problem.refine(boxes, stage)
        if len(boxes) == 0:
            break
        trial = problem.draw(boxes, _PILOT_DRAWS, np.random.default_rng(0))
        share = float(problem.satisfied(trial).mean())
        if share >= _GOOD_SHARE:
            break
    return Frontier(boxes, share)


def dive(problem: LinkedParameters, boxes: Boxes, rng: np.random.Generator) -> FloatArray:
    """Follow a few random boxes down to single points; return the valid points met on the first level that has any."""
    for _ in range(_DEEPEST_DIVE):
        if len(boxes) > _BEAM:
            boxes = boxes.pick(rng.permutation(len(boxes))[:_BEAM])
        if len(boxes) == 0:
            break
        points = np.concatenate([problem.draw(boxes, 4 * _BEAM, rng), boxes.low, boxes.high])
        valid = points[problem.satisfied(points)]
        halves = problem.halve(boxes)
        if len(valid) or halves is None:
            return valid
        boxes = halves
    return np.empty((0, len(problem.parameters)))


def spread(problem: LinkedParameters, points: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Find more valid points by changing one coordinate of known ones at a time."""
    everywhere = problem.everything()
    for _ in range(2):
        chosen = np.repeat(points[rng.permutation(len(points))[:_SPREAD_FROM]], _SPREAD_DRAWS, axis=0)
        found = [points]
        for column in range(len(problem.parameters)):
            moved = chosen.copy()
            moved[:, column] = problem.draw(everywhere, len(moved), rng)[:, column]
            found.append(moved[problem.satisfied(moved)])
        points = np.unique(np.concatenate(found), axis=0)
    return points


def _arrays(boxes: Boxes) -> tuple[FloatArray, FloatArray, BoolArray]:
    return boxes.low, boxes.high, boxes.certain
