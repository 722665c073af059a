"""The registered components of a store."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from luthier.errors import InvalidInputError, NotFoundError
from luthier.space.syntax import suggest
from luthier.spec.component import Component, components_in
from luthier.spec.yaml_lines import parse_document
from luthier.store.server_store import Components


@dataclass(frozen=True, slots=True)
class Library:
    """Components by name; a text is checked whenever it is read.

    `former` is the folder in which earlier versions kept components for all stores; messages name files in it.
    """

    texts: Components
    former: Path | None = None

    def names(self) -> list[str]:
        """The names of all components, sorted."""
        return self.texts.names()

    def get(self, name: str) -> Component:
        """One component."""
        try:
            text = self.texts.text(name)
        except NotFoundError as error:
            raise NotFoundError(f"{error}; {self._hint(name)}") from None
        components = components_in(parse_document(text, f"component {name}"), None)
        if name not in components:
            raise InvalidInputError(f"component {name}: its text does not describe it; add it again with --replace")
        return components[name]

    def add(self, components: Mapping[str, Component], *, replace: bool) -> None:
        """Register components, all of them or none; other components are not changed."""
        self.texts.put({name: component_text(name, one) for name, one in components.items()}, replace=replace)

    def remove(self, name: str) -> None:
        """Remove a component."""
        try:
            self.texts.remove(name)
        except NotFoundError as error:
            raise NotFoundError(f"{error}; {self._hint(name)}") from None

    def _hint(self, name: str) -> str:
        file = None if self.former is None or Path(name).name != name else self.former / f"{name}.yaml"
        if file is not None and file.is_file():
            return f"an earlier version kept it in a file; add it with: luthier component add {file}"
        known = self.names()
        return suggest(name, known) if known else "add it with: luthier component add FILE"


def component_text(name: str, component: Component) -> str:
    """A file that describes one component."""
    import yaml

    plain = {"components": {name: component.model_dump(mode="json", exclude_defaults=True)}}
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120)
