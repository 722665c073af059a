"""Where macros are used in the text of a file."""

from bisect import bisect_right
from collections.abc import Iterable


class Macros:
    """The ranges of macro invocations that are not inside another one."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self._ranges: list[tuple[int, int]] = []
        for start, end in sorted(ranges, key=lambda pair: (pair[0], -pair[1])):
            if not self._ranges or start >= self._ranges[-1][1]:
                self._ranges.append((start, end))

    def at(self, offset: int) -> tuple[int, int] | None:
        """The invocation around an offset."""
        index = bisect_right(self._ranges, (offset, 1 << 62)) - 1
        if index >= 0 and self._ranges[index][0] <= offset < self._ranges[index][1]:
            return self._ranges[index]
        return None

    def end(self, offset: int) -> int:
        """The end of the invocation around an offset, or the offset."""
        found = self.at(offset)
        return offset if found is None else found[1]
