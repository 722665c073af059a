"""Measures of what a command printed, found with a regular expression; how measures read output."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from luthier.errors import InvalidInputError
from luthier.trial import Completed, Execution, Failed, Outcome

LONGEST_READ_BYTES = 16 * 1024 * 1024
_LONGEST_QUOTE = 120
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


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
    if _NUMBER.fullmatch(text.strip()) is None:
        return None
    number = float(text)
    return number if abs(number) != float("inf") else None


def quote_last_line(text: str) -> str:
    """How the output ended, short enough for a message."""
    lines = text.strip().splitlines()
    if not lines:
        return "it printed nothing"
    printable = "".join(sign if sign.isprintable() else " " for sign in lines[-1]).strip()
    return f"last line: {printable[:_LONGEST_QUOTE]!r}"


@dataclass(frozen=True, slots=True)
class Regex:
    """The number that the last match of a pattern holds, in the output or, without a match there, in the error output.

    The number is the pattern's one group, or the whole match. `^` and `$` match at every line. At most the last 16 MiB
    are read. A pattern that backtracks without end cannot be interrupted: avoid nested repetitions such as `(a+)+`.
    """

    pattern: str
    _compiled: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            compiled = re.compile(self.pattern, re.MULTILINE)
        except re.error as error:
            where = "" if error.pos is None else f" at position {error.pos}"
            raise InvalidInputError(f"regex:{self.pattern}: {error.msg}{where}; correct the pattern") from error
        except (RecursionError, OverflowError) as error:
            raise InvalidInputError(f"regex:{self.pattern[:60]}...: too large a pattern; make it smaller") from error
        if not self.pattern or compiled.groups > 1:
            came = f"it has {compiled.groups} groups" if self.pattern else "it is empty"
            raise InvalidInputError(
                f"regex:{self.pattern}: {came}; enclose the number, and only it, in (...), others in (?:...)"
            )
        object.__setattr__(self, "_compiled", compiled)

    def __call__(self, execution: Execution) -> Outcome:
        """Return the number found, or why there is none."""
        if execution.problem is not None:
            return execution.problem
        if execution.logs is None:
            return Failed(f"regex:{self.pattern} needs a command's output, and this run has none")
        texts = [tail(Path(execution.logs) / name) for name in ("stdout", "stderr")]
        for text in texts:
            found = self._last_match(text)
            if found is not None:
                number = number_in(found)
                if number is None:
                    return Failed(f"{found[:_LONGEST_QUOTE]!r}, found by regex:{self.pattern}, is not a finite number")
                return Completed(number)
        return Failed(f"no match for regex:{self.pattern} in its output ({quote_last_line(texts[0] or texts[1])})")

    def _last_match(self, text: str) -> str | None:
        found = None
        for match in self._compiled.finditer(text):
            found = match
        if found is None:
            return None
        return found.group(self._compiled.groups) or ""
