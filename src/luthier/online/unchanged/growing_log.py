"""A log file that grows while it is read."""

import os
from pathlib import Path
from typing import BinaryIO

from luthier.measures.output import LONGEST_READ_BYTES


class GrowingLog:
    """The lines that were added to a file since the last call of `new_lines`; the first call begins at its end.

    A log that was renamed and created again (rotation) is read to its end, then the new one from its start. A log that
    was truncated is read from its start. If more than 16 MiB were added, only the last of them are read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""
        self._was_called = False

    def __del__(self) -> None:
        self._close()

    def new_lines(self) -> str:
        """All complete lines since the last call; "" while there is no such file."""
        found = b""
        if self._file is not None:
            found = self._added(self._file)
            if self._is_replaced(self._file):
                found += b"\n" + self._added(self._file)  # written between the two looks
                self._close()
        if self._file is None and self._open():
            found += b"\n" if found else b""
            found += self._added(self._file) if self._file is not None else b""
        self._was_called = True
        return found.decode(errors="replace")

    def _open(self) -> bool:
        try:
            self._file = self._path.open("rb")
        except OSError:
            return False
        if not self._was_called:  # only what is written from now on counts
            self._file.seek(0, os.SEEK_END)
        return True

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._rest = None, b""

    def _added(self, file: BinaryIO) -> bytes:
        size, position = os.fstat(file.fileno()).st_size, file.tell()
        if size < position:
            position, self._rest = 0, b""
        if size - position > LONGEST_READ_BYTES:
            position, self._rest = size - LONGEST_READ_BYTES, b""
        file.seek(position)
        content = self._rest + file.read(LONGEST_READ_BYTES)
        lines, newline, self._rest = content.rpartition(b"\n")
        self._rest = self._rest[-LONGEST_READ_BYTES:]
        return lines + newline

    def _is_replaced(self, file: BinaryIO) -> bool:
        try:
            here = self._path.stat()
        except OSError:
            return False  # renamed, and not created again yet: it may still be written to
        mine = os.fstat(file.fileno())
        return (here.st_dev, here.st_ino) != (mine.st_dev, mine.st_ino)
