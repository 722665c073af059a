"""The dense linear algebra of the models, by direct calls of LAPACK: for small matrices every extra call counts."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Protocol

import numpy as np

from luthier.arrays import FloatArray

_JITTERS = (0.0, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)  # shares of the mean diagonal


@cache
def _lapack() -> ModuleType:
    from scipy.linalg import lapack

    return lapack


@cache
def _blas() -> ModuleType:
    from scipy.linalg import blas

    return blas


class _Threads(Protocol):
    def limit(self, *, limits: int) -> AbstractContextManager[object]: ...


@cache
def _threads() -> _Threads | None:
    _lapack()  # the controller finds only libraries that are loaded
    try:
        controller: _Threads = import_module("threadpoolctl").ThreadpoolController()
    except ImportError:
        return None
    return controller


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep linear algebra on one core.

    On small matrices the threads of BLAS mostly wait for each other in a busy loop (ten times the CPU time on two
    cores), and the program that is tuned needs the cores. Without the package threadpoolctl there is no limit.
    """
    threads = _threads()
    if threads is None:
        yield
        return
    with threads.limit(limits=1):
        yield


def cholesky(matrix: FloatArray) -> FloatArray:
    """The lower factor of a symmetric matrix given by its lower triangle.

    If rounding made the matrix indefinite, the smallest sufficient share of its mean diagonal is added.
    """
    if not matrix.size:  # LAPACK rejects empty matrices, with a message on stdout
        return matrix
    level = float(np.mean(np.diagonal(matrix)))
    for jitter in _JITTERS:
        raised = matrix if jitter == 0.0 else matrix + (jitter * level) * np.eye(len(matrix))
        # The transpose of a C-ordered matrix is what LAPACK reads without a copy; its upper triangle is our lower one.
        upper, failed = _lapack().dpotrf(raised.T, lower=0, clean=1)
        if failed == 0:
            return np.ascontiguousarray(upper.T)
    raise np.linalg.LinAlgError(f"a matrix of size {len(matrix)} is not positive definite, not even with jitter")


def inverse_from_cholesky(lower: FloatArray) -> FloatArray:
    """The inverse of L Lᵀ; only its lower triangle and diagonal are meaningful."""
    if not lower.size:
        return lower
    upper, _ = _lapack().dpotri(lower.T, lower=0)
    return np.ascontiguousarray(upper.T)


def solve_cholesky(lower: FloatArray, right: FloatArray) -> FloatArray:
    """(L Lᵀ)⁻¹ B."""
    if not right.size:
        return right
    solution, _ = _lapack().dpotrs(lower.T, right, lower=0)
    return np.asarray(solution, dtype=np.float64)


def solve_lower(lower: FloatArray, right: FloatArray) -> FloatArray:
    """L⁻¹ B."""
    if not right.size:
        return right
    solution, _ = _lapack().dtrtrs(lower.T, right, lower=0, trans=1)
    return np.asarray(solution, dtype=np.float64)


def solve_lower_in_place(lower: FloatArray, right: FloatArray) -> None:
    """Replace B by L⁻¹ B; it must be C-ordered and may be wide: nothing of its size is copied."""
    if not right.size:
        return
    # The transpose of B is F-ordered, as BLAS wants it, and Bᵀ L⁻ᵀ is the transpose of what is wanted.
    _blas().dtrsm(1.0, lower.T, right.T, side=1, lower=0, overwrite_b=1)
