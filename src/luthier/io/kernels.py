"""An I/O kernel from the sources of a C program to a folder: found, verified by runs, reduced, written."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from luthier.errors import InvalidInputError
from luthier.io.kernel import Discovery, KernelOptions
from luthier.io.kernel_memory import checked_patterns
from luthier.io.kernel_reduction import Reduced, with_reduced_loops
from luthier.io.kernel_runs import discover_apart, sources_from, sources_of_database, write_kernel
from luthier.io.kernel_verification import (
    NOT_VERIFIED,
    Build,
    BuiltProgram,
    Verification,
    build_from,
    build_of_database,
    run_words,
    verified,
)
from luthier.trial import Json

_USUAL = KernelOptions()


@dataclass(frozen=True, slots=True)
class WrittenKernel:
    """An I/O kernel, what runs said about it, and the files in its folder: none if they showed that its I/O differs."""

    found: Discovery
    verification: Verification
    reduced: Reduced | None
    files: tuple[Path, ...]

    def to_json(self) -> dict[str, Json]:
        """The value as JSON."""
        return {
            "files": [str(path) for path in self.files],
            "kept": self.found.kept,
            "statements": self.found.total,
            "notes": list(self.found.notes),
            "verification": self.verification.plain,
            "reduction": None if self.reduced is None else self.reduced.plain,
        }


def discover(  # noqa: PLR0913 - keywords, as the options of `luthier io discover`
    sources: Sequence[Path],
    output: Path,
    *,
    options: KernelOptions = _USUAL,
    flags: Sequence[str] = (),
    compile_commands: Path | None = None,
    link: str = "",
    runs: Sequence[str] = (),
    folder: Path | None = None,
    in_memory: Sequence[str] = (),
    timeout_s: float = 3600.0,
) -> WrittenKernel:
    """Make an I/O kernel of a C program, and write it with its report to the new folder `output`.

    `flags` are those of the compiler, with its name first unless it is cc; or they are taken from the file
    `compile_commands`, and `link` has the words to link with. With `runs`, commands in which {program} is the path of
    the program, the kernel is verified: each run has a copy of `folder`, and at most `timeout_s`; files that match the
    patterns `in_memory` are kept in memory. `luthier io discover --help` explains more.
    """
    if options.reduce < 1 and not runs:
        raise InvalidInputError("--reduce needs --run: luthier runs the kernel to find the iterations with I/O")
    if compile_commands is not None and flags:
        raise InvalidInputError("--compile-commands cannot be combined with flags after --; leave one out")
    if link and compile_commands is None:
        raise InvalidInputError("--link needs --compile-commands; give the flags after -- instead")
    if output.exists():
        raise InvalidInputError(f"{output}: already exists; remove it or name another with --output")
    kept = checked_patterns(in_memory)
    programs = [BuiltProgram(Build(), run_words(run), folder, timeout_s, kept) for run in runs]
    given = sources_from(sources, flags) if compile_commands is None else sources_of_database(compile_commands, sources)
    found = discover_apart(given, options)
    verdict, reduced = NOT_VERIFIED, None
    if programs:
        paths, words = [file.path for file in found.files], run_words(link, "--link")
        built = build_from(flags) if compile_commands is None else build_of_database(compile_commands, paths, words)
        program = replace(programs[0], build=built)
        verdict = verified(found, program, [other.run for other in programs[1:]])
        if verdict.accepted and options.reduce < 1:
            reduced = with_reduced_loops(found, program, verdict, options.reduce)
            found = reduced.discovery
    lines = (*verdict.lines, *([reduced.text] if reduced is not None else []))
    loops = None if reduced is None else reduced.plain
    files = write_kernel(found, output, lines, loops=loops, is_usable=not programs or verdict.accepted)
    return WrittenKernel(found, verdict, reduced, tuple(files))
