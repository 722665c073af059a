"""A variational autoencoder for tables (Xu et al. 2019, TVAE; Kingma & Welling 2014), small enough for NumPy."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from luthier.arrays import BoolArray, FloatArray
from luthier.learn.adam import Adam

# Smaller than the published network: an earlier search has tens of good configurations, not thousands of rows.
_HIDDEN, _LATENT = 48, 6
_STEPS, _BATCH = 900, 64
_RATE = 3e-3
_WIDTH = 2.0  # a number is given in standard deviations of its mode, divided by this (Xu et al. 2019, section 4.2: 4)
_LEAST_LOG_NOISE = -3.0  # smaller noise would learn the rows by heart
# Of the mixtures of normal distributions that numbers are encoded by.
_MOST_MODES = 3  # tens of rows show no more
_LEAST_DEVIATION = 0.02  # of the unit interval, also for a mode of equal values
_ITERATIONS = 30


@dataclass(frozen=True, slots=True)
class Mixture:
    """A mixture of normal distributions: modes with their weights, means and standard deviations."""

    weights: FloatArray
    means: FloatArray
    deviations: FloatArray

    def responsibilities(self, x: FloatArray) -> FloatArray:
        """The probability that each number belongs to each mode, a row for each number."""
        log = self._log_parts(x)
        parts = np.exp(log - log.max(axis=1, keepdims=True))
        return np.asarray(parts / parts.sum(axis=1, keepdims=True), dtype=np.float64)

    def log_likelihood(self, x: FloatArray) -> float:
        """The log density of all numbers together."""
        log = self._log_parts(x)
        top = log.max(axis=1)
        return float(np.sum(top + np.log(np.exp(log - top[:, None]).sum(axis=1))))

    def _log_parts(self, x: FloatArray) -> FloatArray:
        z = (x[:, None] - self.means) / self.deviations
        return np.asarray(np.log(self.weights) - np.log(self.deviations) - 0.5 * z * z, dtype=np.float64)


def fit_mixture(x: FloatArray) -> Mixture:
    """The mixture of one to three modes with the lowest Bayesian information criterion (Schwarz 1978)."""
    return min((_fitted(x, modes) for modes in range(1, _MOST_MODES + 1)), key=lambda found: _criterion(found, x))


def _criterion(found: Mixture, x: FloatArray) -> float:
    # A mode has a mean, a deviation and a weight; the weights add up to 1.
    return (3.0 * len(found.means) - 1.0) * float(np.log(len(x))) - 2.0 * found.log_likelihood(x)


def _fitted(x: FloatArray, modes: int) -> Mixture:
    """Expectation maximisation (Dempster et al. 1977), from modes at quantiles: no random numbers."""
    means = np.quantile(x, (np.arange(modes) + 0.5) / modes)
    found = Mixture(np.full(modes, 1.0 / modes), means, np.full(modes, max(float(np.std(x)) / modes, _LEAST_DEVIATION)))
    for _ in range(_ITERATIONS):
        # E step, then M step.
        parts = found.responsibilities(x)
        total = parts.sum(axis=0) + 1e-9
        means = parts.T @ x / total
        spread = np.sqrt(np.sum(parts * (x[:, None] - means) ** 2, axis=0) / total)
        found = Mixture(total / total.sum(), means, np.maximum(spread, _LEAST_DEVIATION))
    return found


@dataclass(frozen=True, slots=True)
class Block:
    """The encoded columns of one parameter: `size` classes from `start` on; a number has its offset after them.

    The classes of a number are the modes of its mixture (mode-specific normalisation), those of a category its values.
    """

    column: int
    start: int
    size: int
    mixture: Mixture | None

    @property
    def classes(self) -> slice:
        """The columns of the classes."""
        return slice(self.start, self.start + self.size)

    @property
    def offset(self) -> int:
        """The column of the offset of a number."""
        return self.start + self.size

    @property
    def end(self) -> int:
        """The first column after it."""
        return self.start + self.size + (self.mixture is not None)


class TabularVae:
    """Learns the joint distribution of rows of the unit cube, and draws new ones.

    `sizes` is the number of values of each column that is not `ordered`. NaN means unknown: such a value counts as
    uniform, and so does a column that is unknown in every row.
    """

    def __init__(self, ordered: BoolArray, sizes: FloatArray, rows: FloatArray, *, seed: int) -> None:
        rng = np.random.default_rng([seed, len(rows), 3])
        self._columns = len(ordered)
        known = np.isfinite(rows)
        filled = np.where(known, rows, rng.random(rows.shape))
        self._blocks: list[Block] = []
        for column in np.flatnonzero(known.any(axis=0)).tolist():
            start = self._blocks[-1].end if self._blocks else 0
            mixture = fit_mixture(filled[:, column]) if ordered[column] else None
            size = len(mixture.means) if mixture is not None else max(1, int(sizes[column]))
            self._blocks.append(Block(column, start, size, mixture))
        self._weights: list[FloatArray] = []
        if self._blocks:
            encoded = encode(self._blocks, filled)
            self._weights = initial_weights(self._blocks, rng)
            _train(self._blocks, self._weights, encoded, rng)

    def sample(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw points of the unit cube."""
        # Dorier et al. 2022, algorithm 1, line 6: parameters that the earlier space lacked are uniform.
        points = rng.random((count, self._columns))
        if not self._blocks:
            return points
        raw = _decoded(self._weights, rng.standard_normal((count, _LATENT)))[1]
        noise = np.exp(self._weights[-1])
        for block in self._blocks:
            logits = raw[:, block.classes]
            # The largest of logits plus Gumbel noise is a draw from their softmax (Gumbel 1954).
            chosen = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
            if block.mixture is None:
                points[:, block.column] = (chosen + 0.5) / block.size
            else:
                offset = raw[:, block.offset] + noise[block.offset] * rng.standard_normal(count)
                moved = block.mixture.means[chosen] + _WIDTH * block.mixture.deviations[chosen] * offset
                points[:, block.column] = np.clip(moved, 0.0, 1.0)
        return points


