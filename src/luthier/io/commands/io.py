"""The command that shows the I/O of a program."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from luthier.cli.options import AsJson
from luthier.cli.terminal import cell, print_json, print_view, say, warn
from luthier.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.table import Table

    from luthier.io.counts import Counts
    from luthier.io.profile import IoProfile

BAR_WIDTH = 24
_WIDEST = 8192  # columns: a path that is longer than the terminal is wide is not cut

KERNEL = "I/O kernel"
"""A heading of the help: options that shape an I/O kernel."""

io = typer.Typer(help="Look at the I/O of programs.", no_args_is_help=True, rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    from luthier.io.commands import discover, tune  # noqa: F401  # they add their commands to the group below

    app.add_typer(io, name="io")


@io.command("profile", context_settings={"allow_interspersed_args": False})
def profile_command(
    command: Annotated[list[str] | None, typer.Argument(help="The command to run.", metavar="-- COMMAND")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Inject a setting of HDF5 or MPI-IO, such as sieve_buffer=4M; can be repeated.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    files: Annotated[int, typer.Option("--files", help="How many files to show.", min=0)] = 10,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep", help="Keep the counters of all processes, as JSON files, in this folder.", metavar="DIR"
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Run a program once and show its I/O by layer, file, rank and size, with hints at what to tune.

    The exit code is that of the program. With --json, what the program prints goes to standard error.

    Example: luthier io profile -- mpirun -n 4 ./simulate --steps 10
    """
    from luthier.io.profile import profile_json
    from luthier.io.profiled import profiled, settings_from

    if not command:
        raise InvalidInputError("no command; put it after --, for example: luthier io profile -- ./simulate")
    done = profiled(command, settings_from(settings or []), keep, sys.stderr if as_json else None)
    if as_json:
        print_json({"exit_code": done.exit_code, **profile_json(done.profile)})
    else:
        show_profile(done.profile, files)
    if done.exit_code:
        warn(f"{command[0]}: exit code {done.exit_code}")
    return done.exit_code


def show_profile(profile: "IoProfile", files: int) -> None:
    """Print a profile as tables, the largest first, with hints below."""
    from luthier.io.measures import time_s
    from luthier.io.profile import hints
    from luthier.result.text import seconds_text

    count = len(profile.processes)
    share = 100 * time_s(profile.processes) / profile.wall_s if profile.wall_s else 0.0
    say("")
    took = f"{seconds_text(profile.wall_s)}, {share:.0f} % of it in I/O"
    say(f"I/O of {count} process{'' if count == 1 else 'es'} in {took}")
    if not count:
        say("no I/O was counted: statically linked programs, and programs killed by a signal, may write no counters")
        return
    tables = [_layers(profile)]
    tables += [_sizes(profile)] if profile.own.reads or profile.own.writes else []
    tables += [_files(profile, files)] if profile.files and files else []
    for table in tables:
        say("")
        print_view(table, _WIDEST)
    for line in (*_ranks(profile), *_settings(profile)):
        say(line)
    found = hints(profile)
    if found:
        say("")
        say("hints")
        for hint in found:
            say(f"  - {hint.text}")


def _table(*headings: str) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place == 0 else "right", no_wrap=place > 0)
    return table


def _layers(profile: "IoProfile") -> "Table":
    from luthier.io.counts import LAYER_NAMES

    table = _table("layer", "opens", "reads", "read", "read time", "writes", "written", "write time", "other time")
    for name, counts in profile.layers.items():
        table.add_row(LAYER_NAMES[name], f"{counts.opens:,}", *_both(counts))
    return table


def _both(counts: "Counts") -> Iterator[str]:
    from luthier.result.text import bytes_text, seconds_text

    for number, size_bytes, seconds in (
        (counts.reads, counts.read_bytes, counts.read_s),
        (counts.writes, counts.write_bytes, counts.write_s),
    ):
        yield f"{number:,}"
        yield bytes_text(size_bytes) if number else "-"
        yield seconds_text(seconds) if number else "-"
    yield seconds_text(counts.other_s)


def _sizes(profile: "IoProfile") -> "Table":
    """How many operations of each size reach the file system."""
    from luthier.io.counts import BUCKETS, NO_COUNTS

    counts = profile.layers.get("posix", NO_COUNTS)
    rows = [row for row in zip(BUCKETS, counts.read_sizes, counts.write_sizes, strict=True) if row[1] or row[2]]
    table = _table("size of one POSIX operation", "reads", "writes", "")
    most = max((reads + writes for _, reads, writes in rows), default=1)
    table.columns[-1].justify = "left"
    for name, reads, writes in rows:
        bar = "█" * max(1, round(BAR_WIDTH * (reads + writes) / most))
        table.add_row(name, f"{reads:,}", f"{writes:,}", bar)
    return table


def _files(profile: "IoProfile", count: int) -> "Table":
    from luthier.io.counts import LAYER_NAMES

    with_data = [file for file in profile.files if file.counts.bytes]
    shown = with_data[:count]
    heading = "file" if len(shown) == len(with_data) else f"file (the {len(shown)} largest of {len(with_data):,})"
    table = _table("layer", "reads", "read", "read time", "writes", "written", "write time", "other time")
    table.add_column(heading, no_wrap=True, overflow="ignore")
    for file in shown:
        table.add_row(LAYER_NAMES[file.layer], *_both(file.counts), cell(file.path))
    return table


def _ranks(profile: "IoProfile") -> Iterator[str]:
    from luthier.result.text import bytes_text, seconds_text

    spread = profile.spread
    if spread is None or spread.ranks < 2:
        return
    yield ""
    mean_bytes, most_bytes = bytes_text(spread.mean_bytes), bytes_text(spread.most_bytes)
    mean_s, most_s = seconds_text(spread.mean_s), seconds_text(spread.most_s)
    yield f"bytes of {spread.ranks} ranks:   mean {mean_bytes}, most {most_bytes} (rank {spread.most_bytes_rank})"
    yield f"seconds of {spread.ranks} ranks: mean {mean_s}, most {most_s} (rank {spread.most_s_rank})"


def _settings(profile: "IoProfile") -> Iterator[str]:
    from luthier.io.profile import injected, warnings_of

    found = injected(profile.processes)
    if found.applied or found.without_effect or found.unknown:
        yield ""
        yield f"settings injected: {' '.join(f'{name}={text}' for name, text in found.applied.items()) or 'none'}"
        yield from (f"  without effect: {name}: {why}" for name, why in found.without_effect.items())
        yield from (f"  unknown: {name}" for name in found.unknown)
    told = {f"{name} has no effect: {why}" for name, why in found.without_effect.items()}
    yield from (f"warning: {text}" for text in warnings_of(profile.processes) if text not in told)
