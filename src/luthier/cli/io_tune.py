"""The command that tunes the I/O of a C program from its sources."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from luthier.cli.io import io
from luthier.cli.options import AsJson, Quiet, StoreUrl
from luthier.cli.running import work_on
from luthier.cli.settings import Given, read_settings, with_settings
from luthier.cli.terminal import print_json, print_view, say
from luthier.cli.words import WORDS, WithWords
from luthier.errors import InvalidInputError

if TYPE_CHECKING:
    from luthier.analysis.result import Result
    from luthier.launch.io_tuning import Prepared
    from luthier.launch.io_verification import Program
    from luthier.store.base import Record


@io.command("tune", cls=WithWords)
@with_settings
def tune_command(
    context: typer.Context,
    sources: Annotated[
        list[Path] | None, typer.Argument(help="All C sources of the program.", metavar="SRC...")
    ] = None,
    component: Annotated[
        str,
        typer.Option("--component", help="What to tune: a registered component, or a file.", metavar="NAME|FILE"),
    ] = "",
    build: Annotated[
        str, typer.Option("--build", help="The compiler with its flags, e.g. 'h5cc -shlib -O2 -lm'.", metavar="WORDS")
    ] = "cc",
    buffers: Annotated[
        str,
        typer.Option("--buffers", help="keep: the kernel computes what it writes; or cut.", metavar="keep|cut"),
    ] = "cut",
    use_kernel: Annotated[
        bool, typer.Option("--kernel/--no-kernel", help="Search on a verified I/O kernel, or on the program itself.")
    ] = True,
    reduce: Annotated[
        str,
        typer.Option("--reduce", help="Loops of the kernel do this share of their executions of I/O.", metavar="SHARE"),
    ] = "100%",
    memory: Annotated[
        list[str] | None,
        typer.Option(
            "--in-memory",
            help="Keep such files in memory, except in the comparison at the end, e.g. '*.h5'; can be repeated.",
            metavar="PATTERN",
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", help="A new folder for programs and runs; its file system is the tuned one.", metavar="DIR"
        ),
    ] = Path("io-tuning"),
    settings: Given = None,
    store: StoreUrl = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> int:
    """Tune the I/O of a C program: search on its I/O kernel, then verify the best configuration on the program.

    After -- comes the command that runs it, with {program} in place of its path. Every run starts in a new copy of
    --folder (default: an empty folder). A kernel that is not proven to make the same I/O is not used.

    Example: luthier io tune sim.c --component hdf5.yaml --build 'h5cc -O2' -n 40 -- {program} 1000
    """
    from luthier.iokernel import Options
    from luthier.iokernel.options import share_from
    from luthier.launch.io_memory import checked_patterns, in_memory
    from luthier.launch.io_tuning import Tuning, component_named, prepare

    values = read_settings(settings or {})
    if not component:
        raise InvalidInputError("--component is required: what to tune, e.g. examples/components/hdf5-serial.yaml")
    described = component_named(component, store)
    program = _program(context.meta.get(WORDS, []), build, values)
    options = Options(buffer_content=buffers, reduce=share_from(reduce, "--reduce"))
    if options.reduce < 1 or memory:
        _check_measures(values, "--reduce" if options.reduce < 1 else "--in-memory")
    program = replace(program, in_memory=checked_patterns(memory or ()))
    prepared = prepare(sources or [], program, output, options if use_kernel else None)
    if not quiet:
        say(prepared.sentence, sys.stderr)
        if program.in_memory:
            say("the search keeps files in memory; the comparison at the end does not", sys.stderr)
    tuning = Tuning(prepared, program.run, described, store)
    with in_memory(program.in_memory) as kept:
        record, result, interrupted = work_on(tuning.search(values, kept), quiet=quiet)
    verification = None
    if not interrupted and result.winner is not None and result.winner.config != result.experiment.space.default:
        verification = work_on(tuning.verification(result, values.get("verify_pairs")), quiet=quiet)
    return _tell(prepared, (record, result), verification, as_json=as_json, interrupted=interrupted)


def _check_measures(values: dict[str, Any], option: str) -> None:
    """Only the library that counts I/O multiplies counters of loops that are left early, and keeps files in memory."""
    from luthier.measures.io_measures import PREFIX

    for objective in values.get("objectives", ()):
        if not objective.measure.startswith(PREFIX):
            raise InvalidInputError(
                f"{option} does not go with the measure {objective.measure}; choose a measure {PREFIX}*, "
                f"or leave out {option}"
            )


def _program(run: list[str], build: str, values: dict[str, Any]) -> "Program":
    """How to build and run the program; the settings keep only what an experiment uses."""
    from luthier.launch.io_verification import Program, build_from

    if not run:
        raise InvalidInputError("no command; put it after --, e.g. luthier io tune sim.c ... -- {program} 1000")
    try:
        words = shlex.split(build)
    except ValueError as error:
        raise InvalidInputError(f"--build: {error}; correct the quotes") from None
    folder = values.pop("cwd", None)
    how = Program(build_from(words), tuple(run), None if folder is None else Path(folder))
    return how if values.get("timeout_s") is None else replace(how, timeout_s=values["timeout_s"])


def _tell(
    prepared: "Prepared",
    search: "tuple[Record, Result]",
    verification: "tuple[Record, Result, bool] | None",
    *,
    as_json: bool,
    interrupted: bool,
) -> int:
    """Print both results; the exit code is that of `luthier tune`."""
    from luthier.analysis.serial import result_json
    from luthier.cli.summary import result_view

    last = search if verification is None else verification[:2]
    if as_json:
        verified = None if verification is None else result_json(*verification[:2])
        print_json({"kernel": prepared.to_json(), "search": result_json(*search), "verification": verified})
    elif verification is None:
        print_view(result_view(*search))
        if search[1].winner is not None and not interrupted:
            say("nothing to verify on the application: no configuration was better than the default")
    else:
        say(prepared.sentence)
        say(_found(*search))
        say(f"experiment {last[0].id} compared both on the application:")
        print_view(result_view(*last))
    if interrupted or (verification is not None and verification[2]):
        return 130
    return 1 if last[0].status == "no result" else 0


def _found(record: "Record", result: "Result") -> str:
    """The search in one line: its values are of the kernel, and not verified."""
    from luthier.analysis.sentences import runs_text
    from luthier.analysis.text import duration_text, estimate_text

    measure = result.experiment.objective.measure
    trials = [trial for trial in (result.default, result.winner) if trial is not None]
    values = [estimate_text(trial.estimate, measure) for trial in trials]
    spent = f"{runs_text(result)}, {duration_text(result.cost_s)} of run time"
    return f"experiment {record.id}, the search: {' -> '.join(values)} ({spent})"
