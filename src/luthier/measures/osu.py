"""The measure of the OSU micro-benchmarks' tables."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from luthier.errors import InvalidInputError
from luthier.measures.base import MeasureKind
from luthier.measures.output import number_in, quote_last_line, tail
from luthier.trial import Completed, Execution, Failed, Outcome


@dataclass(frozen=True, slots=True)
class OsuLatency:
    """The latencies that an OSU benchmark printed, each times its message size, added up; or that of one `size`.

    These are the numbers that SHAMan's `parse_osu_output` and `parse_osu_output_SIZE` compute from the table. A line
    with a size but without a complete latency makes the run fail. So does a table without `size`.
    """

    size: int | None = None

    @classmethod
    def of_size(cls, text: str) -> "OsuLatency":
        """The latency of one message size, in bytes."""
        if not re.fullmatch("[0-9]{1,18}", text):
            raise InvalidInputError(f"osu:{text}: is not a message size; write a whole number of bytes, as in osu:1024")
        return cls(int(text))

    def __call__(self, execution: Execution) -> Outcome:
        """Return the sum, or the reason why it is missing."""
        if execution.problem is not None:
            return execution.problem
        if execution.logs is None:
            return Failed("osu needs a command's output, and this run has none")
        text = tail(Path(execution.logs) / "stdout")
        products, latencies = [], []
        for line, size, latency in _rows(text):
            if size is None or latency is None:
                return Failed(f"this row of the table has no size and latency that can be read: {line[:80]!r}")
            products.append(size * latency)
            if size == self.size:
                latencies.append(latency)
        if not products:
            return Failed(f"no table of sizes and latencies in its output ({quote_last_line(text)})")
        if self.size is not None:
            return self._of_one_size(latencies)
        total = sum(products)
        if not 0 < total < math.inf:
            return Failed(f"the latencies in its output add up to {total:g}, expected a time above 0")
        return Completed(math.fsum(products))

    def _of_one_size(self, latencies: list[float]) -> Outcome:
        """The first latency of the size, as SHAMan takes it."""
        if not latencies:
            return Failed(f"the table in its output has no message size {self.size}")
        if latencies[0] <= 0:
            return Failed(f"the latency of size {self.size} is {latencies[0]:g}, expected a time above 0")
        return Completed(latencies[0])


def _rows(text: str) -> Iterator[tuple[str, float | None, float | None]]:
    """The lines that begin with a whole number, with that and the number beside it; words may follow it elsewhere."""
    for line in text.splitlines():
        size, latency = (*line.split(maxsplit=2)[:2], "", "")[:2]
        is_size = size.isascii() and size.isdigit()
        if is_size and (not latency or latency[0] in "0123456789.+-" or latency.lower() in ("nan", "inf")):
            yield line, number_in(size), number_in(latency)


OSU = MeasureKind(OsuLatency.of_size, "SIZE")
