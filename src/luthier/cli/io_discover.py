"""The command that makes an I/O kernel out of a C program."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from luthier.cli.io import io
from luthier.cli.options import AsJson
from luthier.cli.terminal import print_json, say
from luthier.errors import InvalidInputError

WORDS = "luthier.words"


class WithWords(TyperCommand):
    """A command whose words after -- are kept apart from its arguments."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[WORDS] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


@io.command("discover", cls=WithWords)
def discover_command(
    context: typer.Context,
    sources: Annotated[
        list[Path] | None, typer.Argument(help="All C sources of the program.", metavar="SRC...")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write the kernel and its report to.", metavar="DIR")
    ] = Path("io-kernel"),
    buffers: Annotated[
        str,
        typer.Option("--buffers", help="cut: what is written to files is not computed; or keep.", metavar="keep|cut"),
    ] = "keep",
    database: Annotated[
        Path | None,
        typer.Option("--compile-commands", help="Take flags from a compile_commands.json.", metavar="FILE"),
    ] = None,
    families: Annotated[
        list[str] | None, typer.Option("--family", help="Calls to start from: hdf5, mpi-io, posix; can be repeated.")
    ] = None,
    io_calls: Annotated[
        list[str] | None,
        typer.Option("--io", help="Functions that do I/O too, such as 'nc_*'; can be repeated.", metavar="PATTERN"),
    ] = None,
    compute_calls: Annotated[
        list[str] | None,
        typer.Option(
            "--compute",
            help="Functions outside the sources that do no I/O, such as 'fftw_*'; can be repeated.",
            metavar="PATTERN",
        ),
    ] = None,
    failures: Annotated[
        str,
        typer.Option(
            "--failures", help="drop: abort and exit after an error need not happen; or keep.", metavar="keep|drop"
        ),
    ] = "keep",
    as_json: AsJson = False,
) -> None:
    """Make an I/O kernel: the C program with only its I/O and what that needs.

    After -- come the flags of the compiler, with its name first unless it is cc.

    Example: luthier io discover main.c output.c --buffers cut -- mpicc -Iinclude -DNDEBUG
    """
    from luthier.iokernel import Options
    from luthier.iokernel.options import FAMILIES
    from luthier.launch.io_kernel import discover_apart, sources_from, sources_of_database, write_kernel

    flags: list[str] = context.meta.get(WORDS, [])
    options = Options(buffers, tuple(families or FAMILIES), tuple(io_calls or ()), tuple(compute_calls or ()), failures)
    if database is not None and flags:
        raise InvalidInputError("--compile-commands cannot be combined with flags after --; leave one out")
    if output.exists():
        raise InvalidInputError(f"{output}: exists already; remove it or name another with --output")
    files = sources_from(sources or [], flags) if database is None else sources_of_database(database, sources or [])
    found = discover_apart(files, options)
    written = write_kernel(found, output)
    if as_json:
        names = [str(path) for path in written]
        print_json({"files": names, "kept": found.kept, "statements": found.total, "notes": list(found.notes)})
        return
    say(f"{found.kept} of {found.total} statements kept for {len(found.starts)} I/O calls")
    for note in found.notes:
        say(f"note: {note}")
    for path in written:
        say(f"wrote {path}")
    say(f"The reasons are in {output / 'report.html'}. Compile the kernel with the flags of the program.")
