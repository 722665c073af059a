"""The only place that prints.

Names from users and output of programs may contain escape sequences; a terminal shows them and never executes them.
"""

import json
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from luthier.texts import is_argument, visible, visible_json, visible_lines

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text


def say(line: str, stream: TextIO | None = None) -> None:
    """Print one line, to standard output unless a stream is given."""
    print(visible(line), file=stream or sys.stdout, flush=True)


def say_lines(text: str) -> None:
    """Print several lines to standard output."""
    print(visible_lines(text), flush=True)


def warn(line: str) -> None:
    """Print one line with the prefix `luthier:` to standard error."""
    say(f"luthier: {line}", sys.stderr)


def print_view(what: "RenderableType", width: int | None = None) -> None:
    """Print a table or a group of lines; texts from users or programs must be in it as `cell`.

    By default it is fitted to the width of the terminal.
    """
    from rich.console import Console

    Console(highlight=False, markup=False, soft_wrap=not sys.stdout.isatty(), width=width).print(what, crop=False)


def cell(text: str, style: str = "") -> "Text":
    """A text within a table or group."""
    from rich.text import Text

    return Text(visible(text), style=style)


def print_data(text: str) -> None:
    """Print a script or a file: unchanged into a pipe or a file, with visible control characters on a terminal."""
    if sys.stdout.isatty() or not is_argument(text):
        print(visible_lines(text), end="")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(os.fsencode(text))
    sys.stdout.buffer.flush()


def print_json(value: object, indent: int | None = 1) -> None:
    """Print a value as JSON, with unprintable characters escaped."""
    print(visible_json(json.dumps(value, indent=indent, ensure_ascii=False)))


def prepare_streams() -> None:
    """Escape what the terminal cannot encode, so that no text can make a command fail; set up logging.

    A stream that the caller has closed becomes one that ignores everything.
    """
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 open until the end
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 the same
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    handler = logging.StreamHandler()
    handler.setFormatter(_VisibleFormatter("luthier: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


class _VisibleFormatter(logging.Formatter):
    """Log lines with visible control characters."""

    def format(self, record: logging.LogRecord) -> str:
        """The text of a record."""
        return visible_lines(super().format(record))
