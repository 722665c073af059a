"""Components: what can be tuned."""

from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import ConfigDict, Field, JsonValue

from luthier.errors import InvalidInputError, LuthierError
from luthier.server.access import Principal
from luthier.server.api.models import COMPONENT_EXAMPLE, ERRORS, Given, Told, Yaml, where_and_what
from luthier.server.api.session import note
from luthier.server.context import Context, Launcher, Server, Viewer
from luthier.server.operations import NotNowError, parsed
from luthier.spec.component import Component, components_in
from luthier.spec.library import component_text
from luthier.store.base import Record

router = APIRouter(tags=["components"], responses=ERRORS)

MOST_LOOKED_AT = 500
"""In how many of the newest experiments a component is looked for."""

Name = Annotated[str, Path(max_length=200, description="The name of the component.", examples=["dd"])]
_SOURCE = "component.yaml"


class GivenComponent(Given):
    """The text of a YAML file that describes components."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"yaml": COMPONENT_EXAMPLE}]})

    yaml: Yaml


class NewComponents(GivenComponent):
    """Components to register."""

    replace: bool = False
    """Change those that are registered already."""


class UsedBy(Told):
    """An experiment."""

    id: int
    name: str


class ComponentSummary(Told):
    """A registered component in a listing."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "dd", "description": "", "parameters": ["bs"], "used_by": 2}]}
    )

    name: str
    description: str
    parameters: list[str]
    used_by: int
    """How many of the newest experiments that you may see tune it."""


class ComponentDetail(Told):
    """A registered component."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "dd",
                    "description": "",
                    "yaml": COMPONENT_EXAMPLE,
                    "parameters": [{"name": "bs", "type": "int", "default": 512}],
                    "measure": [],
                    "constraints": [],
                    "used_by": [{"id": 1, "name": "first try"}],
                }
            ]
        }
    )

    name: str
    description: str
    yaml: str
    parameters: list[dict[str, JsonValue]]
    measure: list[str]
    constraints: list[str]
    used_by: list[UsedBy]


class Registered(Told):
    """The names of components."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"names": ["dd"]}]})

    names: list[str]


class CheckedComponents(Told):
    """What is described, or what is wrong with it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ok": True, "names": ["dd"], "error": None}]})

    ok: bool
    names: list[str] = Field(default_factory=list)
    error: str | None = None
    line: int | None = None


@router.get("/components", summary="Every registered component")
def list_components(server: Server, who: Viewer) -> list[ComponentSummary]:
    """By name."""
    used = Counter(_tuned(record) for record in _records(server, who))
    listed = []
    for name in server.library.names():
        component = server.library.get(name)
        listed.append(
            ComponentSummary(
                name=name,
                description=component.description,
                parameters=list(component.parameters),
                used_by=used[name],
            )
        )
    return listed


@router.post("/components", summary="Register components", status_code=201)
def add_components(server: Server, who: Launcher, given: NewComponents) -> Registered:
    """All of them or none; no other file is read."""
    components = _described(given.yaml)
    if not given.replace and (taken := sorted(set(components) & set(server.library.names()))):
        raise NotNowError(f"component {taken[0]} is registered already; say replace to change it")
    return _registered(server, who, components)


@router.post("/components/check", summary="Check a description of components")
def check_components(_: Viewer, given: GivenComponent) -> CheckedComponents:
    """Nothing is registered."""
    try:
        return CheckedComponents(ok=True, names=list(_described(given.yaml)))
    except LuthierError as error:
        line, problem = where_and_what(str(error), _SOURCE)
        return CheckedComponents(ok=False, error=problem, line=line)


@router.get("/components/{name}", summary="One component")
def get_component(server: Server, who: Viewer, name: Name) -> ComponentDetail:
    """With the text of a file that describes it, and the experiments that tune it."""
    component = server.library.get(name)
    used_by = [UsedBy(id=record.id, name=record.name) for record in _records(server, who) if _tuned(record) == name]
    return ComponentDetail(
        name=name,
        description=component.description,
        yaml=component_text(name, component),
        parameters=[
            {"name": parameter, **described.model_dump(mode="json", exclude_none=True)}
            for parameter, described in component.parameters.items()
        ],
        measure=component.measure,
        constraints=component.constraints,
        used_by=used_by,
    )


@router.put("/components/{name}", summary="Register or change one component")
def put_component(server: Server, who: Launcher, name: Name, given: GivenComponent) -> Registered:
    """The text describes this one component."""
    components = _described(given.yaml)
    if list(components) != [name]:
        raise InvalidInputError(f"{_SOURCE}: describes {', '.join(components)}, not {name} alone")
    return _registered(server, who, components)


@router.delete("/components/{name}", summary="Forget a component", status_code=204)
def delete_component(server: Server, who: Launcher, name: Name) -> None:
    """Experiments that tune it keep what they need of it."""
    server.library.remove(name)
    note(server, who, "remove component", f"component {name}")


def _described(text: str) -> dict[str, Component]:
    return components_in(parsed(text, _SOURCE), None)


def _registered(server: Context, who: Principal, components: dict[str, Component]) -> Registered:
    server.library.add(components, replace=True)
    for name in components:
        note(server, who, "register component", f"component {name}")
    return Registered(names=list(components))


def _records(server: Context, who: Principal) -> list[Record]:
    author = None if who.role == "admin" else who.name
    return list(server.books.desk.records(author=author, limit=MOST_LOOKED_AT))


def _tuned(record: Record) -> str | None:
    """What the component that an experiment tunes was called when it began; None if it tunes none."""
    command = record.settings.get("command")
    name = command.get("component_name") if isinstance(command, dict) else None
    return name if isinstance(name, str) else None
