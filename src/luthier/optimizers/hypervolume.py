"""How much volume a prediction may add to what a front dominates; lower is better in every objective."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from luthier.arrays import FloatArray

_ROOT_2_PI = math.sqrt(2.0 * math.pi)
_LEAST = 1e-300  # smaller expected gains count as equal, and the larger deviation decides

Box = tuple[tuple[float, ...], tuple[float, ...]]
"""The lower and the upper corner."""


def open_boxes(points: FloatArray, reference: FloatArray) -> list[Box]:
    """Disjoint boxes that fill what no point dominates below `reference`; their number is proportional to the points.

    With three objectives a plane moves along the third one: a box ends where a point changes its cross-section.
    """
    inside = points[(points < reference).all(axis=1)]
    if len(reference) == 2:
        return [((x, -math.inf), (end, y)) for x, end, y in _strips(inside, reference)]
    boxes: list[Box] = []
    begun = dict.fromkeys(_strips(inside[:0], reference), -math.inf)
    order = inside[np.argsort(inside[:, 2], kind="stable")]
    for seen, height in enumerate(order[:, 2].tolist(), start=1):
        now = _strips(order[:seen], reference)
        boxes += _ended(begun, set(begun) - set(now), height)
        begun = {strip: begun.get(strip, height) for strip in now}
    return boxes + _ended(begun, set(begun), float(reference[2]))


_Strip = tuple[float, float, float]


def _strips(points: FloatArray, reference: FloatArray) -> list[_Strip]:
    """What no point dominates in the first two objectives: from x, to x, and below which y."""
    strips, x, y = [], -math.inf, float(reference[1])
    for a, b in sorted(map(tuple, points[:, :2].tolist())):
        if b < y:
            if a > x:
                strips.append((x, a, y))
            x, y = a, b
    return [*strips, (x, float(reference[0]), y)]


def _ended(begun: dict[_Strip, float], ended: set[_Strip], height: float) -> list[Box]:
    return [
        ((x, -math.inf, begun[x, end, y]), (end, y, height)) for x, end, y in sorted(ended) if begun[x, end, y] < height
    ]


@dataclass(frozen=True, slots=True)
class NormalPrediction:
    """A normal distribution of one objective, or of its logarithm, for each candidate."""

    mean: FloatArray
    deviation: FloatArray
    logarithmic: bool = False

    def improvement(self, threshold: float) -> FloatArray:
        """E[max(threshold - Y, 0)] for each candidate."""
        from scipy.special import log_ndtr, ndtr

        if threshold == -math.inf:
            return np.zeros_like(self.mean)
        if not self.logarithmic:
            z = (threshold - self.mean) / self.deviation
            # Jones et al. 1998, eq. 15.
            return np.asarray(self.deviation * (np.exp(-0.5 * z * z) / _ROOT_2_PI + z * ndtr(z)), dtype=np.float64)
        z = (math.log(threshold) - self.mean) / self.deviation
        # The price of a put option (Black & Scholes 1973) on a log-normal value; in logarithms nothing overflows.
        paid = np.exp(self.mean + 0.5 * self.deviation**2 + log_ndtr(z - self.deviation))
        return np.asarray(np.maximum(threshold * ndtr(z) - paid, 0.0), dtype=np.float64)


def log_expected_hypervolume_improvement(
    predictions: Sequence[NormalPrediction], points: FloatArray, reference: FloatArray
) -> FloatArray:
    """The logarithm of the volume that a candidate with independent objectives is expected to add to `points`.

    The part of a box [l, u] that Y dominates has the expected volume ∏ₖ (EIₖ(uₖ) - EIₖ(lₖ)) with EIₖ(t) the expected
    improvement over t, and the boxes are disjoint (Yang et al. 2019, eq. 14), so this is exact.
    """
    boxes = open_boxes(points, reference)
    known = [
        {edge: prediction.improvement(edge) for edge in {corner[k] for box in boxes for corner in box}}
        for k, prediction in enumerate(predictions)
    ]
    total = np.zeros_like(predictions[0].mean)
    for lower, upper in boxes:
        volume = np.ones_like(total)
        for improvement, low, high in zip(known, lower, upper, strict=True):
            volume *= np.maximum(improvement[high] - improvement[low], 0.0)
        total += volume
    learned = np.log(np.stack([prediction.deviation for prediction in predictions])).sum(axis=0)
    return np.where(total > _LEAST, np.log(np.maximum(total, _LEAST)), math.log(_LEAST) + np.minimum(learned, 0.0))
