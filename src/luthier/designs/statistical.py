"""Designs that are most informative for a Gaussian process.

The process has unit variance and a Matérn 5/2 correlation whose length is half of each range; two categories are
correlated by 1/e.
"""

import numpy as np

from luthier.arrays import FloatArray
from luthier.designs.candidates import MOST_CHOSEN, candidate_codes, completed, leaves_no_choice
from luthier.learn.kernels import Hyperparameters, Kernel
from luthier.space import Space
from luthier.trial import Config

_LENGTH = 0.5
_NUGGET = 1e-6
_PASSES = 2
_MOST_EXCHANGED = 40  # points: an exchange of each costs as much as that many greedy choices
_REFERENCES = 500


class Knowledge:
    """What measurements at some candidates would tell about the others: their posterior variances.

    A Cholesky factor that grows by a row for each measurement: Rasmussen & Williams 2006, eq. 2.24.
    """

    def __init__(self, space: Space, units: FloatArray) -> None:
        ordered = np.asarray(space.ordered)
        self._kernel, self._units = Kernel(ordered), units
        self._hyper = Hyperparameters(1.0, _NUGGET, np.where(ordered, _LENGTH**-2, 1.0))
        self.factor = np.empty((0, len(units)))
        self.variance = np.ones(len(units))

    def correlation(self, rows: FloatArray) -> FloatArray:
        """The prior correlations of the candidates with `rows`."""
        return self._kernel.correlation(self._hyper, self._units, rows)

    def learn(self, index: int) -> FloatArray:
        """Measure a candidate; the new row of the factor: its posterior covariances over its deviation."""
        covariance = self.correlation(self._units[index : index + 1])[:, 0] - self.factor.T @ self.factor[:, index]
        row: FloatArray = covariance / np.sqrt(self.variance[index] + _NUGGET)
        self.factor = np.concatenate((self.factor, row[None, :]))
        self.variance = np.maximum(self.variance - row**2, 0.0)
        return row


def d_optimal(space: Space, count: int, rng: np.random.Generator) -> list[Config]:
    """Maximises the entropy of what is measured, log det R(S) (Shewry & Wynn 1987; Robert 2022, section 3.2.3).

    Greedy at first: the candidate with the largest variance raises the determinant most. Then, in a small design,
    each point is replaced by a candidate that raises it more.
    """
    if leaves_no_choice(space, count):
        return space.sample(max(count, 0), rng)
    codes = candidate_codes(space, rng)
    units = space.to_unit(codes)
    chosen, knowledge = [int(rng.integers(len(units)))], Knowledge(space, units)
    knowledge.learn(chosen[0])
    while len(chosen) < min(count, MOST_CHOSEN, len(units)):
        chosen.append(_largest(knowledge.variance, chosen))
        knowledge.learn(chosen[-1])
    if len(chosen) <= _MOST_EXCHANGED:
        chosen = _exchanged(space, units, chosen)
    return completed(space, codes[chosen], count, rng)


def _exchanged(space: Space, units: FloatArray, chosen: list[int]) -> list[int]:
    for _ in range(_PASSES):
        before = list(chosen)
        for place in range(len(chosen)):
            others = chosen[:place] + chosen[place + 1 :]
            knowledge = Knowledge(space, units)
            for index in others:
                knowledge.learn(index)
            best = _largest(knowledge.variance, others)
            # det R(S) is det R(others) times the variance left at the last point.
            if knowledge.variance[best] > knowledge.variance[chosen[place]] + _NUGGET:
                chosen = [*chosen[:place], best, *chosen[place + 1 :]]
        if chosen == before:
            break
    return chosen


def i_optimal(space: Space, count: int, rng: np.random.Generator) -> list[Config]:
    """Minimises the mean square error of prediction over the space, greedily (Sacks et al. 1989, section 6).

    The integral is a mean over a sample of the candidates.
    """
    if leaves_no_choice(space, count):
        return space.sample(max(count, 0), rng)
    codes = candidate_codes(space, rng)
    units = space.to_unit(codes)
    knowledge, chosen = Knowledge(space, units), list[int]()
    references = rng.permutation(len(units))[:_REFERENCES]
    prior = knowledge.correlation(units[references])
    squares = np.einsum("ij,ij->i", prior, prior)
    while len(chosen) < min(count, MOST_CHOSEN, len(units)):
        # A measurement at x takes cov(x, z)² / var(x) from the variance at z.
        chosen.append(_largest(squares / (knowledge.variance + _NUGGET), chosen))
        before = knowledge.factor
        row = knowledge.learn(chosen[-1])
        there = row[references]
        product = prior @ there - before.T @ (before[:, references] @ there)
        # Every cov(x, z) falls by row(x) row(z): Σ (c - r r_z)² = Σ c² - 2 r Σ c r_z + r² Σ r_z².
        squares = np.maximum(squares - 2.0 * row * product + row**2 * (there @ there), 0.0)
    return completed(space, codes[chosen], count, rng)


def _largest(worth: FloatArray, chosen: list[int]) -> int:
    """The candidate that is worth most, of those not chosen yet."""
    free = worth.copy()
    free[chosen] = -np.inf
    return int(np.argmax(free))
