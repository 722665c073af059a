"""A part written in C: how it is built, and where the build is kept."""

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from luthier.errors import InvalidInputError, UnavailableError
from luthier.folders import data_directory

_COMPILERS = {
    "cc": ("CC", "a C compiler", "gcc and libc6-dev"),
    "mpicc": ("MPICC", "the compiler of an MPI", "libopenmpi-dev"),
}
"""For each compiler: the variable that names another one, what it is, and the packages of Debian."""
_FLAGS = ("-std=gnu11", "-Wall", "-Wextra", "-O2", "-g")
_HARDENING = ("-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3", "-Wl,-z,relro,-z,now")
"""For every part; a library that defines the checked calls itself has `-U_FORTIFY_SOURCE` in its own flags."""
_LONGEST_BUILD_S = 300.0


@dataclass(frozen=True, slots=True)
class CompiledPart:
    """A library or program and how it is built: sources are in `folder`, `libraries` end the command line."""

    name: str
    folder: Path
    purpose: str
    compiler: str
    sources: tuple[str, ...]
    output: str
    flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()

    def built(self) -> Path | None:
        """Where it is if it was built before from the same sources with the same compiler.

        Where there is no compiler, as on some compute nodes, any build of the same sources will do.
        """
        kept = self._kept()
        if (kept / self.output).exists():
            return kept / self.output
        if self.missing() is None:
            return None
        others = kept.parent.glob(f"{self.name}-{self._source_digest()}-*/{self.output}")
        return max(others, key=lambda path: path.stat().st_mtime, default=None)

    def missing(self) -> str | None:
        """Why it cannot be built here; None if it can."""
        variable, what, packages = _COMPILERS[self.compiler]
        words = self._compiler()
        if words and shutil.which(words[0]) is not None:
            return None
        named = f"{variable} names {words[0]!r}, which" if os.environ.get(variable) and words else self.compiler
        return f"needs {what}, and {named} is not installed; install it (Debian: {packages}), or set {variable}"

    def build(self) -> Path:
        """Build it, unless that was done before; several processes may do this at once."""
        if (known := self.built()) is not None:
            return known
        if (missing := self.missing()) is not None:
            raise UnavailableError(f"{self.name}: {missing}")
        kept = self._kept()
        try:
            kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".building-", ignore_cleanup_errors=True) as draft:
                self._compile(Path(draft) / self.output)
                Path(draft).chmod(0o755)
                _move(Path(draft), kept)
        except OSError as error:
            raise UnavailableError(f"{self.name}: cannot be kept in {kept.parent}: {error.strerror}") from error
        return kept / self.output

    def _compiler(self) -> list[str]:
        variable = _COMPILERS[self.compiler][0]
        try:
            return shlex.split(os.environ.get(variable) or self.compiler)
        except ValueError:
            raise InvalidInputError(f"{variable}: {os.environ[variable]!r} is not a command; correct it") from None

    def _command(self, output: str) -> list[str]:
        flags = [*_FLAGS, *_HARDENING, *self.flags, *shlex.split(os.environ.get("CFLAGS", ""))]
        return [*self._compiler(), *flags, "-o", output, *self.sources, *self.libraries]

    def _compile(self, output: Path) -> None:
        try:
            ended = subprocess.run(
                self._command(str(output)),
                cwd=self.folder,
                env={**os.environ, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_LONGEST_BUILD_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise UnavailableError(f"{self.name}: {self.compiler} took longer than {_LONGEST_BUILD_S:.0f} s") from None
        if ended.returncode != 0 or not output.exists():
            raise UnavailableError(f"{self.name}: cannot be built: {_reason(ended.stderr, self.compiler)}")

    def _kept(self) -> Path:
        """The folder of this very build: another source, compiler, MPI or flag has another one."""
        how = "\0".join([*self._command(self.output), *_identity(tuple(self._compiler()))])
        made_by = hashlib.sha256(how.encode()).hexdigest()[:12]
        return data_directory() / "native" / f"{self.name}-{self._source_digest()}-{made_by}"

    def _source_digest(self) -> str:
        digest = hashlib.sha256("\0".join([*self.sources, *self.flags, *self.libraries]).encode())
        for path in self._contents():
            digest.update(f"{path.name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
        return digest.hexdigest()[:12]

    def _contents(self) -> list[Path]:
        """The files that a build may read: all of the folder, and the headers above it and in folders named by -I."""
        own = [path for path in self.folder.iterdir() if path.suffix in (".c", ".h")]
        above = [self.folder.parent, *(self.folder / flag[2:] for flag in self.flags if flag.startswith("-I"))]
        return [*sorted(own), *(path for folder in above for path in sorted(folder.glob("*.h")))]


@cache
def _identity(compiler: tuple[str, ...]) -> tuple[str, ...]:
    """What tells one version of a compiler from another; the wrapper of an MPI shows where that is installed."""
    found = [str(shutil.which(compiler[0]))] if compiler else []
    for question in ("--version", "-show"):
        try:
            asked = [*compiler, question]
            answer = subprocess.run(asked, capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        found.append(answer.stdout.decode(errors="replace"))
    return tuple(found)


def _move(draft: Path, kept: Path) -> None:
    """Put a finished build in its place; another process may have been faster with the same."""
    try:
        draft.rename(kept)
    except OSError:
        if not kept.is_dir():
            raise


def _reason(said: str, compiler: str) -> str:
    """The line of a compiler's messages that says what is wrong."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if "error:" in line or "cannot find" in line or "undefined reference" in line]
    return (telling or lines or [f"{compiler} gave no reason"])[0][:300]
