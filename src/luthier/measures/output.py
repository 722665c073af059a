"""Measures of what a command printed, found with a regular expression; how measures read output."""

import math
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from luthier.errors import InvalidInputError
from luthier.measures.base import MeasureKind
from luthier.texts import LONGEST_RULE, NUMBER, shown, visible
from luthier.trial import Completed, Execution, Failed, Outcome

if TYPE_CHECKING:
    import regex

LONGEST_READ_BYTES = 16 * 1024 * 1024
LONGEST_SEARCH_S = 30.0
"""How long a pattern may search the output of one run."""

_LONGEST_QUOTE = 120
_LONGEST_NUMBER = 500
_AROUND = 60  # characters before and after a number that are examined
_LARGEST_REPETITION = 100_000  # a pattern's memory grows with it
_NUMBER = re.compile(NUMBER)
_REPETITION = re.compile(r"\{([0-9]*)(?:,([0-9]*))?\}")
# What people and programs write as one number, separators of thousands and hexadecimal digits included. A sign belongs
# to it unless it follows a word or a number, as in 3-5.
_WRITTEN = (
    r"(?:(?<![\w.)\]+-])[-+])?(?:0[xX][0-9a-fA-F]+"
    r"|(?:[0-9]+|(?<![\w.])\.[0-9]+)(?:[{separators}][0-9]+)*(?:[eE][-+]?[0-9]+)?)"
)
_WITH_COMMAS = re.compile(_WRITTEN.replace("{separators}", ".,_'"))
_WITHOUT_COMMAS = re.compile(_WRITTEN.replace("{separators}", "._'"))
_REAL = re.compile(rb"real[ \t]+(?:([0-9]{1,9})m)?([0-9]{1,9})(?:[.,]([0-9]{1,9}))?s?[ \t\r]*\n?")
_LONGEST_LINE = 100  # bytes; a line of `time` is shorter


def tail(path: Path, longest_bytes: int = LONGEST_READ_BYTES) -> str:
    """The end of a file as text, from the start of a line on if it had to be cut; "" if there is no such file."""
    try:
        with path.open("rb") as file:
            size_bytes = file.seek(0, os.SEEK_END)
            file.seek(max(0, size_bytes - longest_bytes))
            content = file.read(longest_bytes)
    except OSError:
        return ""
    if size_bytes > longest_bytes:
        content = content.partition(b"\n")[2] or content
    return content.decode(errors="replace")


def number_in(text: str) -> float | None:
    """The finite number that `text` is: digits, a point, an exponent; no separators of thousands, no NaN."""
    written = text.strip()
    if len(written) > _LONGEST_NUMBER or _NUMBER.fullmatch(written) is None:
        return None
    number = float(written)
    return number if abs(number) != float("inf") else None


def quote_last_line(text: str) -> str:
    """How the output ended, short enough for a message."""
    lines = text.strip().splitlines()
    if not lines:
        return "it printed nothing"
    printable = "".join(sign if sign.isprintable() else " " for sign in lines[-1]).strip()
    return f"last line: {printable[:_LONGEST_QUOTE]!r}"


def whole_number(text: str, start: int, end: int, *, commas: bool = True) -> str:
    """The number in the text from `start` to `end`, with the digits and signs around it that belong to it."""
    first = max(0, start - _AROUND)
    for match in (_WITH_COMMAS if commas else _WITHOUT_COMMAS).finditer(text[first : end + _AROUND]):
        begins, ends = match.start() + first, match.end() + first
        if begins < end and ends > start and (begins < start or ends > end):
            return match[0]
    return text[start:end]


