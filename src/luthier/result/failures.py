"""Why runs gave no number: the reasons with their counts, and the output of the first run that failed."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from luthier.errors import NotFoundError
from luthier.result.text import outcome_text
from luthier.runners.output_files import end_of_file
from luthier.texts import visible_lines
from luthier.trial import Completed, Failed, Run

MOST_LINES = 20
"""How many lines of each output stream are shown."""

_MOST_BYTES = 4000
_MOST_REASONS = 10
_FEW_REASONS = 3
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for runs without a number, how many there are, and the first of them; None for the sum of rare ones."""

    text: str
    runs: int
    first: Run | None


@dataclass(frozen=True, slots=True)
class FirstOutput:
    """The end of what the first failing run wrote, without unprintable characters."""

    run: Run
    stdout: str
    stderr: str


def reasons_of(runs: Sequence[Run]) -> list[Reason]:
    """The reasons of all runs that ended without a number, most common first.

    Messages of programs that differ only in numbers count as one reason, with the text of the first.
    """
    problems = _problems(runs)
    counted = Counter(_kind(run) for run in problems)
    first = {_kind(run): run for run in reversed(problems)}
    found = [
        Reason(outcome_text(first[kind].outcome), count, first[kind])
        for kind, count in counted.most_common(_MOST_REASONS)
    ]
    if others := len(problems) - sum(reason.runs for reason in found):
        found.append(Reason("other reasons", others, None))
    return found


def reasons_text(runs: Sequence[Run]) -> str:
    """The most common reasons with their counts, in one line."""
    found = reasons_of(runs)
    if len(found) == 1:
        return found[0].text
    said = [f"{reason.text} ({reason.runs} run{'' if reason.runs == 1 else 's'})" for reason in found[:_FEW_REASONS]]
    others = sum(reason.runs for reason in found[_FEW_REASONS:])
    return "; ".join([*said, *([f"other reasons ({others} runs)"] if others else [])])


def first_output(runs: Sequence[Run]) -> FirstOutput | None:
    """The output of the first run that failed, or of the first that ended in another way without a number."""
    problems = [run for run in _problems(runs) if run.logs is not None]
    run = next((run for run in problems if isinstance(run.outcome, Failed)), problems[0] if problems else None)
    if run is None or run.logs is None:
        return None
    return FirstOutput(run, *(_last_lines(Path(run.logs) / stream) for stream in ("stdout", "stderr")))


def _problems(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.outcome is not None and not isinstance(run.outcome, Completed)]


def _kind(run: Run) -> str:
    """The outcome, and what the program wrote without its numbers: `failed: exit code 2: no file in.#`."""
    *said, message = outcome_text(run.outcome).split(": ", 2)
    return ": ".join([*said, _DIGITS.sub("#", message) if len(said) == 2 else message])


def _last_lines(path: Path) -> str:
    try:
        text = end_of_file(path, _MOST_BYTES).decode("utf-8", "replace")
    except NotFoundError:
        return ""
    return visible_lines("\n".join(text.replace("\r\n", "\n").rstrip().split("\n")[-MOST_LINES:]))
