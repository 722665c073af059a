"""Components: programs and libraries that can be tuned."""

from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field, JsonValue

from luthier.errors import InvalidInputError, LuthierError
from luthier.launch import approve, withdraw
from luthier.server.api.models import (
    COMPONENT_EXAMPLE,
    ERRORS,
    RequestModel,
    ResponseModel,
    Short,
    Yaml,
    example,
    split_location,
)
from luthier.server.api.session import note
from luthier.server.authentication import Principal
from luthier.server.context import Admin, Context, Launcher, Server, Viewer
from luthier.server.operations import ConflictError, parsed
from luthier.spec.approvals import LONGEST_VALUES, ComponentVariable
from luthier.spec.component import Component, components_in
from luthier.spec.library import component_text
from luthier.store.base import Record

router = APIRouter(tags=["components"], responses=ERRORS)

MOST_LOOKED_AT = 500
"""How many of the newest experiments are searched for uses of a component."""

Name = Annotated[str, Path(max_length=200, description="The name of the component.", examples=["dd"])]
Variable = Annotated[str, Path(max_length=200, description="The name of the variable.", examples=["OMP_NUM_THREADS"])]
_SOURCE = "component.yaml"
_VERSION = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_VARIABLE: dict[str, JsonValue] = {
    "name": "OMP_NUM_THREADS",
    "declared": "1",
    "harmless": "1..4096",
    "problem": None,
    "allowed": "1..64",
    "approved_by": "ada",
    "approved_at": 1.7e9,
}


class ComponentText(RequestModel):
    """The text of a YAML file that describes components."""

    model_config = example({"yaml": COMPONENT_EXAMPLE})

    yaml: Yaml


class NewComponents(ComponentText):
    """Components to register."""

    replace: bool = False
    """Replace components that are already registered."""


class UsedBy(ResponseModel):
    """An experiment that uses a component."""

    id: int
    name: str


class ComponentSummary(ResponseModel):
    """A registered component in a listing."""

    model_config = example({"name": "dd", "description": "", "parameters": ["bs"], "used_by": 2})

    name: str
    description: str
    parameters: list[str]
    used_by: int
    """How many of the newest experiments that you may see use it."""


class VariableDetail(ResponseModel):
    """A variable that a component sets, and whether it may be set in jobs of all users."""

    model_config = example(_VARIABLE)

    name: str
    declared: str | None
    """The values that the component describes: texts and ranges such as `1..64`, with spaces between them."""
    harmless: str | None
    """The values that are known to be harmless; null if the variable is not known to be so."""
    problem: str | None
    """Why it is never set in jobs of other users."""
    allowed: str | None
    """The values that an administrator approved; null if it is not approved."""
    approved_by: str | None
    approved_at: float | None


class ComponentVariables(ResponseModel):
    """The variables that a component sets, and the version of the component that has them."""

    model_config = example({"version": _VERSION, "variables": [_VARIABLE]})

    version: str
    variables: list[VariableDetail]


class NewApprovals(RequestModel):
    """Variables to approve for jobs of all users, with the allowed values of each."""

    model_config = example({"version": _VERSION, "variables": {"LEVEL": "1..64 auto"}})

    version: Annotated[str, Field(max_length=200)]
    """The version of the component that was looked at; if it has changed meanwhile, nothing is approved."""
    variables: Annotated[dict[Short, Annotated[str, Field(max_length=LONGEST_VALUES)]], Field(min_length=1)]
    """Texts and ranges such as `1..64`, with spaces between them, by variable."""


class ComponentDetail(ResponseModel):
    """A registered component."""

    model_config = example(
        {
            "name": "dd",
            "description": "",
            "yaml": COMPONENT_EXAMPLE,
            "parameters": [{"name": "bs", "type": "int", "default": 512}],
            "measure": [],
            "constraints": [],
            "used_by": [{"id": 1, "name": "first try"}],
        }
    )

    name: str
    description: str
    yaml: str
    parameters: list[dict[str, JsonValue]]
    measure: list[str]
    constraints: list[str]
    used_by: list[UsedBy]


class ComponentNames(ResponseModel):
    """The names of components."""

    model_config = example({"names": ["dd"]})

    names: list[str]


