"""What commands about one experiment share: its progress and its result on the terminal."""

import sys
from typing import TYPE_CHECKING

from luthier.cli.terminal import print_json, print_view, say

if TYPE_CHECKING:
    from luthier.launch import Launch
    from luthier.result.result import Result
    from luthier.store.base import Record


def work_on(launch: "Launch", *, note: str = "", quiet: bool) -> "tuple[Record, Result, bool]":
    """Run an experiment and show its progress; the last value tells if it was interrupted."""
    from luthier.cli.progress import progress_view
    from luthier.engine.interrupts import Interrupts
    from luthier.store.base import ENDED

    if note and not quiet:
        count = len(launch.experiment.first)
        more = f"; {count} configuration{'' if count == 1 else 's'} to try right after it" if count else ""
        say(note + more, sys.stderr)
        for line in launch.notes:
            say(line, sys.stderr)
    title = f"experiment {launch.record.id}: {launch.record.name}"
    interrupts = Interrupts()
    with progress_view(title, launch.experiment, quiet=quiet) as view:
        record, result = launch.work(view, interrupts)
    return record, result, interrupts.count > 0 and record.status not in ENDED


def show_result(record: "Record", result: "Result", interrupted: bool, *, as_json: bool) -> int:
    """Print the result; the exit code is 1 when there is no result, and 130 after an interrupt."""
    from luthier.cli.summary import result_view
    from luthier.result.serial import result_json

    if as_json:
        print_json(result_json(record, result))
    else:
        print_view(result_view(record, result))
    if interrupted:
        return 130
    return 1 if record.status == "no result" else 0
