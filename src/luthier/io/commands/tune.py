"""The command that tunes the I/O of a C program from its sources."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from luthier.cli.options import AsJson, Quiet, StoreUrl
from luthier.cli.setting_options import Given, read_settings, with_settings
from luthier.cli.terminal import say
from luthier.cli.words import WORDS, WithWords
from luthier.errors import InvalidInputError
from luthier.io.commands.io import KERNEL, io
from luthier.spec.signatures import COMMON

if TYPE_CHECKING:
    from luthier.io.kernel_verification import BuiltProgram

STEPS = ("kernel", "impact-first", "stop", "verify")
"""The steps that can be left out; `--reduce` and `--in-memory` are left out by default."""


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
    from luthier.io.commands.pipeline import search_and_compare
    from luthier.io.kernel import KernelOptions
    from luthier.io.kernel.options import share_from
    from luthier.io.kernel_memory import checked_patterns, in_memory
    from luthier.io.tuning import Tuning, component_named, prepare

    left_out = _left_out(without or [])
    values = read_settings(settings or {})
    if not component:
        raise InvalidInputError("--component is required: what to tune, e.g. examples/components/hdf5-serial.yaml")
    described = component_named(component, store)
    program = _program(context.meta.get(WORDS, []), build, values)
    options = KernelOptions(buffer_content=buffers, reduce=share_from(reduce, "--reduce"))
    if options.reduce < 1 and "kernel" in left_out:
        raise InvalidInputError("--reduce shortens loops of the kernel; leave out --without kernel, or --reduce")
    if options.reduce < 1 or memory:
        _check_measures(values, "--reduce" if options.reduce < 1 else "--in-memory")
    values, pairs = _with_steps(values, left_out)
    program = replace(program, in_memory=checked_patterns(memory or ()))
    prepared = prepare(sources or [], program, output, None if "kernel" in left_out else options)
    if not quiet:
        say(prepared.sentence, sys.stderr)
        if program.in_memory:
            say("the search keeps files in memory; the comparison at the end does not", sys.stderr)
    tuning = Tuning(prepared, program.run, described, store)
    with in_memory(program.in_memory) as kept:
        return search_and_compare(tuning.search(values, pairs, kept), store, quiet=quiet, as_json=as_json)


def _left_out(given: list[str]) -> set[str]:
    """The steps that are left out; several may be separated by commas."""
    words = {word.strip() for text in given for word in text.split(",")}
    if unknown := sorted(words - set(STEPS)):
        raise InvalidInputError(f"--without {unknown[0]}: unknown step; choose from {', '.join(STEPS)}")
    return words


def _with_steps(values: dict[str, Any], left_out: set[str]) -> tuple[dict[str, Any], int | None]:
    """The settings of the search with the steps that are not left out, and the pairs of runs of the comparison."""
    from luthier.io.tuning import MEASURE
    from luthier.spec.objectives import Objective

    objectives = values.get("objectives", (Objective.parse(MEASURE),))
    if len(objectives) > 1:
        raise InvalidInputError("luthier io tune needs a single measure, since it compares two configurations")
    given = {"impact-first": "impact_first", "stop": "stop", "verify": "verify_pairs"}
    for step in left_out & set(given):
        if values.get(given[step]):
            raise InvalidInputError(f"--without {step} and --{step} exclude each other; give one of them")
    values = dict(values)
    if "impact-first" not in left_out:
        values.setdefault("impact_first", "auto")
    if "stop" not in left_out and not objectives[0].is_amount:
        values.setdefault("stop", ("learned",))
    pairs: int | None = values.pop("verify_pairs", None)
    return values, 0 if "verify" in left_out else pairs


def _check_measures(values: dict[str, Any], option: str) -> None:
    """Only the library that counts I/O multiplies counters of loops that are left early, and keeps files in memory."""
    from luthier.io.measures import PREFIX

    for objective in values.get("objectives", ()):
        if not objective.measure.startswith(PREFIX):
            raise InvalidInputError(
                f"{option} cannot be used with the measure {objective.measure}; choose a measure {PREFIX}*, "
                f"or leave out {option}"
            )


def _program(run: list[str], build: str, values: dict[str, Any]) -> "BuiltProgram":
    """How to build and run the program; the settings keep only what an experiment uses."""
    from luthier.io.kernel_verification import BuiltProgram, build_from

    if not run:
        raise InvalidInputError("no command; put it after --, e.g. luthier io tune sim.c ... -- {program} 1000")
    try:
        words = shlex.split(build)
    except ValueError as error:
        raise InvalidInputError(f"--build: {error}; correct the quotes") from None
    folder = values.pop("cwd", None)
    how = BuiltProgram(build_from(words), tuple(run), None if folder is None else Path(folder))
    return how if values.get("timeout_s") is None else replace(how, timeout_s=values["timeout_s"])
