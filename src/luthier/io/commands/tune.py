"""The command that tunes the I/O of a C program from its sources."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from luthier.cli.options import AsJson, Quiet, StoreUrl
from luthier.cli.setting_options import Given, read_settings, with_settings
from luthier.cli.terminal import say
from luthier.cli.words import WORDS, WithWords
from luthier.errors import InvalidInputError
from luthier.io.commands.io import KERNEL, io
from luthier.spec.signatures import COMMON


@io.command("tune", cls=WithWords)
@with_settings
def tune_command(
    context: typer.Context,
    sources: Annotated[
        list[Path] | None, typer.Argument(help="All C sources of the program.", metavar="SRC...")
    ] = None,
    component: Annotated[
        str,
        typer.Option(
            "--component",
            help="What to tune: a registered component, or a file.",
            metavar="NAME|FILE",
            rich_help_panel=COMMON,
        ),
    ] = "",
    build: Annotated[
        str,
        typer.Option(
            "--build",
            help="The compiler with its flags, e.g. 'h5cc -shlib -O2 -lm'.",
            metavar="WORDS",
            rich_help_panel=COMMON,
        ),
    ] = "cc",
    buffers: Annotated[
        str,
        typer.Option(
            "--buffers",
            help="cut: leave out the computing of data that is written; or keep.",
            metavar="keep|cut",
            rich_help_panel=KERNEL,
        ),
    ] = "cut",
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            help="Leave a step out: kernel (search on the program itself), impact-first (tune all parameters all the "
            "time), stop (use the whole budget), verify (no comparison on the program); can be repeated.",
            metavar="STEP",
            rich_help_panel=KERNEL,
        ),
    ] = None,
    reduce: Annotated[
        str,
        typer.Option(
            "--reduce",
            help="Loops of the kernel do only this share of their iterations with I/O.",
            metavar="SHARE",
            rich_help_panel=KERNEL,
        ),
    ] = "100%",
    memory: Annotated[
        list[str] | None,
        typer.Option(
            "--in-memory",
            help="Keep files with these names in memory, except in the comparison at the end, e.g. '*.h5'; can be "
            "repeated.",
            metavar="PATTERN",
            rich_help_panel=KERNEL,
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            help="A new folder for programs and runs, on the file system to tune.",
            metavar="DIR",
            rich_help_panel=COMMON,
        ),
    ] = Path("io-tuning"),
    settings: Given = None,
    store: StoreUrl = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> int:
    """Tune the I/O of a C program: search on its I/O kernel, then compare the best configuration on the program.

    After -- comes the command that runs it, with {program} in place of its path. Every run starts in a new copy of
    --folder (default: an empty folder). A kernel that is not proven to make the same I/O is not used. The parameters
    with the largest effect are tuned first, and the search stops when it no longer pays for --production-runs.

    Example: luthier io tune sim.c --component hdf5.yaml --build 'h5cc -O2' --production-runs 500 -- {program} 1000
    """
    from luthier.cli.running import show_result, watched
    from luthier.io import tune
    from luthier.io.kernel.options import share_from

    values = read_settings(settings or {})
    if not component:
        raise InvalidInputError("--component is required: what to tune, e.g. examples/components/hdf5-serial.yaml")
    folder, objectives = values.pop("cwd", None), values.pop("objectives", None)
    done = tune(
        sources or [],
        context.meta.get(WORDS, []),
        component=component,
        build=build,
        folder=None if folder is None else Path(folder),
        output=output,
        measures=objectives,
        buffers=buffers,
        reduce=share_from(reduce, "--reduce"),
        in_memory=memory or (),
        without={word.strip() for text in without or () for word in text.split(",")},
        store=store,
        say=lambda line: None if quiet else say(line, sys.stderr),
        view=lambda launch: watched(launch, quiet=quiet),
        **values,
    )
    return show_result(done, as_json=as_json)
