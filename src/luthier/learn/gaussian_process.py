"""Gaussian process regression that is cheap to keep up to date, one observation at a time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.learn.evidence import LogEvidence, constant_mean, most_probable, weak_prior
from luthier.learn.kernels import Family, Hyperparameters, Kernel
from luthier.learn.linear import (
    cholesky,
    inverse_from_cholesky,
    solve_cholesky,
    solve_lower,
    solve_lower_in_place,
)
from luthier.learn.points import PointSet

# A fit takes time with the cube of the number of points, hence these limits.
_FIT_POINTS = 500
_ROUGH_FIT_POINTS = 150  # a fit to more points starts with a fit to this many of them
_COLD_ITERATIONS, _WARM_ITERATIONS = 50, 20
_FAR = 10.0  # deviations: with a target farther away, the scale is computed again
_SMALLEST_VARIANCE = 1e-12
_BLOCK = 8  # rows of the Cholesky factor computed together
_AT_ONCE = 32_768  # covariances computed together: few enough for the processor's cache


@dataclass(frozen=True, slots=True)
class Observations:
    """Targets at points of the unit cube, and how reliable each of them is.

    The variance of a target is its `share` of the noise that is fitted (1 for a single measurement) plus the square of
    its own `error`, in the unit of the targets (0 for a single measurement).
    """

    x: FloatArray
    y: FloatArray
    share: FloatArray
    error: FloatArray

    @staticmethod
    def single(x: FloatArray, y: FloatArray) -> "Observations":
        """One measurement per point."""
        return Observations(x, y, np.ones(len(y)), np.zeros(len(y)))


@dataclass(frozen=True, slots=True)
class _Scale:
    """Takes targets to mean 0 and deviation 1 and back, without overflow for any finite targets."""

    largest: float
    offset: float
    spread: float

    @staticmethod
    def of(y: FloatArray) -> "_Scale":
        largest = float(np.max(np.abs(y))) or 1.0
        small = y / largest
        # Divided by the largest first, so that no square overflows.
        spread = float(np.std(small))
        # Targets that differ by rounding alone are equal.
        return _Scale(largest, float(np.mean(small)), spread if spread > 1e-13 else 1.0)

    def inward(self, y: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return (y / self.largest - self.offset) / self.spread

    def outward(self, y: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return (y * self.spread + self.offset) * self.largest

    def deviations_outward(self, y: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return y * self.spread * self.largest

    def deviations_inward(self, y: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return y / self.largest / self.spread


class GaussianProcess:
    """A constant mean plus a stationary process plus noise; `fit` or `condition` it first, then ask for predictions.

    Appending observations is cheap: the rows of the Cholesky factor before them are kept. Rows are computed in blocks
    of fixed size, so that predictions depend, to the last bit, only on the hyper-parameters and the observations, and
    not on how many of these were known at an earlier call.
    """

    def __init__(self, ordered: BoolArray, family: Family = "matern52") -> None:
        self.kernel = Kernel(ordered, family)
        self.hyper = Hyperparameters.from_log(weak_prior(self.kernel).centre)
        self._fit_scale = self._scale = _Scale(1.0, 0.0, 1.0)
        self._is_fitted = False
        self._ids = count()
        self._forget_all()

    def _forget_all(self) -> None:
        self.row_ids: list[int] = []
        self.block_ends: list[int] = []
        self.x = np.empty((0, len(self.kernel.ordered)))
        self.lower = np.empty((0, 0))
        self.whitened = np.empty(0)  # L⁻¹ (y - mean)
        self.mean = 0.0
        self._diagonal = np.empty(0)
        self._y = self._weights = np.empty(0)
        self._best_assumed = math.inf

    def fit(self, data: Observations, *, from_prior: bool = False) -> None:
        """Find the most probable hyper-parameters for `data`, and condition on it.

        The search for them starts from those of the last fit or, if `from_prior`, from the prior: then the result
        depends on `data` only.
        """
        self._scale = self._fit_scale = _Scale.of(data.y)
        if len(data.y) > 1 and np.ptp(self._scale.inward(data.y)) > 0.0:
            start = None if from_prior or not self._is_fitted else self.hyper
            self.hyper = _most_probable(self.kernel, data, self._scale, start)
        elif from_prior:
            self.hyper = Hyperparameters.from_log(weak_prior(self.kernel).centre)
        self._is_fitted = True
        self._forget_all()
        self.condition(data)

    def condition(self, data: Observations) -> None:
        """Replace all known data by `data`; the hyper-parameters stay as they are."""
        self.forget_assumed()
        self._scale = self._fit_scale
        if not np.all(np.abs(self._scale.inward(data.y)) < _FAR):
            self._scale = _Scale.of(data.y)
        y = self._scale.inward(data.y)
        own = self._scale.deviations_inward(data.error)
        # Rasmussen & Williams 2006, eq. 2.20, with a noise of its own for each target.
        diagonal = self.hyper.signal + self.hyper.noise * data.share + own * own
        known = min(len(self._diagonal), len(y))
        # Rows up to the first one that changed keep their part of the Cholesky factor.
        same = np.all(self.x[:known] == data.x[:known], axis=1) & (self._diagonal[:known] == diagonal[:known])
        kept = known if same.all() else int(np.argmin(same))
        if not kept == len(y) == len(self._diagonal):
            kept -= kept % _BLOCK  # a block is computed as a whole
            self._truncate(kept)
            ends = [*range(kept + _BLOCK, len(y), _BLOCK), len(y)]
            self._append(data.x[kept:], diagonal[kept:], ends)
        self._y = y
        # Generalised least squares: the constant mean comes from the same triangular solution as the residuals.
        whitened = solve_lower(self.lower, np.column_stack((np.ones(len(y)), y)))
        self.mean = constant_mean(whitened[:, 0], whitened[:, 1])
        self.whitened = whitened[:, 1] - self.mean * whitened[:, 0]
        # Rasmussen & Williams 2006, algorithm 2.1, line 3: alpha.
        self._weights = solve_cholesky(self.lower, y - self.mean)

    def _truncate(self, rows: int) -> None:
        self.row_ids = self.row_ids[:rows]
        self.block_ends = [end for end in self.block_ends if end <= rows]
        self.x, self.lower = self.x[:rows], self.lower[:rows, :rows]
        self.whitened, self._diagonal = self.whitened[:rows], self._diagonal[:rows]

    def _append(self, x: FloatArray, diagonal: FloatArray, ends: Sequence[int]) -> None:
        """Add rows to the Cholesky factor, in blocks that end before the rows `ends`.

        A block turns L into [L 0; B C] with B = K₂₁ L⁻ᵀ and C Cᵀ = K₂₂ - B Bᵀ.
        """
        first, total = len(self.x), len(self.x) + len(x)
        if total == first:
            return
        self.x = np.concatenate((self.x, x))
        lower = np.zeros((total, total))
        lower[:first, :first] = self.lower
        start = first
        for end in ends:
            rows = self.x[start:end]
            corner = self.hyper.signal * self.kernel.correlation(self.hyper, rows, rows)
            np.fill_diagonal(corner, diagonal[start - first : end - first])
            if start:
                side = self.hyper.signal * self.kernel.correlation(self.hyper, self.x[:start], rows)
                border = solve_lower(lower[:start, :start], side).T
                lower[start:end, :start] = border
                corner -= border @ border.T
            lower[start:end, start:end] = cholesky(corner)
            start = end
        self.lower = lower
        self._diagonal = np.concatenate((self._diagonal, diagonal))
        self.block_ends = [*self.block_ends, *ends]
        self.row_ids = [*self.row_ids, *(next(self._ids) for _ in range(total - first))]

    def assume(self, x: FloatArray) -> None:
        """Assume that each row of `x` was measured exactly as predicted (kriging believer; Ginsbourger et al. 2010).

        The mean stays as it is, the standard deviation shrinks.
        """
        if len(x) == 0:
            return
        # Assumed points do not change the mean: the measured points decide.
        away = self.kernel.correlation(self.hyper, self.x[: len(self._y)], x).T @ self._weights
        self._best_assumed = min(self._best_assumed, self.mean + self.hyper.signal * float(away.min()))
        self._append(x, np.full(len(x), self.hyper.signal + self.hyper.noise), [len(self.x) + len(x)])
        # As predicted means that the residual is 0.
        self.whitened = np.concatenate((self.whitened, np.zeros(len(x))))

    def forget_assumed(self) -> None:
        """Undo every `assume`."""
        self._truncate(len(self._y))
        self._best_assumed = math.inf

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the noise-free target at each row of `x`."""
        return FixedPoints(PointSet(x), in_blocks=False).predict(self)

    def predict_standard(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`predict` on the inner scale, where the targets have mean 0 and deviation 1."""
        return FixedPoints(PointSet(x), in_blocks=False).predict_standard(self)

    def to_targets(self, mean: FloatArray, deviation: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Take predictions from the inner scale to the unit of the targets."""
        return self._scale.outward(mean), self._scale.deviations_outward(deviation)

    def noise_deviation(self) -> float:
        """The fitted standard deviation of a single measurement, in the unit of the targets."""
        return float(self._scale.deviations_outward(np.sqrt([self.hyper.noise]))[0])

    def incumbent_standard(self) -> float:
        """The lowest predicted mean at the points observed or assumed, on the inner scale; no lucky run counts."""
        # At an observed point, the prediction is the target minus its noise variance times alpha.
        noise = self._diagonal[: len(self._y)] - self.hyper.signal
        return min(float(np.min(self._y - noise * self._weights)), self._best_assumed)

    def without_error(self, data: Observations) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation of each target of `data` (known last) without its own error, in the unit of the targets.

        The fitted noise stays in: here it counts as a part of the function.
        """
        own = self._scale.deviations_inward(data.error)
        return self.to_targets(*self._without(own * own))

    def _without(self, part: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the targets at the points known, `part` of their variance taken off.

        With D that part and A the whole covariance: y - D A⁻¹ (y - m), and the diagonal of D - D A⁻¹ D
        (Rasmussen & Williams 2006, eq. 2.23 and 2.24 at the points observed).
        """
        targets = self.lower @ self.whitened
        mean = self.mean + targets - part * solve_cholesky(self.lower, targets)
        variance = part * (1.0 - part * np.diagonal(inverse_from_cholesky(self.lower)))
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def log_likelihood(self) -> float:
        """The log density of the targets by the hyper-parameters as they are, in the unit of the targets."""
        n = len(self._y)
        # Rasmussen & Williams 2006, algorithm 2.1, line 7 (eq. 2.30).
        whitened, diagonal = self.whitened[:n], np.diagonal(self.lower)[:n]
        log_density = -0.5 * float(whitened @ whitened) - float(np.log(diagonal).sum())
        return log_density - n * (0.5 * math.log(2.0 * math.pi) + self._log_unit())

    def leave_one_out(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of each measurement as predicted from all others, in the unit of the targets."""
        residual, precision = self._left_out()
        return self.to_targets(self._y - residual, 1.0 / np.sqrt(precision))

    def leave_one_out_log_density(self) -> float:
        """The sum of the log densities of each target predicted from all others, in the unit of the targets."""
        residual, precision = self._left_out()
        # Rasmussen & Williams 2006, eq. 5.10 and 5.11.
        log_densities = 0.5 * np.log(precision) - 0.5 * residual * residual * precision - 0.5 * math.log(2.0 * math.pi)
        return float(log_densities.sum()) - len(self._y) * self._log_unit()

    def _log_unit(self) -> float:
        """The logarithm of what 1 on the inner scale is in the unit of the targets."""
        return math.log(self._scale.spread) + math.log(self._scale.largest)

    def _left_out(self) -> tuple[FloatArray, FloatArray]:
        """By how much each target misses its prediction from all others, and the precision of that prediction."""
        n = len(self._y)
        lower = self.lower[:n, :n]
        # Rasmussen & Williams 2006, eq. 5.12.
        precision = np.diagonal(inverse_from_cholesky(lower))
        return solve_cholesky(lower, self._y - self.mean) / precision, precision


def _most_probable(kernel: Kernel, data: Observations, scale: _Scale, start: Hyperparameters | None) -> Hyperparameters:
    """The most probable hyper-parameters, searched for from `start` or, with more iterations, from the prior."""
    prior = weak_prior(kernel)
    if start is not None:
        found, stages = start.to_log(), [(_FIT_POINTS, _WARM_ITERATIONS)]
    elif len(data.y) <= _ROUGH_FIT_POINTS:
        found, stages = prior.centre, [(_ROUGH_FIT_POINTS, _COLD_ITERATIONS)]
    else:
        found, stages = prior.centre, [(_ROUGH_FIT_POINTS, _COLD_ITERATIONS), (_FIT_POINTS, _WARM_ITERATIONS)]
    y = scale.inward(data.y)
    for most, iterations in stages:
        # Evenly over the history: a search begins far from the optimum and ends near it.
        chosen = np.unique(np.linspace(0, len(y) - 1, min(len(y), most)).round().astype(np.intp))
        extra = scale.deviations_inward(data.error[chosen]) ** 2
        evidence = LogEvidence(kernel, data.x[chosen], y[chosen], data.share[chosen], extra)
        found = most_probable(evidence, [found], prior, iterations)
    return Hyperparameters.from_log(found)


class FixedPoints:
    """Predictions at the same points at every call: L⁻¹ k(X, points) is kept, an observation adds a row to it.

    Rows are computed `in_blocks` like those of the process. For points that are predicted once, all at once is faster.
    """

    def __init__(self, points: PointSet, *, in_blocks: bool = True) -> None:
        self._points, self._in_blocks = points, in_blocks
        self._row_ids: list[int] = []
        self._rows = np.empty((0, len(points)))

    def predict_standard(self, process: GaussianProcess) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation at every point, on the inner scale of `process`."""
        # Rasmussen & Williams 2006, algorithm 2.1, lines 4 to 6 (eq. 2.25 and 2.26).
        return process.mean + process.whitened @ self.rows(process), self.deviation_standard(process)

    def deviation_standard(self, process: GaussianProcess) -> FloatArray:
        """The standard deviation at every point, on the inner scale of `process`; it does not depend on the targets."""
        rows, signal = self.rows(process), process.hyper.signal
        variance = signal - np.einsum("ij,ij->j", rows, rows)
        return np.asarray(np.sqrt(np.maximum(variance, _SMALLEST_VARIANCE * signal)), dtype=np.float64)

    def predict(self, process: GaussianProcess) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation at every point, in the unit of the targets of `process`."""
        return process.to_targets(*self.predict_standard(process))

    def rows(self, process: GaussianProcess) -> FloatArray:
        """L⁻¹ k(X, points): a row for each point that `process` knows."""
        self._follow(process)
        return self._rows[: len(self._row_ids)]

    def _follow(self, process: GaussianProcess) -> None:
        old, new = _agreeing(self._row_ids, process.row_ids), len(process.row_ids)
        self._row_ids = list(process.row_ids)
        if new == old:
            return
        if new > len(self._rows):
            # With room for a quarter more, so that most observations need no copy.
            rows = np.empty((new + new // 4 + 4, len(self._points)))
            rows[:old] = self._rows[:old]
            self._rows = rows
        for end in process.block_ends if self._in_blocks else [new]:
            if end > old:
                self._add_block(process, old, end)
                old = end

    def _add_block(self, process: GaussianProcess, start: int, end: int) -> None:
        fresh, together = self._rows[start:end], max(1, _AT_ONCE // max(len(self._points), 1))
        for row in range(0, end - start, together):
            x = process.x[start:end][row : row + together]
            fresh[row : row + together] = process.kernel.correlation(process.hyper, x, self._points)
        fresh *= process.hyper.signal
        if start:
            # Forward substitution goes on with these rows; the ones before them stay as they are.
            fresh -= process.lower[start:end, :start] @ self._rows[:start]
        solve_lower_in_place(process.lower[start:end, start:end], fresh)


def _agreeing(first: list[int], second: list[int]) -> int:
    """How many entries at the beginning are the same."""
    return next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
