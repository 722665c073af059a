"""Reduces the loops of a verified I/O kernel, and proves that its counters predict those of the application."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from luthier.errors import InvalidInputError, KernelRefusedError
from luthier.io.counts import LAYERS, ProcessCounts
from luthier.io.kernel import Discovery
from luthier.io.kernel.loops import KernelLoop
from luthier.io.kernel.reduction import TOLERANCE, ReducedLoop, Reduction, chosen_loops, reduced, traced
from luthier.io.kernel_build import built
from luthier.io.kernel_comparison import differences, own_files
from luthier.io.kernel_runs import write_kernel
from luthier.io.kernel_trial import BuiltProgram, CountedRun, counted_run
from luthier.io.kernel_verification import Verification, failures, time_limit
from luthier.io.prediction import PredictedCounter, predictions
from luthier.trial import Json

_TRACE = {"LUTHIER_IO_LOOPS": "trace"}
_MOST_TRIED = 6  # loops; each can cost a run of the kernel


@dataclass(frozen=True, slots=True)
class Reduced:
    """A kernel after an attempt to reduce its loops; if none was reduced, the unchanged kernel and the `reason`."""

    discovery: Discovery
    reason: str = ""
    kernel_s: float | None = None
    reduced_s: float | None = None
    predictions: tuple[PredictedCounter, ...] = ()

    @property
    def reduction(self) -> Reduction:
        """The loops."""
        if self.discovery.reduction is None:
            raise TypeError("the discovery has no reduction")
        return self.discovery.reduction

    @property
    def text(self) -> str:
        """The result in one line."""
        loops = self.reduction.loops
        if not loops or self.kernel_s is None or self.reduced_s is None:
            return f"loops are whole: {self.reason or 'no loop has I/O that can be reduced'}"
        worst = max(abs(one.error) for one in self.predictions if one.tolerance <= TOLERANCE)
        count = "1 loop" if len(loops) == 1 else f"{len(loops)} loops"
        return (
            f"{count} reduced; verified on one input: it predicts operations and bytes of the application to "
            f"{100 * worst:.2g} %; whole kernel {self.kernel_s:.2f} s, reduced {self.reduced_s:.2f} s"
        )

    @property
    def plain(self) -> dict[str, Json]:
        """The result as plain values, which are written beside the kernel."""
        return {
            "share": self.reduction.share,
            "loops": [
                {
                    "number": one.loop.number,
                    "file": one.loop.file,
                    "line": one.loop.line,
                    "executions": one.executions,
                    "kept_executions": one.kept_executions,
                    "iterations": one.iterations,
                    "kept_iterations": one.kept_iterations,
                    "factor": one.factor,
                }
                for one in self.reduction.loops
            ],
            "whole": [{"file": loop.file, "line": loop.line, "reason": why} for loop, why in self.reduction.whole],
            "reason": self.reason,
            "kernel_s": self.kernel_s,
            "reduced_s": self.reduced_s,
            "predictions": [
                {"layer": one.layer, "counter": one.name, "application": one.actual, "predicted": one.predicted}
                for one in self.predictions
            ],
        }


def with_reduced_loops(discovery: Discovery, program: BuiltProgram, verdict: Verification, share: float) -> Reduced:
    """The kernel with shortened loops, if their counters are proven to predict those of the whole program.

    `verdict` is that of the whole kernel. Every reduced kernel is run, and used only if its counters, multiplied for
    the loops that were left early, agree with those of the application.
    """
    unknown = tuple((one, one.why_whole or "it was not looked at") for one in discovery.loops)
    nothing = Reduced(replace(discovery, reduction=Reduction(share, (), unknown)))
    if not verdict.accepted or verdict.run is None:
        raise InvalidInputError("only a verified kernel can be reduced")
    try:
        with tempfile.TemporaryDirectory(prefix="luthier-reduce-") as temporary:
            return _Reducing(discovery, program, verdict.run, Path(temporary)).best(share, nothing)
    except KernelRefusedError as refused:
        return replace(nothing, reason=str(refused))


class _Reducing:
    """Runs of one kernel in one place."""

    def __init__(self, discovery: Discovery, program: BuiltProgram, application: CountedRun, place: Path) -> None:
        self._discovery, self._program, self._application, self._place = discovery, program, application, place
        self._limit_s = time_limit(program, application)
        self._number = 0

    def best(self, share: float, nothing: Reduced) -> Reduced:
        """Reduce all loops that can be; if that predicts wrong numbers, one after the other."""
        if not self._discovery.loops:
            return replace(nothing, reason="no loop does I/O")
        whole = self._run([(file.path, traced(file.marked)) for file in self._discovery.files], _TRACE)
        said = failures(whole, self._limit_s) or differences(self._application, whole)
        if said:
            return replace(nothing, reason=f"the kernel that records its loops does not make the same I/O: {said[0]}")
        chosen, kept = chosen_loops(self._discovery.loops, [one.loops for one in whole.processes], share)
        kept += [(one.loop, f"only {_MOST_TRIED} loops are reduced") for one in chosen[_MOST_TRIED:]]
        return self._tried(chosen[:_MOST_TRIED], _with(nothing, (), kept, whole.wall_s))

    def _tried(self, chosen: list[ReducedLoop], best: Reduced) -> Reduced:
        """All loops reduced together, else as many as predict right numbers, else none."""
        if not chosen:
            return best
        together = self._proven(chosen, best)
        if isinstance(together, Reduced):
            return together
        for one in chosen:
            found = together if len(chosen) == 1 else self._proven([*best.reduction.loops, one], best)
            if isinstance(found, Reduced):
                best = found
            else:
                best = _with(best, best.reduction.loops, [*best.reduction.whole, (one.loop, found)], best.kernel_s)
        return best

    def _proven(self, loops: Sequence[ReducedLoop], before: Reduced) -> Reduced | str:
        """The kernel with these loops reduced, or why it cannot be used."""
        texts = [(file.path, reduced(file.marked, loops)) for file in self._discovery.files]
        try:
            run = self._run(texts, {})
        except KernelRefusedError as refused:
            return str(refused)
        said = failures(run, self._limit_s)
        if said:
            return f"reduced, {said[0]}"
        read = _reread(self._application.processes, run.processes)
        if read:
            return f"it writes {read}, which the program reads too"
        found = predictions(self._application.processes, run.processes, TOLERANCE)
        wrong = [one for one in found if not one.is_good]
        if wrong:
            return f"reduced, it predicts wrong numbers: {wrong[0].text}"
        if not any(process.scaled for process in run.processes):
            return "the library that counts was not told about it"
        files = tuple(replace(file, text=text) for file, (_, text) in zip(self._discovery.files, texts, strict=True))
        discovery = replace(self._discovery, files=files, reduction=replace(before.reduction, loops=tuple(loops)))
        return Reduced(discovery, "", before.kernel_s, run.wall_s, found)

    def _run(self, texts: Sequence[tuple[str, str]], variables: dict[str, str]) -> CountedRun:
        self._number += 1
        folder = self._place / f"kernel-{self._number}"
        files = [replace(file, text=text) for file, (_, text) in zip(self._discovery.files, texts, strict=True)]
        written = write_kernel(replace(self._discovery, files=tuple(files)), folder / "sources")
        kernel = built(written, self._program.build, folder / "program").program
        run_place = self._place / "run"
        run_place.mkdir(exist_ok=True)
        return counted_run(kernel, self._program, self._limit_s, run_place, variables)


def _with(
    reduced: Reduced, loops: Sequence[ReducedLoop], whole: Sequence[tuple[KernelLoop, str]], kernel_s: float | None
) -> Reduced:
    reduction = replace(reduced.reduction, loops=tuple(loops), whole=tuple(whole))
    return replace(reduced, discovery=replace(reduced.discovery, reduction=reduction), kernel_s=kernel_s)


def _reread(application: Sequence[ProcessCounts], reduced: Sequence[ProcessCounts]) -> str:
    """A file that is read, in the highest layer that the application uses, and that a reduced loop had to write whole.

    One process may write what another reads.
    """
    found = [file for process in application for file in own_files(process) if file.counts.bytes]
    layer = next((name for name in LAYERS if any(file.layer == name for file in found)), "")
    readers: dict[str, set[int]] = {}
    for number, process in enumerate(application):
        for file in own_files(process):
            if file.layer == layer and file.counts.read_bytes:
                readers.setdefault(file.path, set()).add(number)
    for number, process in enumerate(reduced):
        for file in own_files(process):
            if file.layer == layer and (
                file.is_reread or (file.is_shortened and readers.get(file.path, set()) - {number})
            ):
                return file.path
    return ""
