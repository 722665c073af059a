"""Style sheets, scripts and icons, cached in memory under URLs that change with their contents."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from luthier.figures import DARK, LIGHT, SCRIPT, plotly_js
from luthier.server.parts import parts

_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_DIGITS = 16


@dataclass(frozen=True, slots=True)
class StaticFile:
    """One file, plain and compressed."""

    contents: bytes
    packed: bytes
    media_type: str


@cache
def own_files() -> tuple[str, Mapping[str, StaticFile]]:
    """The files of the pages by name, and a version that changes when any of them changes.

    All files share one folder in the URL, so that scripts can import each other.
    """
    folders = [Path(__file__).parent, *(part.folder for part in parts().values())]
    paths = [path for folder in folders for path in sorted((folder / "static").iterdir()) if path.suffix in _TYPES]
    contents = {path.name: path.read_bytes() for path in paths}
    contents |= {SCRIPT.name: SCRIPT.read_bytes(), "figures.css": _palette().encode()}
    files = {name: _file(name, held) for name, held in contents.items()}
    return _digest(b"".join(contents.values())), files


@cache
def plotly() -> tuple[str, StaticFile]:
    """plotly.js from the installed package, and the name under which it is served."""
    held = plotly_js().read_bytes()
    return f"plotly-{_digest(held)}.js", _file("plotly.js", held)


def _file(name: str, contents: bytes) -> StaticFile:
    return StaticFile(contents, gzip.compress(contents, 6, mtime=0), _TYPES[Path(name).suffix])


def _palette() -> str:
    """The colours of figures, as CSS variables for `figures.js`."""
    light, dark = (
        "".join(f"--figure-{role}: {colour}; " for role, colour in palette.items()) for palette in (LIGHT, DARK)
    )
    return f':root {{ {light}}}\n:root[data-theme="dark"] {{ {dark}}}\n'


def _digest(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()[:_DIGITS]
