"""What commands about one experiment share: its progress and its result on the terminal."""

import sys
from typing import TYPE_CHECKING

from luthier.cli.terminal import print_json, print_view, say

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from luthier.engine.loop import Watcher
    from luthier.launch import Done, Launch


def work_on(launch: "Launch", *, note: str = "", quiet: bool) -> "Done":
    """Run an experiment and what follows it, and show the progress."""
    from luthier.launch import work_through

    if note and not quiet:
        count = len(launch.experiment.first)
        more = f"; {count} configuration{'' if count == 1 else 's'} to try right after it" if count else ""
        say(note + more, sys.stderr)
    return work_through(launch, lambda upcoming: watched(upcoming, quiet=quiet))


def watched(launch: "Launch", *, quiet: bool) -> "AbstractContextManager[Watcher]":
    """What shows the progress of an experiment, and says its notes first."""
    from luthier.cli.progress import progress_view

    for line in () if quiet else launch.notes:
        say(line, sys.stderr)
    return progress_view(f"experiment {launch.record.id}: {launch.record.name}", launch.experiment, quiet=quiet)


def show_result(done: "Done", *, as_json: bool) -> int:
    """Print the result; the exit code is 1 when there is no result, and 130 after an interrupt."""
    from luthier.cli.summary import result_view
    from luthier.launch import told
    from luthier.result.facts import result_json

    more = told(done)
    if as_json:
        print_json(result_json(done.record, done.result) if more is None else dict(more.plain))
    else:
        for line in () if more is None else more.above:
            say(line)
        print_view(result_view(done.record, done.result))
        for line in () if more is None else more.below:
            say(line)
    if done.is_interrupted:
        return 130
    return 1 if done.record.status == "no result" else 0
