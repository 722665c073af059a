"""Weights of fields, learned from matches that people confirmed or rejected."""

from collections.abc import Iterable, Mapping

import numpy as np

from luthier.arrays import FloatArray
from luthier.submission.matching.score import EXTRACTED, Weights

_PRIOR = 0.1  # strength of the assumption that all fields weigh the same; docs/research/2026-11-18-matching.md


def learn_weights(pairs: Iterable[tuple[Mapping[str, float], bool]]) -> Weights:
    """The weights that best separate confirmed matches (True) from rejected ones, given by their `by_field`.

    A logistic regression without negative weights, which is pulled towards equal weights: with few reviewed matches
    the result is close to them. Without both a confirmed and a rejected one it is the default.
    """
    reviewed = list(pairs)
    confirmed = np.array([is_right for _, is_right in reviewed], dtype=float)
    if confirmed.size == 0 or confirmed.min() == confirmed.max():
        return Weights()
    features = np.array([[_mean(by_field, names) for names in EXTRACTED.values()] for by_field, _ in reviewed])
    return Weights(*(float(weight) for weight in _fit(features, confirmed)))


def _mean(by_field: Mapping[str, float], names: tuple[str, ...]) -> float:
    return sum(by_field[name] for name in names) / len(names)


def _fit(features: FloatArray, confirmed: FloatArray) -> FloatArray:
    """The weights of the logistic regression, over a sum of 1."""
    from scipy.optimize import minimize

    signs, fields = 2 * confirmed - 1, features.shape[1]

    def loss(point: FloatArray) -> tuple[float, FloatArray]:
        weights, cut = point[:-1], point[-1]
        margins = signs * (features @ weights - cut)
        pulls = -signs / (1 + np.exp(np.clip(margins, -500, 500)))
        uneven = weights - weights.mean()
        value = np.logaddexp(0, -margins).sum() + _PRIOR * (uneven @ uneven + 0.01 * weights @ weights)
        slope = features.T @ pulls + 2 * _PRIOR * (uneven + 0.01 * weights)
        return float(value), np.append(slope, -pulls.sum())

    found = minimize(
        loss, np.ones(fields + 1), jac=True, method="L-BFGS-B", bounds=[(0, None)] * fields + [(None, None)]
    )
    weights = np.asarray(found.x[:-1], dtype=float)
    return weights / weights.sum() if weights.sum() > 0 else np.full(fields, 1 / fields)
