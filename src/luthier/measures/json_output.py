"""Measures of a JSON document that a command printed."""

import json
import math
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from luthier.errors import InvalidInputError
from luthier.measures.base import MeasureKind
from luthier.measures.output import LONGEST_READ_BYTES, number_in, quote_last_line, tail
from luthier.texts import LONGEST_RULE, brackets, shown, visible
from luthier.trial import Completed, Execution, Failed, Json, Outcome

Step: TypeAlias = str | int

_STEP = re.compile(
    r"""
      (?P<dot>\.?) (?P<name>[^.\[\]'"\s]+)                                      # .name, or name at the start
    | \[ (?P<index>-?[0-9]{1,18}) \]                                                 # [0], [-1]
    | \[ (?: '(?P<single>(?:[^'\\]|\\.)*)' | "(?P<double>(?:[^"\\]|\\.)*)" ) \]  # ['any key'], ["any key"]
    """,
    re.VERBOSE | re.DOTALL,
)
_DOCUMENT_START = re.compile(r"^[ \t]*(?=[\[{\]}])", re.MULTILINE)
_LIKE_JSON = re.compile(
    r"""
      \{ \s*+ ["}]
    | \[ \s*+ (?: ["{\[\]] | (?: [-+.0-9eE]++ | true | false | null ) \s*+ [,\]] )  # but not [INFO] or [12:30:01]
    """,
    re.VERBOSE,
)
_REST_OF_LINE = re.compile(r"[ \t\r]*$", re.MULTILINE)


def parse_path(path: str) -> tuple[Step, ...]:
    """Read a path such as `$.results[0].mean`, `results.0.mean` or `$['odd key'][-1]`.

    A subset of JSONPath that names one place: names and indexes, counted from 0 or, when negative, from the end. The
    leading `$`, or `$.`, may be left out. Within quotes a backslash makes the next character literal. There are no
    wildcards, slices, filters or `..`. A number after a point is an index in a list and a key in an object.
    """
    if len(path) > LONGEST_RULE:
        raise InvalidInputError(
            f"json:{path[:60]}...: the path has {len(path)} characters; the limit is {LONGEST_RULE}"
        )
    position = 1 if path.startswith("$") else 0
    first = position
    steps: list[Step] = []
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None or (match["name"] is not None and not match["dot"] and position > 0):
            raise InvalidInputError(
                f"json:{path}: cannot read {path[position:][:20]!r} at position {position}; "
                "write names and indexes like $.results[0].mean, other keys like ['odd key']"
            )
        steps.append(_step(match))
        position = match.end()
    if first == 0 and not steps:
        raise InvalidInputError("json: the path is empty; name a place such as $.results[0].mean, or $ for the whole")
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    if match["index"] is not None:
        return int(match["index"])
    if match["name"] is not None:
        return match["name"]
    quoted = match["single"] if match["single"] is not None else match["double"]
    return re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)


def look_up(document: Json, steps: tuple[Step, ...]) -> Json:
    """Return what is at the end of the steps; a LookupError names the step that is not there."""
    here = document
    for step in steps:
        if isinstance(here, dict) and isinstance(step, str) and step in here:
            here = here[step]
        elif isinstance(here, list) and is_index(step) and -len(here) <= int(step) < len(here):
            here = here[int(step)]
        else:
            raise LookupError(f"{step!r} is not in {_describe(here)}")
    return here


def is_index(step: Step) -> bool:
    """Whether a step of a path can be a position in a list."""
    return isinstance(step, int) or re.fullmatch(r"-?[0-9]{1,18}", step) is not None


def _describe(value: Json) -> str:
    if isinstance(value, dict):
        names = list(value)
        return f"the object with the keys {visible(', '.join(names[:8])[:100])}{', ...' if len(names) > 8 else ''}"
    return f"the list of {len(value)}" if isinstance(value, list) else shown(value)


@dataclass(frozen=True, slots=True)
class Incomplete:
    """A JSON document that is cut off or damaged: nothing inside of it may be taken for a document of its own."""

    problem: str