def encode(blocks: Sequence[Block], rows: FloatArray) -> FloatArray:
    """Rows of the unit cube as classes and offsets."""
    encoded = np.zeros((len(rows), blocks[-1].end))
    for block in blocks:
        x = rows[:, block.column]
        if block.mixture is None:
            chosen = np.minimum((x * block.size).astype(np.intp), block.size - 1)
        else:
            chosen = np.argmax(block.mixture.responsibilities(x), axis=1)
            away = (x - block.mixture.means[chosen]) / (_WIDTH * block.mixture.deviations[chosen])
            encoded[:, block.offset] = away
        encoded[np.arange(len(rows)), block.start + chosen] = 1.0
    return encoded


def initial_weights(blocks: Sequence[Block], rng: np.random.Generator) -> list[FloatArray]:
    """Weights and biases of encoder and decoder, two layers each, and the log noise of each encoded column."""
    width = blocks[-1].end
    shapes = [(width, _HIDDEN), (_HIDDEN, 2 * _LATENT), (_LATENT, _HIDDEN), (_HIDDEN, width)]
    weights: list[FloatArray] = []
    for inputs, outputs in shapes:
        weights += [rng.standard_normal((inputs, outputs)) / np.sqrt(inputs), np.zeros(outputs)]
    return [*weights, np.full(width, -1.0)]


def loss_and_gradients(
    blocks: Sequence[Block], weights: Sequence[FloatArray], x: FloatArray, noise: FloatArray
) -> tuple[float, list[FloatArray]]:
    """The negative evidence lower bound of rows, per row, and its derivative by each weight.

    `noise` are the standard normal numbers of the reparametrisation, z = m + s noise (Kingma & Welling 2014, eq. 10).
    """
    hidden = np.tanh(x @ weights[0] + weights[1])
    both = hidden @ weights[2] + weights[3]
    # The encoder gives mean and log variance of each latent number.
    m, log_variance = both[:, :_LATENT], both[:, _LATENT:]
    s = np.exp(0.5 * log_variance)
    z = m + s * noise
    inner, raw = _decoded(weights, z)
    reconstruction, by_raw, by_noise = _reconstruction(blocks, x, raw, weights[-1])
    # Kingma & Welling 2014, appendix B: the divergence of N(m, s²) from N(0, 1).
    divergence = 0.5 * np.sum(m * m + s * s - 1.0 - log_variance)
    # Backwards through decoder and encoder; the derivative of tanh is 1 - tanh².
    by_inner = (by_raw @ weights[6].T) * (1.0 - inner * inner)
    by_z = by_inner @ weights[4].T
    by_both = np.concatenate((by_z + m, 0.5 * by_z * s * noise + 0.5 * (s * s - 1.0)), axis=1)
    by_hidden = (by_both @ weights[2].T) * (1.0 - hidden * hidden)
    gradients = [x.T @ by_hidden, by_hidden.sum(axis=0), hidden.T @ by_both, by_both.sum(axis=0)]
    gradients += [z.T @ by_inner, by_inner.sum(axis=0), inner.T @ by_raw, by_raw.sum(axis=0), by_noise]
    count = len(x)
    return float(reconstruction + divergence) / count, [gradient / count for gradient in gradients]


def _decoded(weights: Sequence[FloatArray], z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The hidden layer of the decoder, and its output: the logits of classes, and offsets."""
    inner = np.tanh(z @ weights[4] + weights[5])
    return inner, inner @ weights[6] + weights[7]


def _reconstruction(
    blocks: Sequence[Block], x: FloatArray, raw: FloatArray, log_noise: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """The negative log likelihood of rows, and its derivatives by the output and by the log noise."""
    total, by_raw, by_noise = 0.0, np.zeros_like(raw), np.zeros_like(log_noise)
    for block in blocks:
        logits, wanted = raw[:, block.classes], x[:, block.classes]
        # Cross entropy of a softmax; its derivative by the logits is softmax minus wanted.
        shifted = logits - logits.max(axis=1, keepdims=True)
        log_chance = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        total -= float(np.sum(wanted * log_chance))
        by_raw[:, block.classes] = np.exp(log_chance) - wanted
    offsets = [block.offset for block in blocks if block.mixture is not None]
    if offsets:
        # Normal log density of the offsets, with a deviation that is learned for each column.
        precision = np.exp(-2.0 * log_noise[offsets])
        away = raw[:, offsets] - x[:, offsets]
        total += float(np.sum(0.5 * away * away * precision + log_noise[offsets]))
        by_raw[:, offsets] = away * precision
        by_noise[offsets] = np.sum(1.0 - away * away * precision, axis=0)
    return total, by_raw, by_noise


def _train(blocks: Sequence[Block], weights: list[FloatArray], encoded: FloatArray, rng: np.random.Generator) -> None:
    adam = Adam(weights, _RATE)
    for _ in range(_STEPS):
        batch = encoded[rng.integers(len(encoded), size=min(_BATCH, len(encoded)))]
        noise = rng.standard_normal((len(batch), _LATENT))
        adam.step(loss_and_gradients(blocks, weights, batch, noise)[1])
        np.maximum(weights[-1], _LEAST_LOG_NOISE, out=weights[-1])
