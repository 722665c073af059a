"""Proves an I/O kernel right: it is compiled and run beside its application, and the I/O of both is compared."""

import re
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from luthier.errors import KernelRefusedError
from luthier.io.counts import LAYERS, total
from luthier.io.kernel import Discovery
from luthier.io.kernel.discovery import UNVERIFIED
from luthier.io.kernel_build import Build, Unit, build_from, build_of_database, built
from luthier.io.kernel_comparison import MOST, differences, own_files, unordered
from luthier.io.kernel_runs import write_kernel
from luthier.io.kernel_trial import WORD, BuiltProgram, CountedRun, counted_run, run_words
from luthier.result.text import bytes_text
from luthier.texts import visible
from luthier.trial import Json

__all__ = [
    "NOT_VERIFIED",
    "Build",
    "BuiltProgram",
    "CountedRun",
    "Unit",
    "Verification",
    "build_from",
    "build_of_database",
    "built",
    "counted_run",
    "on_other_ranks",
    "run_words",
    "verified",
]
_SLOWER, _MORE_S = 3.0, 10.0  # a kernel may take this many times as long as its application, and this much more
_LAUNCHER = re.compile(r"(?:mpirun|mpiexec|orterun|srun)(?:[.-][\w.]+)?\Z")
_RANKS = frozenset(["-n", "-np", "--n", "--np"])
_UNSTEADY = "the application's own I/O differs from run to run"
_HARMLESS = "-Wunused"


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a kernel makes the same I/O as its application; `reasons` tell why not. Times are of the whole runs.

    `inputs` are the run commands for which both were compared. Operations, bytes (of the highest layer that the
    application uses), times and `run` are those of the first.
    """

    accepted: bool
    reasons: tuple[str, ...] = ()
    application_s: float | None = None
    kernel_s: float | None = None
    operations: int = 0
    bytes: int = 0
    ranks: int = 0
    notes: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    run: CountedRun | None = None
    """What the application did."""

    @property
    def text(self) -> str:
        """The verdict in one line."""
        if not self.accepted or self.application_s is None or self.kernel_s is None:
            more = f" (and {len(self.reasons) - 1} more differences)" if len(self.reasons) > 1 else ""
            return f"not verified: {self.reasons[0]}{more}; tune the program itself" if self.reasons else UNVERIFIED
        size = f"{self.operations} operations, {bytes_text(self.bytes)}, {self._processes}"
        faster = f"{self.application_s / max(self.kernel_s, 1e-9):.1f}x faster"
        times = f"application {self.application_s:.2f} s, kernel {self.kernel_s:.2f} s ({faster})"
        count = "one input" if len(self.inputs) == 1 else f"{len(self.inputs)} inputs"
        return f"verified on {count}: same I/O as the application ({size}); {times}"

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdict with all differences and notes."""
        return (self.text, *self.reasons, *self.notes)

    @property
    def _processes(self) -> str:
        is_mpi = self.run is not None and any(process.rank is not None for process in self.run.processes)
        return "1 process" if self.ranks == 1 else f"{self.ranks} {'ranks' if is_mpi else 'processes'}"

    @property
    def plain(self) -> dict[str, Json]:
        """The fields as plain values."""
        plain = {one.name: _listed(getattr(self, one.name)) for one in fields(self) if one.name != "run"}
        return {**plain, "text": self.text}


NOT_VERIFIED = Verification(accepted=False)
"""The verdict on a kernel that was not run."""


def _listed(value: Json) -> Json:
    return list(value) if isinstance(value, tuple) else value


def verified(discovery: Discovery, program: BuiltProgram, others: Sequence[Sequence[str]] = ()) -> Verification:
    """Compile application and kernel, run both on the same inputs, and compare their I/O.

    Nothing is accepted that was not proven: any error, warning, crash, hang or difference is a reason against it.
    `others` are further run commands. Without them a program of several ranks is run on another number of ranks too,
    if the application itself can do that.
    """
    with tempfile.TemporaryDirectory(prefix="luthier-verify-") as temporary:
        place = Path(temporary)
        try:
            binaries = _both_built(discovery, program, place)
            found = _compared(*binaries, program, place)
        except KernelRefusedError as refused:
            return Verification(accepted=False, reasons=(str(refused),), notes=program.build.notes)
        named = [run for run in dict.fromkeys(map(tuple, others)) if run != program.run]  # the same input counts once
        for run in named:
            found = _with_second(found, binaries, replace(program, run=run), place, is_named=True)
        made = on_other_ranks(program.run) if not named else None
        if made is not None and found.run is not None:
            second = replace(program, run=made, timeout_s=time_limit(program, found.run))
            found = _with_second(found, binaries, second, place, is_named=False)
    return found


