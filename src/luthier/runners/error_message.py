"""The line of a program's error output that tells most about why it failed."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_LONGEST = 200
_LONGEST_READ_BYTES = 64 * 1024
_LONGEST_BANNER_LINES = 100
_ESCAPE_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_RULE = re.compile(r"([-=*#_~+])\1{7,}")
_DETAIL = re.compile(r"[A-Z][\w ]{0,30}: +\S.*")
_SAYS_NOTHING_NEW = re.compile(
    r"returned a non-zero exit code|exited with non-zero status|Exited with exit code|MPI_ABORT was invoked|"
    r"Job step aborted|\*\*\* (JOB|STEP) \S+ ON |^(Try|Type|Run|See|Use) .{0,100}--?h(elp)?\b|^\W+$"
)


def error_message(path: Path) -> str:
    """The last message in a file that says more than that something failed, in one short line; "" if it is empty.

    mpirun frames its messages with lines of dashes: such a frame is one message, and its beginning counts. Reports of
    mpirun and srun that a process ended, and hints at --help, count only where there is nothing else.
    """
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LONGEST_READ_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    last = ""
    for message in _messages(list(map(_printable, _ESCAPE_SEQUENCE.sub("", text).splitlines()))):
        if _SAYS_NOTHING_NEW.search(message) is None:
            return message[:_LONGEST]
        last = last or message
    return last[:_LONGEST]


def _printable(line: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in line).strip()


def _messages(lines: Sequence[str]) -> Iterator[str]:
    """The messages, the last one first."""
    end = len(lines)
    while end > 0:
        end -= 1
        if not lines[end]:
            continue
        if _RULE.fullmatch(lines[end]):
            above = range(end - 1, max(-1, end - _LONGEST_BANNER_LINES), -1)
            start = next((number for number in above if _RULE.fullmatch(lines[number])), end)
            if any(lines[start + 1 : end]):
                yield _beginning(lines[start + 1 : end])
                end = start
                continue
        yield lines[end]


def _beginning(banner: Sequence[str]) -> str:
    """The first sentence of a message of several lines, and details such as `Executable: ./solver` that follow it."""
    first = next(number for number, line in enumerate(banner) if line)
    last = next((number for number in range(first, len(banner)) if not banner[number]), len(banner))
    sentence = re.split(r"(?<=\.) ", " ".join(" ".join(banner[first:last]).split()), maxsplit=1)[0]
    details = [" ".join(line.split()) for line in banner[last:] if _DETAIL.fullmatch(line)]
    return " ".join([sentence, "; ".join(details)]).rstrip()
