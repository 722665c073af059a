"""Runs a compiled program in a new folder, with its I/O counted and its time limited."""

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO

from luthier.errors import InvalidInputError, UnavailableError
from luthier.io.counts import ProcessCounts, read_processes
from luthier.io.instrument import counters
from luthier.io.kernel_build import Build
from luthier.io.kernel_comparison import relative
from luthier.io.kernel_memory import in_memory, with_memory
from luthier.measures.instruments import PRELOAD_VARIABLE
from luthier.runners.supervisor import COUNT_VARIABLE, inherited
from luthier.texts import shown

WORD = "{program}"
"""This text in a run command is replaced by the path of the program."""
NOTHING: Mapping[str, str] = MappingProxyType({})
_GRACE_S = 3.0  # mpirun ends its ranks at SIGTERM
_PAUSE_S = 0.02
_KILLS = 50
_LINES, _LONGEST_LINE = 5, 400  # of what the program printed as errors


@dataclass(frozen=True, slots=True)
class BuiltProgram:
    """How a program is built and run: `run` has a word with {program}, each run has a new copy of `folder`.

    Files that match the patterns `in_memory` are kept in memory, and removed after the run.
    """

    build: Build
    run: tuple[str, ...] = (WORD,)
    folder: Path | None = None
    timeout_s: float = 3600.0
    in_memory: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not any(WORD in word for word in self.run):
            raise InvalidInputError(f"--run {shown(shlex.join(self.run))}: write {WORD} where the program belongs")
        if not self.timeout_s > 0:
            raise InvalidInputError(f"--timeout {self.timeout_s:g}: must be above 0")


@dataclass(frozen=True, slots=True)
class CountedRun:
    """What a program did; `exit_code` is that of a shell, None if the time limit was exceeded.

    `errors` are the last lines of its standard error. `files` are the sizes of the files left in the run folder, and of
    those elsewhere that the program wrote to. Paths in the run folder are relative, here and in `processes`.
    """

    exit_code: int | None
    processes: tuple[ProcessCounts, ...]
    wall_s: float
    files: dict[str, int]
    errors: str = ""


def run_words(text: str, option: str = "--run") -> tuple[str, ...]:
    """The words of a command, as a shell would split them."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise InvalidInputError(f"{option} {shown(text)}: {error}; correct the quotes") from None


def counted_run(
    program: Path,
    how: BuiltProgram,
    timeout_s: float | None = None,
    place: Path | None = None,
    variables: Mapping[str, str] = NOTHING,
) -> CountedRun:
    """Run a program once, at most for `timeout_s` (default: that of `how`); what it leaves in its folder is removed.

    `variables` are added to its environment. Two runs with the same `place`, an existing folder, have the same paths:
    some programs write them into files.
    """
    with _temporary(place) as base, in_memory(how.in_memory) as memory:
        copy, folder, counts = base / "program", base / "run", base / "counts"
        try:
            shutil.copy2(program, copy)
            _fill(folder, how.folder)
            words = [word.replace(WORD, str(copy)) for word in how.run]
            kept = {} if memory is None else memory.variables(folder)
            began = time.monotonic()
            limit_s = how.timeout_s if timeout_s is None else timeout_s
            code, errors = _run(words, folder, {**variables, **kept, COUNT_VARIABLE: str(counts)}, limit_s)
            wall_s = time.monotonic() - began
            processes = _processes(counts, folder)
            sizes = with_memory(_sizes(folder, processes), memory, folder)
            return CountedRun(code, processes, wall_s, sizes, errors)
        finally:
            for path in (folder, counts):
                shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _temporary(place: Path | None) -> Iterator[Path]:
    if place is not None:
        yield place.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="luthier-run-") as folder:
        yield Path(folder).resolve()


def _fill(folder: Path, source: Path | None) -> None:
    """Make the run folder. Links are followed, so that a program cannot write through them to the user's files."""
    if source is None:
        folder.mkdir()
        return
    if not source.is_dir():
        raise InvalidInputError(f"--folder {source}: is not a folder")
    try:
        shutil.copytree(source, folder, ignore_dangling_symlinks=True)
    except (OSError, shutil.Error) as error:
        first = error.args[0][0] if isinstance(error, shutil.Error) else error
        raise InvalidInputError(f"--folder {source}: cannot be copied: {str(first)[:200]}") from None


def _run(words: list[str], folder: Path, variables: Mapping[str, str], timeout_s: float) -> tuple[int | None, str]:
    libraries = ":".join(filter(None, [counters(), os.environ.get(PRELOAD_VARIABLE, "")]))
    environment = {**inherited(os.environ), PRELOAD_VARIABLE: libraries, **variables}
    try:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise InvalidInputError(f"--run {shown(words[0])}: cannot be started: {error.strerror}") from None
    said: deque[bytes] = deque(maxlen=_LINES)
    reader = threading.Thread(target=_read, args=(process.stderr, said), daemon=True)
    reader.start()
    try:
        code: int | None = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        _end(process)
    reader.join(_GRACE_S)
    last = b"".join(list(said)).decode("utf-8", "replace")
    return (128 - code if code is not None and code < 0 else code), last


def _read(stream: IO[bytes] | None, lines: deque[bytes]) -> None:
    """Read all errors, so that the program never waits; a file for them would be counted as I/O of the program."""
    if stream is not None:
        with stream:
            while line := stream.readline(_LONGEST_LINE):
                lines.append(line)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End all processes of a session: mpirun gives each rank a process group of its own."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
    for _ in range(_KILLS):
        members = _session(process.pid)
        for member in members:
            with suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        if not members:
            break
        process.poll()
        time.sleep(_PAUSE_S)
    process.wait()


def _session(leader: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != b"Z":
            found.append(int(path.parent.name))
    return found


def _processes(counts: Path, folder: Path) -> tuple[ProcessCounts, ...]:
    try:
        return tuple(relative(process, str(folder)) for process in read_processes(counts))
    except ValueError as error:
        raise UnavailableError(f"the I/O counters of the program are damaged: {error}; try again") from None


def _sizes(folder: Path, processes: tuple[ProcessCounts, ...]) -> dict[str, int]:
    found = {
        str(path.relative_to(folder)): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }
    for file in (file for process in processes for file in process.files):
        path = Path(file.path)
        if path.is_absolute() and not file.is_system and file.counts.writes and path.is_file():
            found[file.path] = path.stat().st_size
    return found
