"""Secrets of this user in files: made when they are first needed, and never readable by anybody else."""

import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from luthier.errors import InvalidInputError, NotFoundError, UnavailableError

_LONGEST = 10_000


def kept_secret(path: Path, make: Callable[[], bytes]) -> bytes:
    """What is in the file; of several processes that make it at the same time, all get the same."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _write(path, make())
    except OSError as error:
        raise UnavailableError(f"{path}: cannot be written: {error.strerror}; make it writable") from None
    return secret_in(path)


def secret_in(path: Path) -> bytes:
    """What is in the file; raises if others can read it."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(file, "rb") as readable:
            mode = os.fstat(file).st_mode
            if not stat.S_ISREG(mode) or mode & 0o077:
                raise InvalidInputError(f"{path}: other users can read this secret; delete the file, a new one is made")
            return readable.read(_LONGEST)
    except FileNotFoundError:
        raise NotFoundError(f"{path}: does not exist") from None
    except OSError as error:
        raise UnavailableError(f"{path}: cannot be read: {error.strerror}; it must be a file of this user") from None


def _write(path: Path, secret: bytes) -> None:
    """Write a complete file under another name, then link it: the first link wins."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-") as draft:  # its mode is 0600
        draft.write(secret)
        draft.flush()
        os.fsync(draft.fileno())
        with suppress(FileExistsError):
            os.link(draft.name, path)
