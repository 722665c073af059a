"""Gaussian process regression that is cheap to keep up to date, one observation at a time."""

import math
from dataclasses import dataclass
from itertools import count

import numpy as np

from luthier.learn.evidence import Evidence, constant_mean, most_probable, weak_prior
from luthier.learn.kernels import BoolArray, Family, FloatArray, Hyperparameters, Kernel
from luthier.learn.linear import (
    cholesky,
    inverse_from_cholesky,
    solve_cholesky,
    solve_lower,
    solve_lower_in_place,
)
from luthier.learn.points import PointSet

_GROWTH = 5  # the hyper-parameters are fitted anew when one in so many observations is new
_FIT_POINTS = 500
_FAR = 10.0  # a target this many deviations away means that the scale was learnt from something else
_COLD_ITERATIONS, _WARM_ITERATIONS = 50, 20
_SMALLEST_VARIANCE = 1e-12
_DRAWS = 16
_NO_NOISE = 1e-9  # of the signal: keeps a covariance without noise from being singular
_AT_ONCE = 32_768  # covariances computed together: few enough for the processor's cache


@dataclass(frozen=True, slots=True)
class Observations:
    """Targets at points of the unit cube and how far each is to be trusted.

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
    """A constant mean plus a stationary process plus noise; `learn` first, then ask for predictions.

    `hyper` stays as it is while the number of observations grows by less than a fifth; an observation added to the ones
    known costs a row of the Cholesky factor only.
    """

    def __init__(self, ordered: BoolArray, family: Family = "matern52") -> None:
        self.kernel = Kernel(ordered, family)
        self.hyper = Hyperparameters.from_log(weak_prior(self.kernel).centre)
        self._scale = _Scale(1.0, 0.0, 1.0)
        self._fitted = 0
        self._ids = count()
        self._exact: GaussianProcess | None = None
        self._forget_all()

    def _forget_all(self) -> None:
        self.row_ids: list[int] = []
        self.x = np.empty((0, len(self.kernel.ordered)))
        self.lower = np.empty((0, 0))
        self.whitened = np.empty(0)  # L⁻¹ (y - mean)
        self.mean = 0.0
        self._diagonal = np.empty(0)
        self._y = np.empty(0)
        self._best_believed = math.inf

    def learn(self, data: Observations) -> None:
        """Take `data` for all that is known. Prefer to append: what stands before unchanged costs nothing."""
        y = self._scale.inward(data.y)
        if len(y) >= self._fitted + max(1, self._fitted // _GROWTH) or not np.all(np.abs(y) < _FAR):
            self.fit(data)
        else:
            self._condition(data)

    def fit(self, data: Observations) -> None:
        """Learn from `data`, hyper-parameters included."""
        self._scale = _Scale.of(data.y)
        y = self._scale.inward(data.y)
        if len(y) > 1 and np.ptp(y) > 0.0:
            chosen = np.unique(np.linspace(0, len(y) - 1, min(len(y), _FIT_POINTS)).round().astype(np.intp))
            extra = self._scale.deviations_inward(data.error[chosen]) ** 2
            evidence = Evidence(self.kernel, data.x[chosen], y[chosen], data.share[chosen], extra)
            prior = weak_prior(self.kernel)
            starts, iterations = [self.hyper.to_log()], _WARM_ITERATIONS
            if self._fitted == 0:
                iterations = _COLD_ITERATIONS
            self.hyper = Hyperparameters.from_log(most_probable(evidence, starts, prior, iterations))
        self._fitted = len(y)
        self._forget_all()
        self._condition(data)

    def _condition(self, data: Observations) -> None:
        y = self._scale.inward(data.y)
        own = self._scale.deviations_inward(data.error)
        diagonal = self.hyper.signal + self.hyper.noise * data.share + own * own
        known = min(len(self._diagonal), len(y))
        same = np.all(self.x[:known] == data.x[:known], axis=1) & (self._diagonal[:known] == diagonal[:known])
        kept = known if same.all() else int(np.argmin(same))
        self._truncate(kept)
        self._append(data.x[kept:], diagonal[kept:])
        self._y = y
        whitened = solve_lower(self.lower, np.column_stack((np.ones(len(y)), y)))
        self.mean = constant_mean(whitened[:, 0], whitened[:, 1])
        self.whitened = whitened[:, 1] - self.mean * whitened[:, 0]

    def _truncate(self, rows: int) -> None:
        self.row_ids = self.row_ids[:rows]
        self.x, self.lower = self.x[:rows], self.lower[:rows, :rows]
        self.whitened, self._diagonal = self.whitened[:rows], self._diagonal[:rows]

    def _append(self, x: FloatArray, diagonal: FloatArray) -> None:
        """Add rows to the Cholesky factor: [L 0; B C] with B = K₂₁ L⁻ᵀ and C Cᵀ = K₂₂ - B Bᵀ."""
        old, new = len(self.x), len(x)
        if new == 0:
            return
        corner = self.hyper.signal * self.kernel.correlation(self.hyper, x, x)
        np.fill_diagonal(corner, diagonal)
        lower = np.zeros((old + new, old + new))
        lower[:old, :old] = self.lower
        if old:
            side = self.hyper.signal * self.kernel.correlation(self.hyper, self.x, x)
            border = solve_lower(self.lower, side).T
            lower[old:, :old] = border
            corner -= border @ border.T
        lower[old:, old:] = cholesky(corner)
        self.lower = lower
        self.x = np.concatenate((self.x, x))
        self._diagonal = np.concatenate((self._diagonal, diagonal))
        self.row_ids = [*self.row_ids, *(next(self._ids) for _ in range(new))]

    def believe(self, x: FloatArray) -> None:
        """Pretend that each row of `x` was measured exactly as predicted (kriging believer; Ginsbourger et al. 2010).

        The mean stays as it is, the deviation shrinks; the next `learn` takes it back.
        """
        if len(x) == 0:
            return
        self._best_believed = min(self._best_believed, float(self.predict_standard(x)[0].min()))
        self._append(x, np.full(len(x), self.hyper.signal + self.hyper.noise))
        self.whitened = np.concatenate((self.whitened, np.zeros(len(x))))

    def disbelieve(self) -> None:
        """Take back every `believe`."""
        self._truncate(len(self._y))
        self._best_believed = math.inf

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation of the noise-free target at each row of `x`."""
        return FixedPoints(PointSet(x)).predict(self)

    def predict_standard(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`predict` on the inner scale, where the targets have mean 0 and deviation 1."""
        return FixedPoints(PointSet(x)).predict_standard(self)

    def to_targets(self, mean: FloatArray, deviation: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Take predictions from the inner scale to the unit of the targets."""
        return self._scale.outward(mean), self._scale.deviations_outward(deviation)

    def noise_deviation(self) -> float:
        """The fitted deviation of a single measurement, in the unit of the targets."""
        return float(self._scale.deviations_outward(np.sqrt([self.hyper.noise]))[0])

    def incumbent_standard(self) -> float:
        """The lowest predicted mean at the points observed or believed, on the inner scale: no lucky run is in it."""
        n = len(self._y)
        alpha = solve_cholesky(self.lower[:n, :n], self._y - self.mean)
        observed = float(np.min(self._y - (self._diagonal[:n] - self.hyper.signal) * alpha))
        return min(observed, self._best_believed)

    def known_standard(self) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation of the noise-free target at the points observed or believed, on the inner scale."""
        return self._without(self._diagonal - self.hyper.signal)

    def without_error(self, data: Observations) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation of each target of `data`, learnt last, without its own error, in the unit of the targets.

        The fitted noise stays in: here it is taken for a part of the function.
        """
        own = self._scale.deviations_inward(data.error)
        return self.to_targets(*self._without(own * own))

    def _without(self, part: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation of the targets at the points known, `part` of their variance taken off.

        With D that part and A the whole covariance: y - D A⁻¹ (y - m), and the diagonal of D - D A⁻¹ D
        (Rasmussen & Williams 2006, eq. 2.23 and 2.24 at the points observed).
        """
        targets = self.lower @ self.whitened
        mean = self.mean + targets - part * solve_cholesky(self.lower, targets)
        variance = part * (1.0 - part * np.diagonal(inverse_from_cholesky(self.lower)))
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def without_noise(self) -> "GaussianProcess":
        """A process at the points observed or believed with next to no noise; its targets are the `possible_targets`.

        It is kept, and follows this one at every call: `FixedPoints` of it grow by a row an observation, too.
        """
        if self._exact is None:
            self._exact = GaussianProcess(self.kernel.ordered, self.kernel.family)
        self._exact.stand_at(self)
        return self._exact

    def stand_at(self, other: "GaussianProcess") -> None:
        """Take over the points and hyper-parameters of `other`, but no noise and no targets."""
        kept = _agreeing(self.row_ids, other.row_ids)
        self.hyper, self.mean = other.hyper, other.mean
        self._truncate(kept)
        self._append(other.x[kept:], np.full(len(other.x) - kept, (1.0 + _NO_NOISE) * self.hyper.signal))
        self.row_ids = list(other.row_ids)

    def possible_targets(self) -> FloatArray:
        """Draws of what the targets may be without noise: for each a row of L₀⁻¹ (f - m), L₀ that of `without_noise`.

        By Matheron's rule (Wilson et al. 2020) a draw is a function g from before anything was observed, plus what is
        learnt from y - g - e with e drawn noise. For g = L₀ ξ that is L₀ (ξ + L₀ᵀ A⁻¹ (y - m - g - e)):
        L₀, nearly singular, is never inverted. What is believed was not observed, and is drawn with the rest.
        """
        exact, observed = self.without_noise().lower, len(self._y)
        draws, error = _normal_scores(len(exact), seed=0), _normal_scores(observed, seed=1)
        variance = np.maximum(self._diagonal[:observed] - (1.0 + _NO_NOISE) * self.hyper.signal, 0.0)
        surprise = (self._y - self.mean)[:, None] - (exact @ draws)[:observed] - np.sqrt(variance)[:, None] * error
        learnt = solve_cholesky(self.lower[:observed, :observed], surprise)
        draws[:observed] += exact[:observed, :observed].T @ learnt
        return np.ascontiguousarray(draws.T)

    def log_likelihood(self) -> float:
        """The log density of the targets by the hyper-parameters as they are, in the unit of the targets."""
        n = len(self._y)
        whitened, diagonal = self.whitened[:n], np.diagonal(self.lower)[:n]
        log_density = -0.5 * float(whitened @ whitened) - float(np.log(diagonal).sum())
        return log_density - n * (0.5 * math.log(2.0 * math.pi) + self._log_unit())

    def leave_one_out(self) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation of each measurement as predicted from all others, in the unit of the targets."""
        residual, precision = self._left_out()
        return self.to_targets(self._y - residual, 1.0 / np.sqrt(precision))

    def leave_one_out_log_density(self) -> float:
        """The sum of the log densities of each target predicted from all others, in the unit of the targets."""
        residual, precision = self._left_out()
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


class FixedPoints:
    """Predictions at the same points again and again: L⁻¹ k(X, points) is kept, an observation adds one row to it."""

    def __init__(self, points: PointSet) -> None:
        self._points = points
        self._row_ids: list[int] = []
        self._rows = np.empty((0, len(points)))

    def predict_standard(self, process: GaussianProcess) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation at every point, on the inner scale of `process`."""
        return process.mean + process.whitened @ self.rows(process), self.deviation_standard(process)

    def deviation_standard(self, process: GaussianProcess) -> FloatArray:
        """The deviation at every point, on the inner scale of `process`; it does not depend on the targets."""
        rows, signal = self.rows(process), process.hyper.signal
        variance = signal - np.einsum("ij,ij->j", rows, rows)
        return np.asarray(np.sqrt(np.maximum(variance, _SMALLEST_VARIANCE * signal)), dtype=np.float64)

    def predict(self, process: GaussianProcess) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation at every point, in the unit of the targets of `process`."""
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
            rows = np.empty((new + new // 4 + 4, len(self._points)))
            rows[:old] = self._rows[:old]
            self._rows = rows
        fresh, together = self._rows[old:new], max(1, _AT_ONCE // max(len(self._points), 1))
        for row in range(0, new - old, together):
            x = process.x[old:][row : row + together]
            fresh[row : row + together] = process.kernel.correlation(process.hyper, x, self._points)
        fresh *= process.hyper.signal
        if old:
            fresh -= process.lower[old:, :old] @ self._rows[:old]
        solve_lower_in_place(process.lower[old:, old:], fresh)


def _agreeing(first: list[int], second: list[int]) -> int:
    """How many entries are the same from the beginning on."""
    return next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


def _normal_scores(rows: int, *, seed: int) -> FloatArray:
    """Standard normal draws, a Latin hypercube (McKay et al. 1979): every row has mean 0 and deviation 1 exactly.

    The first rows are the same for any number of them.
    """
    from scipy.special import ndtri

    scores = ndtri((np.arange(_DRAWS) + 0.5) / _DRAWS)
    return np.random.default_rng(seed).permuted(np.tile(scores / np.std(scores), (rows, 1)), axis=1)
