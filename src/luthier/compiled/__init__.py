"""The parts of luthier that are written in C: built when they are first used, and kept for the next time.

`library` and `preload` are what runs need. A part is declared in a `build.toml` beside its sources: in `native/`, which
is in the wheel, or in `testbeds/`, the systems to be tuned, which are found from a clone only.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import luthier
from luthier.compiled.building import CompiledPart
from luthier.errors import InvalidInputError, NotFoundError, UnavailableError
from luthier.plugins import instead
from luthier.texts import shown

__all__ = ["CompiledPart", "library", "part", "parts", "preload"]

DECLARATION = "build.toml"
"""The file in a folder of sources that declares the parts to build from them."""

_NOT_FOR_PRELOAD = re.compile(r"[\s:;\"'`$\\]")
"""Characters that end a path in LD_PRELOAD, or have a meaning within quotes of a shell."""

_FROM_A_CLONE = (
    "the systems of testbeds/ are built from a clone only: clone the repository and run pip install -e . in its folder"
)


def parts() -> Mapping[str, CompiledPart]:
    """Every part that can be built, by name."""
    return _declared(_sources())


def part(name: str) -> CompiledPart:
    """One part."""
    known = parts()
    if name not in known:
        unknown = f"unknown native part {shown(name)}; {instead(name, list(known))}"
        raise NotFoundError(unknown if len(_sources()) > 1 else f"{unknown}; {_FROM_A_CLONE}")
    return known[name]


def library(name: str) -> Path:
    """The path of a library or program; it is built first if necessary."""
    return part(name).build()


def preload(names: Sequence[str]) -> str:
    """A value for LD_PRELOAD with these libraries; they are built first if necessary."""
    paths = [str(library(name)) for name in names]
    for path in paths:
        if _NOT_FOR_PRELOAD.search(path):
            raise InvalidInputError(
                f"{path}: a library with such a path cannot be preloaded; set XDG_DATA_HOME to a folder whose path "
                "has only letters, digits and / . _ -"
            )
    return ":".join(paths)


@cache
def _declared(folders: tuple[Path, ...]) -> Mapping[str, CompiledPart]:
    found: dict[str, CompiledPart] = {}
    for path in (path for folder in folders for path in sorted(folder.rglob(DECLARATION))):
        for name, given in tomllib.loads(path.read_text(encoding="utf-8")).items():
            sources, flags, libraries = (tuple(given.get(key, ())) for key in ("sources", "flags", "libraries"))
            fixed = (given["purpose"], given["compiler"])
            found[name] = CompiledPart(name, path.parent, *fixed, sources, given["output"], flags, libraries)
    return found


def _sources() -> tuple[Path, ...]:
    """The folders of the sources: within the package where it was installed from a wheel, else those of the clone."""
    package = Path(luthier.__file__).parent
    shipped, clone = package / "native", package.parents[1]
    for folders in ((shipped,), (clone / "native", clone / "testbeds")):
        if any(folders[0].rglob(DECLARATION)):
            return folders
    raise UnavailableError(f"the C sources of luthier are missing in {shipped}; install luthier again")