def _compared(application: Path, kernel: Path, program: BuiltProgram, place: Path) -> Verification:
    """Compare both on one input."""
    ours = _application_run(application, program, place)
    limit_s = time_limit(program, ours)
    theirs = counted_run(kernel, program, limit_s, place)
    reasons = _against(ours, theirs, limit_s)
    if reasons and theirs.exit_code == 0:
        again = _application_run(application, program, place)
        if differences(ours, again):
            reasons = (_UNSTEADY, *reasons)
    threads = ("several threads make I/O: its order was not compared",) if unordered(ours) else ()
    files = [file for process in ours.processes for file in own_files(process)]
    layer = next((name for name in LAYERS if any(file.layer == name and file.counts.bytes for file in files)), "posix")
    counts = total(file.counts for file in files if file.layer == layer)
    size = (counts.operations, counts.bytes, sum(bool(own_files(process)) for process in ours.processes))
    notes = (*program.build.notes, *threads)
    return Verification(not reasons, reasons[:MOST], ours.wall_s, theirs.wall_s, *size, notes, (_named(program),), ours)


def _with_second(
    first: Verification, binaries: tuple[Path, Path], program: BuiltProgram, place: Path, *, is_named: bool
) -> Verification:
    """The verdict with one more input. An input that luthier made counts only if the application can run on it."""
    if not first.accepted:
        return first
    command = _named(program)
    try:
        second = _compared(*binaries, program, place)
    except KernelRefusedError as refused:
        if is_named:
            return replace(first, accepted=False, reasons=(f"with {visible(command)}: {refused}",))
        return replace(first, notes=(*first.notes, f"not compared with {visible(command)}: {refused}"))
    is_unsteady = not second.accepted and second.reasons[0].startswith(_UNSTEADY)
    if is_unsteady and not is_named:
        return replace(first, notes=(*first.notes, f"not compared with {visible(command)}: {second.reasons[0]}"))
    made = () if is_named else (f"also compared with {visible(command)}, made by luthier",)
    return replace(
        first,
        accepted=second.accepted,
        reasons=tuple(f"with {visible(command)}: {reason}" for reason in second.reasons),
        notes=tuple(dict.fromkeys([*first.notes, *second.notes, *made])),
        inputs=(*first.inputs, command),
    )


def _named(program: BuiltProgram) -> str:
    return shlex.join(program.run).replace(f"'{WORD}'", WORD)


def on_other_ranks(run: Sequence[str]) -> tuple[str, ...] | None:
    """The run command with half as many ranks, or two in place of one; None if it does not name their number."""
    if not _LAUNCHER.match(Path(run[0]).name):
        return None
    before = next((at for at, word in enumerate(run) if WORD in word), len(run))
    places = [at for at in range(1, before) if run[at - 1] in _RANKS and run[at].isdecimal()]
    if len(places) != 1 or int(run[places[0]]) == 0:
        return None
    ranks = int(run[places[0]])
    if ranks == 1 and Path(run[0]).name == "srun":
        return None  # it would wait for a second processor
    return (*run[: places[0]], str(ranks // 2 or 2), *run[places[0] + 1 :])


def time_limit(program: BuiltProgram, application: CountedRun) -> float:
    """The seconds that a kernel may take."""
    return min(program.timeout_s, application.wall_s * _SLOWER + _MORE_S)


def _both_built(discovery: Discovery, program: BuiltProgram, place: Path) -> tuple[Path, Path]:
    sources = [Path(file.path) for file in discovery.files]
    try:
        application = built(sources, program.build, place / "application" / "program")
    except KernelRefusedError as refused:
        raise KernelRefusedError(f"the application does not compile: {refused}") from None
    written = write_kernel(discovery, place / "kernel" / "sources")
    try:
        kernel = built(written, program.build, place / "kernel" / "program")
    except KernelRefusedError as refused:
        raise KernelRefusedError(f"the kernel does not compile: {refused}") from None
    new = sorted(name for name in kernel.warnings - application.warnings if not name.startswith(_HARMLESS))
    if new:
        raise KernelRefusedError(f"the compiler warns about the kernel only: {', '.join(new)}")
    return application.program, kernel.program


def _application_run(application: Path, program: BuiltProgram, place: Path) -> CountedRun:
    run = counted_run(application, program, None, place)
    if run.exit_code is None:
        raise KernelRefusedError(f"the application runs longer than {program.timeout_s:g} s; allow more with --timeout")
    if run.exit_code != 0:
        said = next(iter(run.errors.strip().splitlines()[-1:]), "it printed nothing")
        raise KernelRefusedError(f"the application ended with exit code {run.exit_code}: {visible(said)[:200]}")
    if not any(own_files(process) for process in run.processes):
        raise KernelRefusedError("no I/O of the application was counted; it must be linked dynamically")
    return run


def _against(ours: CountedRun, theirs: CountedRun, limit_s: float) -> tuple[str, ...]:
    return failures(theirs, limit_s) or differences(ours, theirs)


def failures(theirs: CountedRun, limit_s: float) -> tuple[str, ...]:
    """Why a run of a kernel has failed; nothing if it has not."""
    if theirs.exit_code is None:
        return (f"the kernel runs longer than {limit_s:.0f} s",)
    if theirs.exit_code > 128:
        return (f"the kernel crashes with signal {theirs.exit_code - 128}",)
    if theirs.exit_code != 0:
        return (f"the kernel ended with exit code {theirs.exit_code}",)
    return ()
