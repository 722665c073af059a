"""The registered components of a store."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from luthier.errors import InvalidInputError, NotFoundError
from luthier.space.syntax import suggest
from luthier.spec.approvals import ComponentVariable, problem_of_values, variables_of
from luthier.spec.component import Component, components_in, version_of
from luthier.spec.yaml_lines import parse_document
from luthier.store.server_store import Approval, Components


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
        return self._read(name)[1]

    def _read(self, name: str) -> tuple[str, Component]:
        try:
            text = self.texts.text(name)
        except NotFoundError as error:
            raise NotFoundError(f"{error}; {self._hint(name)}") from None
        components = components_in(parse_document(text, f"component {name}"), None)
        if name not in components:
            raise InvalidInputError(f"component {name}: its text does not describe it; add it again with --replace")
        return text, components[name]

    def add(self, components: Mapping[str, Component], *, replace: bool) -> None:
        """Register components, all of them or none; other components are not changed."""
        self.texts.put({name: component_text(name, one) for name, one in components.items()}, replace=replace)

    def remove(self, name: str) -> None:
        """Remove a component."""
        try:
            self.texts.remove(name)
        except NotFoundError as error:
            raise NotFoundError(f"{error}; {self._hint(name)}") from None

    def review(self, name: str) -> "ReviewedComponent":
        """What an administrator looks at before approving variables of a component."""
        component = self._read(name)[1]
        return ReviewedComponent(version_of(component), variables_of(component, self.texts.approvals(name)))

    def approve(self, name: str, wanted: Mapping[str, str], version: str, by: str, now: float) -> None:
        """Approve variables with the values in `wanted`, all of them or none; `version` is that of the review."""
        text, component = self._read(name)
        if version_of(component) != version:
            raise InvalidInputError(f"component {name} was changed meanwhile; look at it again, then approve it")
        known = [variable.name for variable in variables_of(component)]
        for variable, allowed in wanted.items():
            if variable not in known:
                raise InvalidInputError(f"component {name} sets no variable {variable}; {_listed(variable, known)}")
            if problem := problem_of_values(variable, allowed):
                raise InvalidInputError(f"cannot be approved: {problem}")
        approvals = [Approval(name, one, " ".join(wanted[one].split()), version, by, now) for one in wanted]
        self.texts.approve(name, text, approvals)

    def withdraw(self, name: str, variables: Collection[str] | None = None) -> Sequence[str]:
        """Take approvals back, by default all of a component; `NotFoundError` if one of them is not approved."""
        approved = {one.variable for one in self.texts.approvals(name)}
        if missing := sorted(set(variables or ()) - approved):
            raise NotFoundError(f"{missing[0]} is not approved for component {name}; {_listed(missing[0], approved)}")
        return self.texts.withdraw(name, variables)

    def _hint(self, name: str) -> str:
        file = None if self.former is None or Path(name).name != name else self.former / f"{name}.yaml"
        if file is not None and file.is_file():
            return f"an earlier version kept it in a file; add it with: luthier component add {file}"
        known = self.names()
        return suggest(name, known) if known else "add it with: luthier component add FILE"


@dataclass(frozen=True, slots=True)
class ReviewedComponent:
    """The variables of a component, and the version of the component that has them."""

    version: str
    variables: Sequence[ComponentVariable]


def _listed(wrong: str, known: Collection[str]) -> str:
    return suggest(wrong, sorted(known)) if known else "none exists"


def component_text(name: str, component: Component) -> str:
    """A file that describes one component."""
    import yaml

    plain = {"components": {name: component.model_dump(mode="json", exclude_defaults=True)}}
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120)
