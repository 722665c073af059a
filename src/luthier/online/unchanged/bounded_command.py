"""A short command with a time limit, such as the one that makes a program read its configuration again."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from luthier.texts import visible

LONGEST_OUTPUT_BYTES = 1024 * 1024

_LONGEST_QUOTE = 300


@dataclass(frozen=True, slots=True)
class EndedCommand:
    """How a command ended: the end of its standard output, and its problem in one line (None: it succeeded)."""

    output: str
    problem: str | None


def run_bounded(argv: Sequence[str], timeout_s: float) -> EndedCommand:
    """Run a command in a process group of its own; after the time limit the whole group is killed.

    Output goes to files, so a server that the command leaves in the background does not keep this function waiting.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                list(argv), stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True
            )
        except (OSError, ValueError) as error:
            return EndedCommand("", f"{argv[0]}: {getattr(error, 'strerror', None) or error}")
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return EndedCommand(_tail(output.fileno()), f"{argv[0]} took longer than {timeout_s:g} s")
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        text = _tail(output.fileno())
        if code == 0:
            return EndedCommand(text, None)
        said = " ".join((_tail(errors.fileno()).strip() or text.strip()).split())[-_LONGEST_QUOTE:]
        return EndedCommand(text, f"{argv[0]} ended with exit code {code}" + (f": {visible(said)}" if said else ""))


def _tail(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    start = max(0, size - LONGEST_OUTPUT_BYTES)
    return os.pread(descriptor, LONGEST_OUTPUT_BYTES, start).decode(errors="replace")
