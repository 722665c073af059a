"""The scale on which a search looks at values: what is good is told apart finely, what is bad coarsely."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Warp:
    """A rising map from values to targets of mean 0 and deviation 1, known at the values it was fitted to.

    Half of it is the logarithm (times differ by factors; where values are not all positive, the inverse hyperbolic
    sine of their deviations from the median), half the normal score of the rank, which no outlier can stretch.
    """

    values: FloatArray
    targets: FloatArray

    @staticmethod
    def of(y: FloatArray) -> "Warp":
        """Fit the scale to values, of which there must be one at least."""
        from scipy.special import ndtri

        values, counts = np.unique(y, return_counts=True)
        last = np.cumsum(counts)
        ranks = last - 0.5 * (counts - 1)
        scores = ndtri((ranks - 0.375) / (len(y) + 0.25))  # Blom 1958
        weight = counts / len(y)
        targets = _standard(_standard(_squeezed(values), weight) + _standard(scores, weight), weight)
        return Warp(values, targets)

    def __call__(self, y: FloatArray) -> FloatArray:
        """The targets of values; between known values by interpolation, outside as the nearest."""
        return np.interp(y, self.values, self.targets)

    def errors(self, y: FloatArray, error: FloatArray) -> FloatArray:
        """What deviations of values at `y` amount to on the scale of the targets."""
        return 0.5 * (self(y + error) - self(y - error))


def _squeezed(values: FloatArray) -> FloatArray:
    if values[0] > 0.0:
        return np.log(values)
    small = values / (float(np.max(np.abs(values))) or 1.0)
    away = small - np.median(small)
    spread = float(np.median(np.abs(away)))
    return np.arcsinh(away / spread) if spread > 1e-13 else np.arcsinh(away)


def _standard(values: FloatArray, weight: FloatArray) -> FloatArray:
    centred = values - weight @ values
    spread = float(np.sqrt(weight @ (centred * centred)))
    return centred / spread if spread > 1e-13 else centred * 0.0
