"""Makes an I/O kernel from the sources of a program."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from luthier.errors import InvalidInputError, KernelRefusedError
from luthier.io.kernel.loops import KernelLoop
from luthier.io.kernel.options import KernelOptions
from luthier.io.kernel.reduction import Reduction
from luthier.io.kernel.sources import SourceFile

UNVERIFIED = "not verified: it was not compared with the application; name a run with --run"
"""The verdict on a kernel that was not run; it stands in the texts until another one takes its place."""


@dataclass(frozen=True, slots=True)
class KernelFile:
    """One translation unit: the source, and what is left of it. Texts are Latin-1: one character, one byte."""

    path: str
    source: str
    text: str
    why: tuple[tuple[int, int, str], ...]
    """First line, last line and reason of each kept statement."""
    dropped: tuple[tuple[int, int], ...]
    """First and last line of each statement that is not kept."""
    marked: str = ""
    """The text with marks at the loops in `Discovery.loops`, if loops are to be reduced."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """An I/O kernel with the reasons for what it contains."""

    files: tuple[KernelFile, ...]
    headers: tuple[str, ...]
    """The project's own headers that the files include."""
    starts: tuple[tuple[str, int, str], ...]
    """File, line and reason of each call where the analysis started."""
    notes: tuple[str, ...]
    """What the user should know, such as buffers whose content could not be cut."""
    kept: int
    total: int
    """Statements."""
    loops: tuple[KernelLoop, ...] = ()
    """The loops with I/O, if loops should be reduced."""
    reduction: Reduction | None = None
    """How they were reduced, if they were."""


def discover_io(sources: Sequence[SourceFile], options: KernelOptions | None = None) -> Discovery:
    """The I/O kernel of a program. All its sources must be given.

    Raises KernelRefusedError if the sources cannot be analysed soundly: then the application itself must be used.
    """
    from luthier.io.kernel import parsing

    options = options or KernelOptions()
    if not sources:
        raise InvalidInputError("no sources; name the C files of the program")
    parsing.clang()
    from luthier.io.kernel.building import build

    try:
        return build(sources, options)
    except RecursionError:
        raise KernelRefusedError("the sources are nested too deeply; tune the program itself") from None


def read_bytes(path: str, largest: int) -> bytes:
    """The bytes of a source, at most one more than the limit."""
    if Path(path).exists() and not Path(path).is_file():
        raise InvalidInputError(f"{path}: is not an ordinary file; name C sources, and include only such files")
    try:
        with Path(path).open("rb") as file:
            return file.read(largest + 1)
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read: {os.strerror(error.errno or 0)}") from None
