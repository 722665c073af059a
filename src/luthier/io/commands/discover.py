"""The command that makes an I/O kernel out of a C program."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from luthier.cli.options import AsJson
from luthier.cli.terminal import print_json, say, warn
from luthier.cli.words import WORDS, WithWords
from luthier.io.commands.io import KERNEL, io
from luthier.spec.signatures import COMMON

if TYPE_CHECKING:
    from luthier.io.kernels import WrittenKernel

_CALLS, _COMPILER, _RUNS = "Functions that do I/O", "Compiler", "Verifying runs"
"""Headings of the help."""


@io.command("discover", cls=WithWords)
def discover_command(
    context: typer.Context,
    sources: Annotated[
        list[Path] | None, typer.Argument(help="All C sources of the program.", metavar="SRC...")
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The folder to write the kernel and its report to.",
            metavar="DIR",
            rich_help_panel=COMMON,
        ),
    ] = Path("io-kernel"),
    buffers: Annotated[
        str,
        typer.Option(
            "--buffers",
            help="cut: leave out the computing of data that is written; or keep.",
            metavar="keep|cut",
            rich_help_panel=KERNEL,
        ),
    ] = "keep",
    database: Annotated[
        Path | None,
        typer.Option(
            "--compile-commands",
            help="Take flags from a compile_commands.json.",
            metavar="FILE",
            rich_help_panel=_COMPILER,
        ),
    ] = None,
    families: Annotated[
        list[str] | None,
        typer.Option(
            "--family",
            help="Calls to start from: hdf5, mpi-io, posix; can be repeated.",
            rich_help_panel=_CALLS,
        ),
    ] = None,
    io_calls: Annotated[
        list[str] | None,
        typer.Option(
            "--io",
            help="Functions that do I/O too, such as 'nc_*'; can be repeated.",
            metavar="PATTERN",
            rich_help_panel=_CALLS,
        ),
    ] = None,
    compute_calls: Annotated[
        list[str] | None,
        typer.Option(
            "--compute",
            help="Functions outside the sources that do no I/O, such as 'fftw_*'; can be repeated.",
            metavar="PATTERN",
            rich_help_panel=_CALLS,
        ),
    ] = None,
    failures: Annotated[
        str,
        typer.Option(
            "--failures",
            help="drop: leave out checks that end the program after an error; or keep.",
            metavar="keep|drop",
            rich_help_panel=KERNEL,
        ),
    ] = "keep",
    reduce: Annotated[
        str,
        typer.Option(
            "--reduce",
            help="Loops do only this share of their iterations with I/O; needs --run.",
            metavar="SHARE",
            rich_help_panel=KERNEL,
        ),
    ] = "100%",
    runs: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            help="Verify the kernel with this command, in which {program} is the path. Can be repeated.",
            metavar="COMMAND",
            rich_help_panel=COMMON,
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            help="A folder with input files; each run gets a copy.",
            metavar="DIR",
            rich_help_panel=COMMON,
        ),
    ] = None,
    in_memory: Annotated[
        list[str] | None,
        typer.Option(
            "--in-memory",
            help="Keep files with these names in memory, e.g. '*.h5'; can be repeated.",
            metavar="PATTERN",
            rich_help_panel=_RUNS,
        ),
    ] = None,
    timeout_s: Annotated[
        float,
        typer.Option(
            "--timeout",
            help="The longest time for one run, in seconds.",
            metavar="S",
            rich_help_panel=_RUNS,
        ),
    ] = 3600.0,
    link: Annotated[
        str,
        typer.Option(
            "--link",
            help="With --compile-commands: compiler and flags to link with.",
            metavar="WORDS",
            rich_help_panel=_COMPILER,
        ),
    ] = "",
    as_json: AsJson = False,
) -> int:
    """Make an I/O kernel: the C program with only its I/O and what that needs.

    After -- come the flags of the compiler, with its name first unless it is cc. With --run the kernel is compiled and
    run beside the program, and is only written if it makes the same I/O for all inputs; without, it is not verified.

    Example: luthier io discover main.c output.c --buffers cut --run 'mpirun -n 2 {program}' -- mpicc -Iinclude -lm
    """
    from luthier.io import discover
    from luthier.io.kernel import KernelOptions
    from luthier.io.kernel.options import FAMILIES, share_from

    calls = (tuple(families or FAMILIES), tuple(io_calls or ()), tuple(compute_calls or ()))
    kernel = discover(
        sources or [],
        output,
        options=KernelOptions(buffers, *calls, failures, share_from(reduce, "--reduce")),
        flags=context.meta.get(WORDS, []),
        compile_commands=database,
        link=link,
        runs=runs or (),
        folder=folder,
        in_memory=in_memory or (),
        timeout_s=timeout_s,
    )
    if as_json:
        print_json(kernel.to_json())
    else:
        _show(kernel, output)
    return 0 if kernel.files else 2


def _show(kernel: "WrittenKernel", output: Path) -> None:
    from luthier.io.kernel.report import all_notes

    found, verdict = kernel.found, kernel.verification
    say(f"{found.kept} of {found.total} statements kept for {len(found.starts)} I/O calls")
    for note in (*all_notes(found), *verdict.notes):
        say(f"note: {note}")
    for path in kernel.files:
        say(f"wrote {path}")
    if not kernel.files:
        warn(verdict.text)
        say(f"No kernel was written. All differences are in {output / 'report.txt'}.")
        return
    say(verdict.text)
    if kernel.reduced is not None:
        say(kernel.reduced.text)
    say(f"The reasons are in {output / 'report.html'}. Compile the kernel with the flags of the program.")
