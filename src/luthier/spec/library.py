"""The components a user has registered: a folder with a file for each of them.

Files, because a person can read, copy, compare and mend them, and a component added or removed touches no other one.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from luthier.errors import InvalidInputError, NotFoundError, UnavailableError
from luthier.space.syntax import suggest
from luthier.spec.component import Component, read_components


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
            hint = suggest(name, known) if known else "there is none yet"
            raise NotFoundError(
                f"no component {name!r} is registered; {hint}; add one with: luthier component add FILE"
            )
        components = read_components(self._path(name))
        if name not in components:
            raise InvalidInputError(f"{self._path(name)}: does not describe {name!r}; remove the file and add it again")
        return components[name]

    def add(self, components: Mapping[str, Component], *, replace: bool) -> None:
        """Register components, all of them or none; the others stay as they are."""
        if not replace and (taken := sorted(set(components) & set(self.names()))):
            raise InvalidInputError(f"component {taken[0]!r} is registered already; use --replace to change it")
        drafts: list[tuple[Path, Path]] = []
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name, component in components.items():
                draft = self.folder / f"{name}.{os.getpid()}"
                draft.write_text(component_text(name, component), encoding="utf-8")
                drafts.append((draft, self._path(name)))
            for draft, path in drafts:
                draft.replace(path)
        except OSError as error:
            for draft, _ in drafts:
                draft.unlink(missing_ok=True)
            raise UnavailableError(f"{self.folder}: cannot be written: {error.strerror}") from error

    def remove(self, name: str) -> None:
        """Forget a component."""
        if name not in self.names():
            self.get(name)  # says what there is instead
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.yaml"


def component_text(name: str, component: Component) -> str:
    """A file that describes one component."""
    import yaml

    plain = {"components": {name: component.model_dump(mode="json", exclude_defaults=True)}}
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120)
