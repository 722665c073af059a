"""The measure of the OSU micro-benchmarks' tables."""

import math
import re
from dataclasses import dataclass
from pathlib import Path

from luthier.measures.output import quote_last_line, tail
from luthier.trial import Completed, Execution, Failed, Outcome

_ROW = re.compile(r"^\s*(\d+)[ \t]+(\d+(?:\.\d*)?)(?=\s|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class OsuLatency:
    """The latencies that an OSU benchmark printed, each times its message size, added up.

    This is the number that SHAMan's `parse_osu_output` makes of the table. With one message size it is proportional to
    the latency.
    """

    def __call__(self, execution: Execution) -> Outcome:
        """Return the sum, or why there is none."""
        if execution.problem is not None:
            return execution.problem
        if execution.logs is None:
            return Failed("osu needs a command's output, and this run has none")
        text = tail(Path(execution.logs) / "stdout")
        rows = _ROW.findall(text)
        if not rows:
            return Failed(f"no table of sizes and latencies in its output ({quote_last_line(text)})")
        total = sum(float(size) * float(latency) for size, latency in rows)
        if not 0 < total < math.inf:
            return Failed(f"the latencies in its output add up to {total:g}, expected a time above 0")
        return Completed(total)
