"""Installs the client of on-line tuning for C, C++, Fortran and MPI programs."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import luthier
from luthier.errors import InvalidInputError, UnavailableError
from luthier.texts import shown

_MAKE_S = 300.0
_SAFE = re.compile(r"[\w./+@,=~-]+")  # names that neither make nor a shell reads as more than a name
_HEADERS = ("luthier_online.h", "luthier_online_mpi.h")


@dataclass(frozen=True, slots=True)
class InstalledClient:
    """The installed files, and a line for each part that was left out."""

    files: Sequence[Path]
    left_out: Sequence[str]


def client_sources() -> Path:
    """Where the sources are: in the installed package, or beside it in a clone of the project."""
    package = Path(luthier.__file__).resolve().parent
    for folder in (package / "native" / "online", package.parents[1] / "native" / "online"):
        if (folder / "Makefile").is_file():
            return folder
    raise UnavailableError("the sources of the client are not installed; install luthier again")


def install_client(folder: Path) -> InstalledClient:
    """Build the client and install headers, libraries, sources and pkg-config files into a folder.

    Without make or a C compiler only headers and sources are installed.
    """
    target = folder.expanduser().absolute()
    if not _SAFE.fullmatch(str(target)):
        raise InvalidInputError(
            f"{shown(str(target))}: only letters, digits and . _ - + @ , = ~ can be used; choose another folder"
        )
    try:
        target.mkdir(parents=True, exist_ok=True)
        missing = next((name for name in ("make", _compiler()) if shutil.which(name) is None), None)
        left_out = _built(target) if missing is None else _copied(target, missing)
    except OSError as error:
        raise UnavailableError(f"{target}: {error.strerror}; choose another folder") from error
    return InstalledClient([path for path in _expected(target) if path.exists()], left_out)


def _compiler() -> str:
    """The program that make calls: CC may hold options as well."""
    return (os.environ.get("CC", "").split() or ["cc"])[0]


def _built(target: Path) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="luthier-client-") as build:
        words = [
            f"BUILD={build}",
            f"PREFIX={target}",
            f"VERSION={luthier.__version__}",
            "DESTDIR=",
            "WERROR=",
            "install",
        ]
        try:
            made = subprocess.run(
                ["make", "--silent", "-C", str(client_sources()), *words],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=_MAKE_S,
                stdin=subprocess.DEVNULL,
                env={
                    name: text for name, text in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")
                },
            )
        except subprocess.TimeoutExpired:
            raise UnavailableError(f"the client was not built within {_MAKE_S:.0f} s; try again") from None
    if made.returncode != 0:
        raise UnavailableError(f"the client could not be built: {' '.join(made.stderr.split())[-300:]}")
    return [line for line in made.stdout.splitlines() if line.startswith("left out: ")]


def _copied(target: Path, missing: str) -> list[str]:
    """Without a compiler: what can be built later."""
    include, share = target / "include", target / "share" / "luthier-online"
    for folder in (include, share):
        folder.mkdir(parents=True, exist_ok=True)
    for path in client_sources().iterdir():
        if path.is_file():
            shutil.copyfile(path, share / path.name)
    for name in _HEADERS:
        shutil.copyfile(share / name, include / name)
    later = f"run later: make -C {share} PREFIX={target} WERROR= install"
    return [f"left out: all libraries, since {missing} is not installed; {later}"]


def _expected(target: Path) -> list[Path]:
    """The files that an installation with all its parts has."""
    libraries = (
        "libluthier_online.a",
        "libluthier_online.so",
        "libluthier_online_mpi.a",
        "libluthier_online_fortran.a",
    )
    parts = ("luthier-online", "luthier-online-mpi", "luthier-online-fortran")
    sources = sorted(path.name for path in client_sources().iterdir() if path.is_file())
    return [
        *(target / "include" / name for name in (*_HEADERS, "luthier_online.mod", "luthier_online_mpi.mod")),
        *(target / "lib" / name for name in libraries),
        *(target / "lib" / "pkgconfig" / f"{part}.pc" for part in parts),
        *(target / "share" / "luthier-online" / name for name in sources),
    ]