def documents(text: str, *, is_cut: bool = False) -> Iterator[Json | Incomplete]:
    """Every JSON object or list in the text that begins a line; `is_cut` says that the text's beginning is missing.

    What only looks like JSON, as `[INFO] start` or `[1] 4711` do, is ignored. Up to its last bracket everything belongs
    to a document, also to a damaged one, so each part of the text is read a few times at most.
    """
    position = 0
    while start := _DOCUMENT_START.search(text, position):
        begin, position = start.end(), start.end() + 1
        if text[begin] in "]}":
            if is_cut:
                yield Incomplete("its beginning is not among the last 16 MiB")
        elif _LIKE_JSON.match(text, begin):
            end = _block_end(text, begin)
            if end is None:
                yield Incomplete("it breaks off before its last bracket")
                return
            position = end
            if text[begin] == "{" or _REST_OF_LINE.match(text, end):
                yield _block(text[begin:end])


def _block(text: str) -> Json | Incomplete:
    """The document that a text with matching brackets is, or what is wrong with it."""
    try:
        document: Json = json.loads(text)
    except json.JSONDecodeError as error:
        return Incomplete(f"{error.msg} in its line {error.lineno}")
    except (ValueError, RecursionError):
        return Incomplete("it has a number of too many digits, or is nested too deeply")
    return document


def _block_end(text: str, begin: int) -> int | None:
    """Where the bracket that opens at `begin` closes; None if it does not."""
    depth = 0
    for position, change in brackets(text, begin):
        depth += change
        if depth == 0:
            return position
    return None


def last_document(text: str, *, is_cut: bool = False) -> Json | Incomplete:
    """The text as JSON, or else the last object or list in it, or else its last line; None if nothing is JSON."""
    whole = _as_json(text)
    if whole is not None:
        return whole
    last = deque(documents(text, is_cut=is_cut), maxlen=1)
    return last[0] if last else _as_json("".join(text.strip().splitlines()[-1:]))


def _as_json(text: str) -> Json:
    try:
        document: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document


@dataclass(frozen=True, slots=True)
class JsonPath:
    """The number at a place in the JSON document that a command printed; `parse_path` describes how places are written.

    The output may hold other lines before or after the document; of several documents the last counts. At most the
    last 16 MiB are read. A text that is a number is taken as one; true and false are not.
    """

    path: str
    _steps: tuple[Step, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_steps", parse_path(self.path))

    def __call__(self, execution: Execution) -> Outcome:
        """Return the number found, or the reason why it is missing."""
        if execution.problem is not None:
            return execution.problem
        if execution.logs is None:
            return Failed(f"json:{self.path} needs a command's output, and this run has none")
        output = Path(execution.logs) / "stdout"
        return self.in_text(tail(output), is_cut=_is_longer(output))

    def in_text(self, text: str, *, is_cut: bool = False) -> Outcome:
        """The number in this text, or why it is missing; `is_cut` says that the text's beginning is missing."""
        document = last_document(text, is_cut=is_cut)
        if document is None or isinstance(document, Incomplete):
            problem = "no JSON document"
            if document is not None:
                problem = f"no complete JSON document: {document.problem}"
            return Failed(f"no match for json:{self.path} in its output: {problem} ({quote_last_line(text)})")
        try:
            found = look_up(document, self._steps)
        except LookupError as error:
            return Failed(f"no match for json:{self.path} in its output: {error.args[0]}")
        number = _number(found)
        if number is None:
            return Failed(f"no match for json:{self.path} in its output: {_describe(found)} is not a finite number")
        return Completed(number)


def _is_longer(path: Path) -> bool:
    try:
        return path.stat().st_size > LONGEST_READ_BYTES
    except OSError:
        return False


def _number(found: Json) -> float | None:
    if isinstance(found, str):
        return number_in(found)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    try:
        return float(found) if math.isfinite(found) else None
    except OverflowError:
        return None


JSON = MeasureKind(JsonPath, "PATH")
