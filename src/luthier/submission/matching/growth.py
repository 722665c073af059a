"""Arrays that grow, and the distinct values in arrays of codes."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from luthier.arrays import IntArray

Number = TypeVar("Number", bound=np.generic)


def with_capacity(array: npt.NDArray[Number], size: int) -> npt.NDArray[Number]:
    """The array if it has room for `size` values, else one with twice as much."""
    if size <= len(array):
        return array
    larger = np.zeros(max(64, 2 * size), dtype=array.dtype)
    larger[: len(array)] = array
    return larger


def distinct(codes: npt.NDArray[Any], count: int) -> tuple[IntArray, IntArray]:
    """The distinct ones of codes below `count`, and the position of each code among them."""
    is_there = np.zeros(count, dtype=bool)
    is_there[codes] = True
    found = np.flatnonzero(is_there)
    position = np.zeros(count, dtype=np.intp)
    position[found] = np.arange(len(found))
    return found, position
