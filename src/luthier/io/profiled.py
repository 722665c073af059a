"""Runs a program under the counters of I/O."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from luthier.errors import InvalidInputError, UnavailableError
from luthier.io.counts import read_processes
from luthier.io.instrument import counters
from luthier.io.profile import IoProfile, profile_of
from luthier.measures.instruments import PRELOAD_VARIABLE
from luthier.plugins import instead
from luthier.runners.supervisor import COUNT_VARIABLE, inherited
from luthier.texts import shown

SETTINGS_VARIABLE = "LUTHIER_IO"
SETTINGS = (
    *("alignment_threshold", "alignment", "sieve_buffer", "chunk", "chunk_cache_bytes", "chunk_cache_slots"),
    *("chunk_cache_w0", "metadata_block", "metadata_cache", "fill_time", "alloc_time", "collective_metadata"),
    *("transfer", "cb_nodes", "cb_buffer_size", "romio_ds_read", "romio_ds_write", "romio_cb_read"),
    *("romio_cb_write", "striping_factor", "striping_unit"),
)
"""The settings that the preload library injects into programs with HDF5 or MPI-IO."""


@dataclass(frozen=True, slots=True)
class Profiled:
    """What a program did under the counters; `exit_code` is that of a shell, 128 and more for a signal."""

    exit_code: int
    profile: IoProfile


def settings_from(texts: Sequence[str]) -> str:
    """The value of LUTHIER_IO for `--set name=value`, checked."""
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not value:
            raise InvalidInputError(f"--set {shown(text)}: write NAME=VALUE, for example sieve_buffer=4M")
        if name not in SETTINGS:
            raise InvalidInputError(f"--set {shown(text)}: unknown setting; {instead(name, list(SETTINGS))}")
        if "," in value or not value.isprintable():
            raise InvalidInputError(f"--set {shown(text)}: a value must be printable and without a comma")
    return ",".join(texts)


def profiled(command: Sequence[str], settings: str, folder: Path | None, stdout: TextIO | None = None) -> Profiled:
    """Run a command to its end; its processes write their counters into `folder`, by default a temporary one.

    Ctrl-C goes to the command alone: what it did until then is still counted.
    """
    with _folder(folder) as counts:
        libraries = ":".join(filter(None, [counters(), os.environ.get(PRELOAD_VARIABLE, "")]))
        own = {name: text for name, text in os.environ.items() if name.startswith(SETTINGS_VARIABLE)}
        environment = {**inherited(os.environ), **own, PRELOAD_VARIABLE: libraries, COUNT_VARIABLE: str(counts)}
        if settings:
            environment[SETTINGS_VARIABLE] = settings
        began = time.monotonic()
        exit_code = _run(command, environment, stdout)
        wall_s = time.monotonic() - began
        try:
            processes = read_processes(counts)
        except ValueError as error:
            raise UnavailableError(f"the I/O counters of the program are damaged: {error}; try again") from None
        return Profiled(exit_code, profile_of(processes, wall_s))


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is None:
        with tempfile.TemporaryDirectory(prefix="luthier-io-") as folder:
            yield Path(folder)
        return
    try:
        given.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"--keep {given}: {error.strerror}; choose another folder") from None
    if any(given.glob("*.json")):
        raise InvalidInputError(f"--keep {given}: it contains counters of another run; choose an empty folder")
    yield given.absolute()


def _run(command: Sequence[str], environment: dict[str, str], stdout: TextIO | None) -> int:
    former = signal.getsignal(signal.SIGINT)
    if former != signal.SIG_IGN:  # which the command inherits, as from a shell; a handler it does not
        signal.signal(signal.SIGINT, lambda *_: None)
    try:
        process = subprocess.Popen(command, env=environment, stdout=stdout)
        code = process.wait()
    except FileNotFoundError:
        raise InvalidInputError(f"{command[0]}: no such program; check its name or give its full path") from None
    except OSError as error:
        raise InvalidInputError(f"{command[0]}: cannot be started: {error.strerror}") from None
    finally:
        signal.signal(signal.SIGINT, former)
    return 128 - code if code < 0 else code