class CheckedComponents(ResponseModel):
    """The names of the components in the text, or the error in it."""

    model_config = example({"ok": True, "names": ["dd"], "error": None})

    ok: bool
    names: list[str] = Field(default_factory=list)
    error: str | None = None
    line: int | None = None


@router.get("/components", summary="List the registered components")
def list_components(server: Server, who: Viewer) -> list[ComponentSummary]:
    """Sorted by name."""
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
def add_components(server: Server, who: Launcher, given: NewComponents) -> ComponentNames:
    """If one of them is invalid, none is registered. The server reads no other file."""
    components = _described(given.yaml)
    if not given.replace and (taken := sorted(set(components) & set(server.library.names()))):
        raise ConflictError(f"component {taken[0]} is already registered; set replace to change it")
    return _registered(server, who, components)


@router.post("/components/check", summary="Check the text of components")
def check_components(_: Viewer, given: ComponentText) -> CheckedComponents:
    """Nothing is registered."""
    try:
        return CheckedComponents(ok=True, names=list(_described(given.yaml)))
    except LuthierError as error:
        line, problem = split_location(str(error), _SOURCE)
        return CheckedComponents(ok=False, error=problem, line=line)


@router.get("/components/{name}", summary="Get a component")
def get_component(server: Server, who: Viewer, name: Name) -> ComponentDetail:
    """With its YAML text, and the experiments that use it."""
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


@router.put("/components/{name}", summary="Register or change a component")
def put_component(server: Server, who: Launcher, name: Name, given: ComponentText) -> ComponentNames:
    """The text must describe this component and no other."""
    components = _described(given.yaml)
    if list(components) != [name]:
        raise InvalidInputError(f"{_SOURCE}: describes {', '.join(components)}; it must describe {name} only")
    return _registered(server, who, components)


@router.delete("/components/{name}", summary="Delete a component", status_code=204)
def delete_component(server: Server, who: Launcher, name: Name) -> None:
    """Experiments that use it keep their own copy."""
    server.library.remove(name)
    note(server, who, "remove component", f"component {name}")


@router.get("/components/{name}/variables", summary="List the variables of a component")
def list_variables(server: Server, _: Viewer, name: Name) -> ComponentVariables:
    """With those that an administrator approved for jobs of all users."""
    return _variables(server, name)


@router.post("/components/{name}/approvals", summary="Approve variables for jobs of all users")
def approve_variables(server: Server, who: Admin, name: Name, given: NewApprovals) -> ComponentVariables:
    """All of them or none; those that were approved before and are not given stay as they are."""
    approve(server.store, name, given.variables, given.version, who.name, server.operations.clock())
    return _variables(server, name)


@router.delete("/components/{name}/approvals/{variable}", summary="Withdraw an approval", status_code=204)
def withdraw_approval(server: Server, who: Admin, name: Name, variable: Variable) -> None:
    """Jobs of other users do not get the variable any more; servers know it within some seconds."""
    withdraw(server.store, name, [variable], who.name, server.operations.clock())


def _variables(server: Context, name: str) -> ComponentVariables:
    review = server.library.review(name)
    return ComponentVariables(version=review.version, variables=[_variable(one) for one in review.variables])


def _variable(one: ComponentVariable) -> VariableDetail:
    approval, described = one.approval, (one.name, one.declared, one.harmless, one.problem)
    names = ("name", "declared", "harmless", "problem", "allowed", "approved_by", "approved_at")
    given = (None, None, None) if approval is None else (approval.allowed, approval.approved_by, approval.approved_at)
    return VariableDetail.model_validate(dict(zip(names, (*described, *given), strict=True)))


def _described(text: str) -> dict[str, Component]:
    return components_in(parsed(text, _SOURCE), None)


def _registered(server: Context, who: Principal, components: dict[str, Component]) -> ComponentNames:
    server.library.add(components, replace=True)
    for name in components:
        note(server, who, "register component", f"component {name}")
    return ComponentNames(names=list(components))


def _records(server: Context, who: Principal) -> list[Record]:
    author = None if who.role == "admin" else who.name
    return list(server.store.queue.records(author=author, limit=MOST_LOOKED_AT))


def _tuned(record: Record) -> str | None:
    """The name of the component that an experiment tunes; None if it tunes no component."""
    command = record.settings.get("command")
    name = command.get("component_name") if isinstance(command, dict) else None
    return name if isinstance(name, str) else None
