"""Loops that are left early: how much of each is done, and the text of the kernel that does it.

Executions of I/O are the iterations in which I/O happens: a loop of 2000 iterations that writes in every 200th has 10.
The loop is left after an iteration with which the wanted share of the executions is done, and the same share of the
operations and bytes. The counters of what happens in it are multiplied by the inverse of that share.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from luthier.arrays import FloatArray, IntArray
from luthier.io.kernel.layout import MARK
from luthier.io.kernel.loops import KernelLoop
from luthier.io.loop_counts import IterationRun, LoopTrace

TOLERANCE = 0.01
"""How far predicted operations and bytes may be from those of the application."""
_GOOD = 0.002  # a deviation that is not worth more iterations
_MOST_EXECUTIONS = 1_000_000
_MARKS = re.compile(f"{MARK}([^{MARK}]*){MARK}")
_NANO = 1e9
# The kernel reports to the library that counts I/O by calls of access() with a mode that no program uses, 0x6c70.
_LOOPS = """\
/* Loops that are left early. What happens in them is counted so often that the counters are those of whole loops, if
   luthier's library that counts I/O is preloaded: it sees these calls, which do nothing without it. */
int access(const char *, int);
struct luthier_loop { long left; const char *next, *end; };
static __inline__ int __attribute__((unused)) luthier_next(struct luthier_loop *loop)
{
    if (loop->left < 0)
        access(loop->next, 0x6c70);
    return loop->left < 0 || loop->left-- > 0;
}
static __inline__ void __attribute__((unused)) luthier_left(struct luthier_loop *loop)
{
    access(loop->end, 0x6c70);
}
/* number, iterations (-1: all), and how often they count, times 10^9 */
#define LUTHIER_LOOP(NUMBER, ITERATIONS, FACTOR) \\
    struct luthier_loop luthier_##NUMBER __attribute__((cleanup(luthier_left))) = \\
        {ITERATIONS, "luthier:" #NUMBER ":1", "luthier:" #NUMBER ":2"}; \\
    access("luthier:" #NUMBER ":0:" #FACTOR, 0x6c70);
#define LUTHIER_NEXT(NUMBER) if (!luthier_next(&luthier_##NUMBER)) break;

"""


@dataclass(frozen=True, slots=True)
class ReducedLoop:
    """A loop that is left after some of its iterations, each time it is entered; `factor` multiplies its counters."""

    loop: KernelLoop
    kept_iterations: int
    iterations: int
    kept_executions: int
    executions: int
    factor: float

    @property
    def text(self) -> str:
        """The loop in one line."""
        return (
            f"{self.loop.file}:{self.loop.line}: loop reduced to {self.kept_executions} of {self.executions} "
            f"executions of its I/O, {self.kept_iterations} of {self.iterations} iterations; its counters are "
            f"multiplied by {self.factor:.6g}"
        )


@dataclass(frozen=True, slots=True)
class Reduction:
    """How the loops of a kernel were reduced: reduced ones, and why others are whole, by their numbers."""

    share: float
    loops: tuple[ReducedLoop, ...]
    whole: tuple[tuple[KernelLoop, str], ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """One line for each loop."""
        kept = (f"{loop.file}:{loop.line}: loop left whole: {why}" for loop, why in self.whole)
        return (*(one.text for one in self.loops), *kept)


def without_marks(text: str) -> str:
    """The text of a kernel with whole loops."""
    return _MARKS.sub("", text)


def traced(text: str) -> str:
    """The text in which each marked loop tells when it begins, goes on and ends."""
    numbers = [int(mark[1:]) for mark in _MARKS.findall(text) if mark.startswith("<")]
    return _edited(text, dict.fromkeys(numbers, (-1, 1.0)))


def reduced(text: str, loops: Sequence[ReducedLoop]) -> str:
    """The text in which these loops are left early."""
    return _edited(text, {one.loop.number: (one.kept_iterations, one.factor) for one in loops})


def _edited(text: str, chosen: Mapping[int, tuple[int, float]]) -> str:
    ends: list[str] = []  # of the loops and bodies that are open

    def replacement(found: re.Match[str]) -> str:
        kind, number = found[1][:1], int(found[1][1:] or 0)
        if kind in ("}", ">"):
            return ends.pop()
        is_chosen = number in chosen
        if kind == "<":
            ends.append(" }" if is_chosen else "")
            iterations, factor = chosen.get(number, (0, 0.0))
            # A loop that began a line still begins one.
            before = found.string[found.string.rfind("\n", 0, found.start()) + 1 : found.start()]
            line = f"\n{before}" if not before.strip() else " "
            return f"{{ LUTHIER_LOOP({number}, {iterations}, {factor * _NANO:.0f}){line}" if is_chosen else ""
        if kind == "{":
            ends.append(" }" if is_chosen else "")
            return f"{{ LUTHIER_NEXT({number}) " if is_chosen else ""
        return f" LUTHIER_NEXT({number})" if is_chosen else ""

    edited = _MARKS.sub(replacement, text)
    return f"{_LOOPS}{edited}" if edited != without_marks(text) else edited


def chosen_loops(
    loops: Sequence[KernelLoop], processes: Sequence[Sequence[LoopTrace]], share: float
) -> tuple[list[ReducedLoop], list[tuple[KernelLoop, str]]]:
    """The loops to reduce, those with the most I/O first, and why others are whole.

    `processes` are the traces of all processes. Of nested loops, the outermost one that can be reduced is chosen.
    """
    known = {loop.number: loop for loop in loops}
    seen = {number: [one for process in processes for one in process if one.number == number] for number in known}
    chosen: list[tuple[int, ReducedLoop]] = []
    whole = [(loop, loop.why_whole) for loop in loops if loop.why_whole]
    # From outside to inside: an inner loop is looked at only if the one around it stays whole.
    waiting = [number for number in known if any(one.outer == 0 for one in seen[number])]
    looked_at: set[int] = set()
    while waiting:
        number = waiting.pop(0)
        if number in looked_at:
            continue
        looked_at.add(number)
        found = _reduced(known[number], seen[number], share)
        if isinstance(found, ReducedLoop):
            chosen.append((_bytes_in(seen[number]), found))
        else:
            whole += [(known[number], found)] if found else []
            waiting += [inner for inner in known if any(one.outer == number for one in seen[inner])]
    return [one for _, one in sorted(chosen, key=lambda pair: -pair[0])], whole


def _bytes_in(traces: Sequence[LoopTrace]) -> int:
    return sum(trace.entries * run.count * sum(run.done) for trace in traces for run in trace.runs)


def _reduced(loop: KernelLoop, traces: Sequence[LoopTrace], share: float) -> ReducedLoop | str:
    """The loop with the iterations to do, or why it is whole ("" if it makes no I/O, or only once)."""
    with_io = [trace for trace in traces if trace.executions]
    if max((trace.executions for trace in with_io), default=0) < 2:
        return ""
    # A layer has three columns: operations, bytes read, bytes written.
    column = 3 * max(run.highest for trace in with_io for run in trace.runs)
    if not _total(with_io, column + 1) + _total(with_io, column + 2):
        return "it only opens, closes or flushes files"
    if not all(trace.is_regular for trace in traces):
        return "it does not do I/O in the same iterations each time, or in too many patterns"
    if sum(trace.executions for trace in with_io) > _MOST_EXECUTIONS:
        return f"it has more than {_MOST_EXECUTIONS} executions of I/O"
    places = [_places(trace) for trace in with_io]
    # Rajesh et al. 2024, III-B, reduce the iterations of a loop; here only those with I/O count.
    wanted = [int(np.ceil(share * len(place) - 1e-9)) for place in places]
    first = max(int(place[count - 1]) + 1 for place, count in zip(places, wanted, strict=True))
    last = max(int(place[min(2 * count, len(place)) - 1]) + 1 for place, count in zip(places, wanted, strict=True))
    # Possible ends: after an iteration with I/O, from the wanted share up to twice of it.
    ends = np.unique(np.concatenate(places)) + 1
    ends = ends[(ends >= first) & (ends <= max(first, last))]
    low, high = _bounds(with_io, places, ends, all_layers=True)
    if ((high - low) / (high + low)).min() > TOLERANCE:  # HDF5 may write later what a loop has written
        low, high = _bounds(with_io, places, ends, all_layers=False)
    # The factor 2 / (low + high) makes the errors of the smallest and the largest share equal: this is their size.
    deviations = (high - low) / (high + low)
    good = np.flatnonzero(deviations <= _GOOD)
    best = int(good[0]) if len(good) else int(np.argmin(deviations))
    if deviations[best] > TOLERANCE:
        return "its iterations do different amounts of I/O"
    factor = float(2 / (high[best] + low[best]))
    if factor < 1 + TOLERANCE:
        return f"its I/O cannot be divided: a share of {share:.0%} needs all of it"
    end = int(ends[best])
    done = max(int(np.searchsorted(place, end)) for place in places)
    iterations = max(trace.iterations for trace in traces)
    return ReducedLoop(loop, end, iterations, done, max(map(len, places)), factor)


def _places(trace: LoopTrace) -> IntArray:
    """The iterations with I/O, in order."""
    return np.sort(np.concatenate([_run_places(run) for run in trace.runs]))


def _run_places(run: IterationRun) -> IntArray:
    return run.first + run.stride * np.arange(run.count, dtype=np.int64)


def _bounds(
    traces: Sequence[LoopTrace], places: Sequence[IntArray], ends: IntArray, *, all_layers: bool
) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest of the shares before each end."""
    shares = np.array(list(_shares(traces, places, ends, all_layers=all_layers)))
    return shares.min(axis=0), shares.max(axis=0)


def _shares(
    traces: Sequence[LoopTrace], places: Sequence[IntArray], ends: IntArray, *, all_layers: bool
) -> Iterator[FloatArray]:
    """For each end: the share of the executions of every process, and of the bytes and operations of all, before it.

    Operations are those of the highest layer: lower ones also write metadata.
    """
    for place in places:
        yield np.searchsorted(place, ends) / len(place)
    width = len(traces[0].runs[0].done)
    columns = [column for column in range(width) if column % 3 and _is_large(traces, column)]
    used = [column for column in range(0, width, 3) if _total(traces, column + 1) + _total(traces, column + 2)]
    highest = max(used, default=0)
    for column in [*(one for one in columns if all_layers or one > highest), highest]:
        total = _total(traces, column)
        if total:
            yield sum((_done_before(trace, column, ends) for trace in traces), np.zeros(len(ends))) / total


def _is_large(traces: Sequence[LoopTrace], column: int) -> bool:
    """Whether these bytes are more than the rest of metadata in their layer."""
    read = column - column % 3 + 1
    return _total(traces, column) > TOLERANCE * (_total(traces, read) + _total(traces, read + 1))


def _total(traces: Sequence[LoopTrace], column: int) -> float:
    return float(sum(run.count * run.done[column] for trace in traces for run in trace.runs))


def _done_before(trace: LoopTrace, column: int, ends: IntArray) -> FloatArray:
    done = np.zeros(len(ends))
    for run in trace.runs:
        if run.done[column]:
            # How many of first, first + stride, ... are below each end: the quotient is rounded up.
            counts = np.clip(-((run.first - ends) // run.stride), 0, run.count)
            done += counts * run.done[column]
    return done
