"""The registered components of a user: a folder with one file for each of them.

Files, because people can read, copy, compare and edit them, and each component is independent of the others.
"""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from luthier.errors import InvalidInputError, NotFoundError, UnavailableError
from luthier.space.syntax import suggest
from luthier.spec.component import Component, read_components
from luthier.texts import shown


@dataclass(frozen=True, slots=True)
class Library:
    """Components by name, in a folder; a file is checked whenever it is read."""

    folder: Path

    def names(self) -> list[str]:
        """The names of all components, sorted."""
        return sorted(path.stem for path in self.folder.glob("*.yaml"))

    def get(self, name: str) -> Component:
        """One component."""
        if name not in self.names():
            known = self.names()
            hint = suggest(name, known) if known else "add it with: luthier component add FILE"
            raise NotFoundError(f"no component {shown(name)} is registered; {hint}")
        components = read_components(self._path(name))
        if name not in components:
            raise InvalidInputError(f"{self._path(name)}: does not describe {name!r}; remove the file and add it again")
        return components[name]

    def add(self, components: Mapping[str, Component], *, replace: bool) -> None:
        """Register components, all of them or none; other components are not changed."""
        if not replace and (taken := sorted(set(components) & set(self.names()))):
            raise InvalidInputError(f"component {taken[0]!r} is already registered; use --replace to overwrite it")
        drafts: list[tuple[Path, Path]] = []
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name, component in components.items():
                text = component_text(name, component)
                # Every call writes its own temporary file, also within one process; the last one to finish wins.
                with tempfile.NamedTemporaryFile(
                    "w", dir=self.folder, prefix=f"{name}.", suffix=".draft", encoding="utf-8", delete=False
                ) as draft:
                    drafts.append((Path(draft.name), self._path(name)))
                    draft.write(text)
                    draft.flush()
                    os.fsync(draft.fileno())
            for path, target in drafts:
                path.replace(target)
        except OSError as error:
            raise UnavailableError(f"{self.folder}: cannot be written: {error.strerror}") from error
        finally:
            for path, _ in drafts:
                path.unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        """Remove a component."""
        if name not in self.names():
            self.get(name)  # raises with a hint
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.yaml"


def component_text(name: str, component: Component) -> str:
    """A file that describes one component."""
    import yaml

    plain = {"components": {name: component.model_dump(mode="json", exclude_defaults=True)}}
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120)
