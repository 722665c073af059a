"""A small neural network of dense layers on NumPy: hidden layers with tanh, a linear output."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from luthier.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Network:
    """Weights and biases of each layer in turn: inputs times outputs, outputs.

    The arrays may be changed in place, by `luthier.learn.adam.Adam`.
    """

    weights: Sequence[FloatArray]

    def __call__(self, x: FloatArray) -> FloatArray:
        """The outputs for each row of inputs."""
        return self._activations(x)[-1]

    def gradients(self, x: FloatArray, by_output: FloatArray) -> list[FloatArray]:
        """The derivatives of a loss by each array of weights, from those by the outputs for the rows `x`."""
        return self._back(self._activations(x), by_output)

    def squared_error(self, x: FloatArray, wanted: FloatArray) -> tuple[float, list[FloatArray]]:
        """Half the squared error, averaged over the rows, with its derivatives; a NaN in `wanted` does not count."""
        activations = self._activations(x)
        # What is unknown is NaN; an error of 0 changes no weight.
        error = np.where(np.isfinite(wanted), activations[-1] - wanted, 0.0)
        return 0.5 * float(np.sum(error * error)) / len(x), self._back(activations, error / len(x))

    def _activations(self, x: FloatArray) -> list[FloatArray]:
        layers = [x]
        for at in range(0, len(self.weights), 2):
            raw = layers[-1] @ self.weights[at] + self.weights[at + 1]
            layers.append(raw if at + 2 == len(self.weights) else np.tanh(raw))
        return layers

    def _back(self, activations: Sequence[FloatArray], by_output: FloatArray) -> list[FloatArray]:
        found: list[FloatArray] = []
        by_raw = by_output
        for at in range(len(self.weights) - 2, -1, -2):
            inputs = activations[at // 2]
            found = [inputs.T @ by_raw, by_raw.sum(axis=0), *found]
            if at > 0:
                # The derivative of tanh is 1 - tanh².
                by_raw = (by_raw @ self.weights[at].T) * (1.0 - inputs * inputs)
        return found


def new_network(sizes: Sequence[int], rng: np.random.Generator) -> Network:
    """A network with random weights; `sizes` are the numbers of inputs, of each hidden layer's units, of outputs."""
    weights: list[FloatArray] = []
    for inputs, outputs in pairwise(sizes):
        # LeCun et al. 1998, section 4.6: sums of inputs of deviation 1 then have deviation 1.
        weights += [rng.standard_normal((inputs, outputs)) / np.sqrt(inputs), np.zeros(outputs)]
    return Network(weights)
