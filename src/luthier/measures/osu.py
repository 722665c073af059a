"""The measure of the OSU micro-benchmarks' tables."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from luthier.measures.output import number_in, quote_last_line, tail
from luthier.trial import Completed, Execution, Failed, Outcome


@dataclass(frozen=True, slots=True)
class OsuLatency:
    """The latencies that an OSU benchmark printed, each times its message size, added up.

    This is the number that SHAMan's `parse_osu_output` makes of the table. With one message size it is proportional to
    the latency. A line that begins with a size and has no complete latency beside it makes the run a failed one.
    """

    def __call__(self, execution: Execution) -> Outcome:
        """Return the sum, or why there is none."""
        if execution.problem is not None:
            return execution.problem
        if execution.logs is None:
            return Failed("osu needs a command's output, and this run has none")
        text = tail(Path(execution.logs) / "stdout")
        products = []
        for line, size, latency in _rows(text):
            if size is None or latency is None:
                return Failed(f"this row of the table has no size and latency that can be read: {line[:80]!r}")
            products.append(size * latency)
        if not products:
            return Failed(f"no table of sizes and latencies in its output ({quote_last_line(text)})")
        total = sum(products)
        if not 0 < total < math.inf:
            return Failed(f"the latencies in its output add up to {total:g}, expected a time above 0")
        return Completed(math.fsum(products))


def _rows(text: str) -> Iterator[tuple[str, float | None, float | None]]:
    """The lines that begin with a whole number, with that and the number beside it; words may follow it elsewhere."""
    for line in text.splitlines():
        size, latency = (*line.split(maxsplit=2)[:2], "", "")[:2]
        is_size = size.isascii() and size.isdigit()
        if is_size and (not latency or latency[0] in "0123456789.+-" or latency.lower() in ("nan", "inf")):
            yield line, number_in(size), number_in(latency)
