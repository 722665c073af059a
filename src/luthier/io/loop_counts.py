"""Which iterations of the loops of an I/O kernel do I/O, as the preload library recorded them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_FIRST = 3  # numbers of a run before its counters


@dataclass(frozen=True, slots=True)
class IterationRun:
    """Iterations `first`, `first + stride` and so on that did the same.

    `done` are operations, bytes read and bytes written of one of them, in POSIX, then in MPI-IO, then in HDF5;
    `highest` is the number of the highest of these layers in which anything was done, closing included.
    """

    first: int
    stride: int
    count: int
    done: tuple[int, ...]
    highest: int


@dataclass(frozen=True, slots=True)
class LoopTrace:
    """A loop in one process: how often it was entered, and the iterations with I/O of the first time.

    `outer` is the loop around it, 0 without one. It is regular if it does I/O in the same iterations each time.
    """

    number: int
    entries: int
    iterations: int
    outer: int
    is_regular: bool
    runs: tuple[IterationRun, ...]

    @property
    def executions(self) -> int:
        """Iterations with I/O, of the first time."""
        return sum(run.count for run in self.runs)


def loop_traces(given: object, layers: int) -> tuple[LoopTrace, ...]:
    """What is under `loops` in the report of a process; a `ValueError` tells what is wrong with it."""
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise ValueError("loops is not a list of objects")
    return tuple(_loop(one, layers) for one in given)


def _loop(plain: dict[str, object], layers: int) -> LoopTrace:
    names = ("number", "entries", "iterations", "outer")
    runs = plain.get("runs")
    if not isinstance(runs, list):
        raise ValueError("a loop has no runs")
    number, entries, iterations, outer = _numbers([plain.get(name) for name in names], len(names))
    listed = tuple(_runs(runs, layers))
    return LoopTrace(number, entries, iterations, outer, plain.get("regular") is True, listed)


def _runs(listed: Sequence[object], layers: int) -> Iterator[IterationRun]:
    for one in listed:
        first, stride, count, *done, highest = _numbers(one, _FIRST + 3 * layers + 1)
        if highest >= layers or not stride:
            raise ValueError("a run of a loop has an invalid number")
        yield IterationRun(first, stride, count, tuple(done), highest)


def _numbers(given: object, length: int) -> tuple[int, ...]:
    if not isinstance(given, list) or len(given) != length:
        raise ValueError(f"a loop has no list of {length} numbers")
    for one in given:
        if isinstance(one, bool) or not isinstance(one, int) or not 0 <= one < 2**64:
            raise ValueError(f"a loop has the count {one!r:.20}, expected a whole number, 0 or more")
    return tuple(given)
