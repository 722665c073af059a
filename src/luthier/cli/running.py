"""An experiment on the terminal: its default, its progress, its result."""

import sys
from typing import TYPE_CHECKING

from luthier.cli.terminal import print_json, print_view, say

if TYPE_CHECKING:
    from luthier.analysis.result import Result
    from luthier.launch.start import Launch
    from luthier.store.base import Record


def work_on(launch: "Launch", *, note: str = "", quiet: bool) -> "tuple[Record, Result]":
    """Work on an experiment to its end and show how it goes, after a note about what it is compared with."""
    from luthier.cli.progress import progress_view

    if note and not quiet:
        count = len(launch.experiment.first)
        more = f"; tried right after it: {count} configuration{'' if count == 1 else 's'}" if count else ""
        say(note + more, sys.stderr)
    title = f"experiment {launch.record.id}: {launch.record.name}"
    with progress_view(title, launch.experiment, quiet=quiet) as view:
        return launch.work(view)


def show_result(record: "Record", result: "Result", *, as_json: bool) -> int:
    """Print the answer; the exit code is 1 when no run gave a number."""
    from luthier.analysis.serial import result_json
    from luthier.cli.summary import result_view

    if as_json:
        print_json(result_json(record, result))
    else:
        print_view(result_view(record, result))
    return 0 if result.winner is not None or record.status != "finished" else 1
