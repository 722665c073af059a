"""Keeps files of a run in memory: the preload library redirects their paths into a folder on a memory file system."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from luthier.errors import InvalidInputError, UnavailableError
from luthier.texts import shown

PLACE = Path("/dev/shm")  # noqa: S108  # Linux's memory file system; a folder with a random name is made in it
_LARGEST_SHARE = 2  # of what is free there: one half
_SMALLEST_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class MemoryFolder:
    """A folder in memory, for the files that match patterns; relative patterns are those of paths in the run folder."""

    folder: Path
    patterns: tuple[str, ...]
    limit_bytes: int

    def variables(self, run: Path) -> dict[str, str]:
        """The environment of a run in this folder."""
        if ":" in str(run):
            raise InvalidInputError(f"{run}: files in memory need a folder without a colon in its path; choose another")
        start = "".join(f"[{sign}]" if sign in "[]*?\\" else sign for sign in str(run))
        whole = [pattern if pattern.startswith("/") else f"{start}/{pattern}" for pattern in self.patterns]
        return {
            "LUTHIER_IO_MEMORY": ":".join(whole),
            "LUTHIER_IO_MEMORY_FOLDER": str(self.folder),
            "LUTHIER_IO_MEMORY_LIMIT": str(self.limit_bytes),
        }

    def sizes(self, run: Path) -> dict[str, int | None]:
        """The files that a run has left in memory, by their paths in the run folder; None for those it has removed."""
        removed = self.folder / ".removed" / str(run).lstrip("/")
        found: dict[str, int | None] = {
            str(path.relative_to(removed)).removesuffix("~"): None for path in removed.rglob("*~") if path.is_file()
        }
        copies = self.folder / str(run).lstrip("/")
        for path in copies.rglob("*"):
            if path.is_file() and not path.is_symlink():
                found[str(path.relative_to(copies))] = path.stat().st_size
        return found


def checked_patterns(patterns: Sequence[str], option: str = "--in-memory") -> tuple[str, ...]:
    """Patterns of paths that can be passed on."""
    for pattern in patterns:
        if not pattern.strip() or ":" in pattern or not pattern.isprintable():
            raise InvalidInputError(
                f"{option} {shown(pattern)}: must be a path or pattern without a colon, like '*.h5'"
            )
    return tuple(patterns)


@contextmanager
def in_memory(patterns: Sequence[str]) -> Iterator[MemoryFolder | None]:
    """A new folder in memory, which is removed afterwards; None without patterns."""
    if not patterns:
        yield None
        return
    limit = room_bytes() // _LARGEST_SHARE
    if limit < _SMALLEST_BYTES:
        raise UnavailableError(f"{PLACE} has too little room for files in memory; leave out --in-memory")
    with tempfile.TemporaryDirectory(prefix="luthier-files-", dir=PLACE, ignore_cleanup_errors=True) as folder:
        yield MemoryFolder(Path(folder), tuple(patterns), limit)


def room_bytes() -> int:
    """What is free on the memory file system."""
    try:
        status = os.statvfs(PLACE)
    except OSError:
        raise UnavailableError(f"{PLACE} is missing: files cannot be kept in memory; leave out --in-memory") from None
    return status.f_bavail * status.f_frsize


def with_memory(on_disk: Mapping[str, int], memory: MemoryFolder | None, run: Path) -> dict[str, int]:
    """The sizes of the files left in a run folder, those in memory included."""
    left = dict(on_disk)
    for name, size in ({} if memory is None else memory.sizes(run)).items():
        if size is None:
            left.pop(name, None)
        else:
            left[name] = size
    return left
