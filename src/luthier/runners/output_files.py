"""Reading what a run wrote."""

import os
import stat
from pathlib import Path

from luthier.errors import NotFoundError


def end_of_file(path: Path, size_bytes: int) -> bytes:
    """The end of a regular file; a link or device that a job has put in its place is not read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        raise NotFoundError(f"the {path.name} of this run no longer exists") from None
    with os.fdopen(handle, "rb") as stream:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise NotFoundError(f"the {path.name} of this run is not a regular file")
        stream.seek(max(found.st_size - size_bytes, 0))
        return stream.read(size_bytes)
