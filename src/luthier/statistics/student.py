"""Student's t distribution; importing scipy.special for it would take 0.4 s."""

import math
from collections.abc import Callable
from functools import lru_cache

from luthier.errors import InvalidInputError

_MANY = 200  # degrees of freedom: for more, the expansion is more precise than a millionth, and faster


@lru_cache(maxsize=1024)
def t_quantile(confidence: float, degrees: int) -> float:
    """The t with P(-t < T < t) = `confidence` for a whole number of degrees of freedom, to better than 1e-6."""
    if not 0 < confidence < 1:
        raise InvalidInputError(
            f"confidence: {confidence} is not a probability; give a number between 0 and 1, such as 0.95"
        )
    if degrees > _MANY:
        return _expanded(_root(lambda z: math.erf(z / math.sqrt(2)), confidence, 40.0), degrees)
    angle = _root(lambda theta: _central(theta, degrees), confidence, math.pi / 2)
    return math.sqrt(degrees) * math.tan(angle)


def t_chance(t: float, degrees: int) -> float:
    """P(T < t), for a whole number of degrees of freedom."""
    central = _central(math.atan(abs(t) / math.sqrt(degrees)), degrees)
    return 0.5 + math.copysign(central / 2.0, t)


def _central(theta: float, degrees: int) -> float:
    """P(-t < T < t) with t = sqrt(degrees) tan(theta)."""
    # Abramowitz and Stegun 1964, eq. 26.7.3 (odd) and 26.7.4 (even)
    sine, cosine = math.sin(theta), math.cos(theta)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = 0.0 if degrees == 1 else term
    for k in range(2 + odd, degrees, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return 2 / math.pi * (theta + sine * total) if odd else sine * total


def _expanded(z: float, degrees: int) -> float:
    """The quantile from that of the normal distribution, for many degrees."""
    # Abramowitz and Stegun 1964, eq. 26.7.5
    return (
        z
        + (z**3 + z) / (4 * degrees)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * degrees**4)
    )


def _root(increasing: Callable[[float], float], wanted: float, high: float) -> float:
    """The x in (0, high) at which the function reaches `wanted`, by bisection to the last bit."""
    low = 0.0
    while low < (middle := (low + high) / 2) < high:
        if increasing(middle) < wanted:
            low = middle
        else:
            high = middle
    return high
