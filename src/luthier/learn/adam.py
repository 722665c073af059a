"""Adam, a stochastic gradient descent with a step size for each weight (Kingma & Ba 2015, algorithm 1)."""

from collections.abc import Sequence

import numpy as np

from luthier.arrays import FloatArray

_DECAY_1, _DECAY_2, _TINY = 0.9, 0.999, 1e-8


class Adam:
    """Changes arrays of weights in place, a step for each call of `step`."""

    def __init__(self, weights: Sequence[FloatArray], rate: float) -> None:
        self._weights = weights
        self._rate = rate
        self._first = [np.zeros_like(weight) for weight in weights]
        self._second = [np.zeros_like(weight) for weight in weights]
        self._steps = 0

    def step(self, gradients: Sequence[FloatArray]) -> None:
        """Move against the gradients, one for each array of weights."""
        self._steps += 1
        # Both bias corrections in one rate (Kingma & Ba 2015, end of section 2).
        rate = self._rate * np.sqrt(1.0 - _DECAY_2**self._steps) / (1.0 - _DECAY_1**self._steps)
        for at, gradient in enumerate(gradients):
            self._first[at] += (1.0 - _DECAY_1) * (gradient - self._first[at])
            self._second[at] += (1.0 - _DECAY_2) * (gradient * gradient - self._second[at])
            self._weights[at][...] -= rate * self._first[at] / (np.sqrt(self._second[at]) + _TINY)
