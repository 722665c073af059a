"""`luthier tune --online`: reads its options, tunes the program, and prints the result."""

import sys
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table

from luthier.cli.arguments import default_note, space_from
from luthier.cli.setting_options import read_settings
from luthier.cli.terminal import cell, print_json, print_view, say
from luthier.cli.tune_modes import TuneRequest
from luthier.online import tune
from luthier.online.unchanged.program_result import ProgramResult
from luthier.texts import check_name

if TYPE_CHECKING:
    from luthier.online.commands.tune_options import OnlineChoices


def tune_online(chosen: "OnlineChoices", asked: TuneRequest) -> int:
    """Tune a running program; the exit code is 130 if it was stopped at once."""
    name = check_name(asked.name, "--name")
    space = space_from(asked.parameters, asked.constraints)
    waiting = [] if asked.quiet else [default_note(asked.parameters, space)]

    def tell(line: str) -> None:
        while waiting:
            say(waiting.pop(), sys.stderr)
        say(line, sys.stderr)

    done = tune(
        space,
        read=chosen.read,
        write=chosen.write or (),
        reload=chosen.reload,
        signal=chosen.signal,
        pid_file=chosen.pid_file,
        command=asked.command,
        statistic=chosen.statistic or "mean",
        rate=chosen.rate,
        every=chosen.every or "5s",
        settle=chosen.settle,
        guard=2.0 if chosen.guard is None else chosen.guard,
        keep_watching=chosen.keep_watching,
        goal="maximize" if asked.maximize else "minimize",
        shell=asked.shell,
        name=name,
        store=asked.store,
        say=tell if waiting and waiting[0] else None,
        **read_settings(asked.settings),
    )
    show(done.result, done.name, as_json=asked.as_json)
    return 130 if done.was_cut_short else 0


def show(result: ProgramResult, name: str, *, as_json: bool) -> None:
    """Print the result."""
    if as_json:
        print_json({"name": name, **result.to_json()})
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("", "value", "configuration"):
        table.add_column(cell(heading))
    for row in result.rows():
        table.add_row(*map(cell, row))
    place = "the best configuration is in place" if result.improved else "what was there before is in place"
    lines: list[RenderableType] = [table, cell(result.verdict, style="bold")]
    lines += [cell(f"{result.windows} windows; the search ended: {result.ending}")]
    lines += [cell(result.troubles.sentence)] if result.troubles.sentence else []
    lines += [cell(place)]
    print_view(Group(*lines))
