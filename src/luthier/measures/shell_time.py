"""The measure of the elapsed time that the shell's `time` printed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from luthier.measures.output import quote_last_line, tail
from luthier.trial import Completed, Execution, Failed, Outcome

_REAL = re.compile(rb"real[ \t]+(?:([0-9]{1,9})m)?([0-9]{1,9})(?:[.,]([0-9]{1,9}))?s?[ \t\r]*\n?")
_LONGEST_LINE = 100  # bytes; a line of `time` is shorter


@dataclass(frozen=True, slots=True)
class ShellTime:
    """The seconds after the word `real` that `time` printed: `real 0m1.234s` of bash, or `real 1.23` of `time -p`.

    The error output is read, where `time` prints, and if it has no such line, the output. Of several lines the first
    that is above 0 counts, as in SHAMan. A decimal comma is read as a point.
    """

    def __call__(self, execution: Execution) -> Outcome:
        """Return the time, or the reason why it is missing."""
        if execution.problem is not None:
            return execution.problem
        if execution.logs is None:
            return Failed("time needs a command's output, and this run has none")
        paths = [Path(execution.logs) / name for name in ("stderr", "stdout")]
        for path in paths:
            found = next((seconds for seconds in _printed(path) if seconds > 0), None)
            if found is not None:
                return Completed(found)
        ending = quote_last_line(tail(paths[0]) or tail(paths[1]))
        return Failed(f"no line of the shell's time, such as 'real 0m1.234s', in its output ({ending})")


def _printed(path: Path) -> Iterator[float]:
    """The times in a file, in seconds; only the beginning of a long line is examined."""
    try:
        with path.open("rb") as file:
            begins = True
            while piece := file.readline(_LONGEST_LINE):
                match = _REAL.fullmatch(piece) if begins else None
                if match is not None:
                    yield 60 * int(match[1] or 0) + float(match[2] + b"." + (match[3] or b"0"))
                begins = piece.endswith(b"\n")
    except OSError:
        return
