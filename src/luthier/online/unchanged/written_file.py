"""A configuration file that is written from a template while a program runs."""

import glob
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from luthier.errors import InvalidInputError, UnavailableError
from luthier.spec.template import fill
from luthier.texts import shown

LONGEST_TEMPLATE_BYTES = 4 * 1024 * 1024

_SUFFIX = ".luthier"  # of a file that is being written


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file and the text that it is made from, in which `{NAME}` is the value of a parameter."""

    target: Path
    text: str

    def write(self, values: Mapping[str, str]) -> None:
        """Write the file with these values."""
        replace_file(self.target, fill(self.text, values).encode("utf-8", "surrogateescape"))

    def keep_original(self, copy: Path) -> None:
        """Copy the present file to `copy`, unless that was done before; an empty folder means that no file existed."""
        for left in self.target.parent.glob(f".{glob.escape(self.target.name[:100])}.*{_SUFFIX}"):
            left.unlink(missing_ok=True)  # by a luthier that was killed
        if copy.exists():
            return
        if self.target.exists():
            replace_file(copy, self.target.read_bytes())
        else:
            copy.mkdir(parents=True)

    def restore(self, copy: Path) -> None:
        """Put back the original; delete the file if there was none."""
        if copy.is_dir():
            self.target.unlink(missing_ok=True)
        else:
            replace_file(self.target, copy.read_bytes())

    def forget_restored(self, copy: Path) -> None:
        """Delete the copy if the file is as it was."""
        if copy.is_dir() and not self.target.exists():
            copy.rmdir()
        elif copy.is_file() and self.target.is_file() and copy.read_bytes() == self.target.read_bytes():
            copy.unlink()


def written_file(text: str) -> WrittenFile:
    """The file that `TEMPLATE:TARGET` names; the template is read now."""
    source, colon, target = text.partition(":")
    if not colon or not source or not target:
        raise InvalidInputError(f"--write {shown(text)}: write TEMPLATE:TARGET, for example app.conf.in:/etc/app.conf")
    try:
        content = Path(source).read_bytes()
    except OSError as error:
        raise InvalidInputError(f"--write {source}: cannot be read ({error.strerror}); name the template") from None
    if len(content) > LONGEST_TEMPLATE_BYTES:
        raise InvalidInputError(f"--write {source}: larger than 4 MiB; use a smaller file, for example an included one")
    place = Path(target).resolve()  # a symbolic link stays one
    if place.is_dir() or not place.parent.is_dir():
        raise InvalidInputError(f"--write {target}: name a file in a folder that exists")
    if place == Path(source).resolve():
        raise InvalidInputError(f"--write {target}: the template would overwrite itself; name another file")
    return WrittenFile(place, content.decode("utf-8", "surrogateescape"))


def replace_file(target: Path, content: bytes) -> None:
    """Write a file in one step, with the mode and the owner that it has; a new one is for this user only."""
    new: Path | None = None
    try:
        # A leading dot hides the new file from patterns such as `include conf.d/*`.
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=_SUFFIX, dir=target.parent)
        new = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            with suppress(FileNotFoundError):
                before = target.stat()
                if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
            file.flush()
            os.fsync(file.fileno())
        new.replace(target)
    except OSError as error:
        if new is not None:
            new.unlink(missing_ok=True)
        raise UnavailableError(f"{target}: cannot be written ({error.strerror}); it was not changed") from error
