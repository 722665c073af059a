"""Proves an I/O kernel right: it is compiled and run beside its application, and the I/O of both is compared."""

import tempfile
from dataclasses import dataclass, fields
from pathlib import Path

from luthier.analysis.io_comparison import MOST, differences, own_files, unordered
from luthier.analysis.text import bytes_text
from luthier.errors import KernelRefusedError
from luthier.iokernel import Discovery
from luthier.launch.io_build import Build, Unit, build_from, build_of_database, built
from luthier.launch.io_kernel import write_kernel
from luthier.launch.io_trial import CountedRun, Program, counted_run, run_words
from luthier.measures.io_counts import LAYERS, total
from luthier.texts import visible
from luthier.trial import Json

__all__ = [
    "Build",
    "CountedRun",
    "Program",
    "Unit",
    "Verification",
    "build_from",
    "build_of_database",
    "built",
    "counted_run",
    "run_words",
    "verified",
]
_SLOWER, _MORE_S = 3.0, 10.0  # a kernel may take this many times as long as its application, and this much more
_HARMLESS = "-Wunused"


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a kernel makes the same I/O as its application; `reasons` tell why not. Times are of the whole runs.

    `operations` and `bytes` are those of the highest layer that the application uses.
    """

    accepted: bool
    reasons: tuple[str, ...] = ()
    application_s: float | None = None
    kernel_s: float | None = None
    operations: int = 0
    bytes: int = 0
    ranks: int = 0
    notes: tuple[str, ...] = ()
    run: CountedRun | None = None
    """What the application did."""

    @property
    def text(self) -> str:
        """The verdict in one line."""
        if not self.accepted or self.application_s is None or self.kernel_s is None:
            more = f" (and {len(self.reasons) - 1} more differences)" if len(self.reasons) > 1 else ""
            return f"not verified: {self.reasons[0] if self.reasons else 'not run'}{more}; use the application"
        size = f"{self.operations} operations, {bytes_text(self.bytes)}, {self._processes}"
        faster = f"{self.application_s / max(self.kernel_s, 1e-9):.1f}x faster"
        times = f"application {self.application_s:.2f} s, kernel {self.kernel_s:.2f} s ({faster})"
        return f"verified: same I/O as the application ({size}); {times}"

    @property
    def _processes(self) -> str:
        is_mpi = self.run is not None and any(process.rank is not None for process in self.run.processes)
        return "1 process" if self.ranks == 1 else f"{self.ranks} {'ranks' if is_mpi else 'processes'}"

    @property
    def plain(self) -> dict[str, Json]:
        """The fields as plain values."""
        return {one.name: _listed(getattr(self, one.name)) for one in fields(self) if one.name != "run"}


def _listed(value: Json) -> Json:
    return list(value) if isinstance(value, tuple) else value


def verified(discovery: Discovery, program: Program) -> Verification:
    """Compile application and kernel, run each once on the same input, and compare their I/O.

    Nothing is accepted that was not proven: any error, warning, crash, hang or difference is a reason against it.
    """
    notes = program.build.notes
    with tempfile.TemporaryDirectory(prefix="luthier-verify-") as temporary:
        place = Path(temporary)
        try:
            application, kernel = _both_built(discovery, program, place)
            ours = _application_run(application, program, place)
            limit_s = time_limit(program, ours)
            theirs = counted_run(kernel, program, limit_s, place)
            reasons = _against(ours, theirs, limit_s)
            if reasons and theirs.exit_code == 0:
                again = _application_run(application, program, place)
                if differences(ours, again):
                    reasons = ("the application's own I/O differs from run to run", *reasons)
        except KernelRefusedError as refused:
            return Verification(accepted=False, reasons=(str(refused),), notes=notes)
    if unordered(ours):
        notes = (*notes, "several threads make I/O: its order was not compared")
    files = [file for process in ours.processes for file in own_files(process)]
    layer = next((name for name in LAYERS if any(file.layer == name and file.counts.bytes for file in files)), "posix")
    counts = total(file.counts for file in files if file.layer == layer)
    size = (counts.operations, counts.bytes, sum(bool(own_files(process)) for process in ours.processes))
    return Verification(not reasons, reasons[:MOST], ours.wall_s, theirs.wall_s, *size, notes, ours)


def time_limit(program: Program, application: CountedRun) -> float:
    """The seconds that a kernel may take."""
    return min(program.timeout_s, application.wall_s * _SLOWER + _MORE_S)


def _both_built(discovery: Discovery, program: Program, place: Path) -> tuple[Path, Path]:
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


def _application_run(application: Path, program: Program, place: Path) -> CountedRun:
    run = counted_run(application, program, None, place)
    if run.exit_code is None:
        raise KernelRefusedError(f"the application runs longer than {program.timeout_s:g} s; allow more with --timeout")
    if run.exit_code != 0:
        said = next(iter(run.errors.strip().splitlines()[-1:]), "it printed nothing")
        raise KernelRefusedError(f"the application ends with exit code {run.exit_code}: {visible(said)[:200]}")
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
        return (f"the kernel ends with exit code {theirs.exit_code}",)
    return ()