@dataclass(frozen=True, slots=True)
class Regex:
    """The number that the last match of a pattern holds, in the output or, without a match there, in the error output.

    The number is the pattern's one group, or the whole match. `^` and `$` match at every line. At most the last 16 MiB
    are read, for at most 30 seconds. A group that holds only a part of a number fails: a comma counts as a part of it
    unless the pattern itself has one right before or after the group.
    """

    pattern: str
    _compiled: "regex.Pattern[str]" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        compiled = _compiled(self.pattern)
        if not self.pattern or compiled.groups > 1:
            came = f"it has {compiled.groups} groups" if self.pattern else "it is empty"
            raise InvalidInputError(
                f"regex:{self.pattern}: {came}; enclose the number, and only it, in (...), others in (?:...)"
            )
        object.__setattr__(self, "_compiled", compiled)

    def __call__(self, execution: Execution) -> Outcome:
        """Return the number found, or the reason why it is missing."""
        if execution.problem is not None:
            return execution.problem
        if execution.logs is None:
            return Failed(f"regex:{self.pattern} needs a command's output, and this run has none")
        texts = [tail(Path(execution.logs) / name) for name in ("stdout", "stderr")]
        for text in texts:
            if (outcome := self.last(text)) is not None:
                return outcome
        return Failed(f"no match for regex:{self.pattern} in its output ({quote_last_line(texts[0] or texts[1])})")

    def last(self, text: str) -> Outcome | None:
        """The number of the last match, or why it is not valid; None without a match."""
        found = None
        try:
            for found in self._matches(text):  # noqa: B007 - the last one counts
                pass
        except TimeoutError:
            return self._too_slow()
        return None if found is None else self._outcome(text, *found)

    def every(self, text: str) -> list[Outcome]:
        """The number of each match, or why it is not valid."""
        try:
            return [self._outcome(text, *found) for found in self._matches(text)]
        except TimeoutError:
            return [self._too_slow()]

    def _too_slow(self) -> Failed:
        return Failed(
            f"regex:{self.pattern} took longer than {LONGEST_SEARCH_S:g} s on this output; "
            "avoid repetitions within repetitions, such as (a+)+"
        )

    def _outcome(self, text: str, start: int, end: int) -> Outcome:
        found = text[start:end]
        number = number_in(found)
        if number is None:
            quoted = visible(found[:_LONGEST_QUOTE])
            return Failed(f"{quoted!r}, found by regex:{self.pattern}, is not a finite number")
        start += len(found) - len(found.lstrip())
        end -= len(found) - len(found.rstrip())
        whole = whole_number(text, start, end, commas=")," not in self.pattern and ",(" not in self.pattern)
        if whole != text[start:end]:
            return Failed(
                f"regex:{self.pattern} takes {shown(text[start:end])} out of {shown(whole)}; "
                r"let the group hold the whole number, for example (\S+)"
            )
        return Completed(number)

    def _matches(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the number of each match is."""
        deadline = time.monotonic() + LONGEST_SEARCH_S
        # With `concurrent` the search releases the interpreter lock, so that other threads continue.
        for match in self._compiled.finditer(text, concurrent=True, timeout=LONGEST_SEARCH_S):
            yield match.span(self._compiled.groups)
            if time.monotonic() > deadline:
                raise TimeoutError


def _compiled(pattern: str) -> "regex.Pattern[str]":
    """The pattern, ready for use; Python's own `re` must accept it as well."""
    import regex

    counts = (int(count[:9]) for pair in _REPETITION.findall(pattern) for count in pair if count.strip("0"))
    if len(pattern) > LONGEST_RULE or math.prod(counts) > _LARGEST_REPETITION:
        raise InvalidInputError(f"regex:{pattern[:60]}: the pattern is too large; make it shorter, or repeat less")
    try:
        re.compile(pattern, re.MULTILINE)
        return regex.compile(pattern, regex.MULTILINE)
    except re.error as error:
        where = "" if error.pos is None else f" at position {error.pos}"
        raise InvalidInputError(f"regex:{pattern}: {error.msg}{where}; correct the pattern") from error
    except regex.error as error:
        raise InvalidInputError(f"regex:{pattern}: {error}; correct the pattern") from error
    except (RecursionError, OverflowError, MemoryError) as error:
        raise InvalidInputError(f"regex:{pattern[:60]}...: the pattern is too large; make it smaller") from error


REGEX = MeasureKind(Regex, "PATTERN")


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
