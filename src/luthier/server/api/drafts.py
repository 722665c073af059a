"""Experiments that somebody is still writing: checked, shown, turned from YAML to JSON and back."""

from fastapi import APIRouter
from pydantic import ConfigDict, Field, JsonValue

from luthier.errors import LuthierError
from luthier.server.api.models import (
    ERRORS,
    Document,
    Given,
    GivenYaml,
    Told,
    countable,
    where_and_what,
)
from luthier.server.api.scripts import script_of
from luthier.server.api.yaml_text import yaml_text
from luthier.server.context import Server, Viewer
from luthier.server.operations import SOURCE, parsed
from luthier.space.serial import parameter_to_json

router = APIRouter(tags=["drafts"], responses=ERRORS)


class CheckedExperiment(Told):
    """What is described, with the script of the default, or what is wrong with it."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ok": False, "error": "budget: 0 is not a whole number", "line": 1}]}
    )

    ok: bool
    error: str | None = None
    line: int | None = None
    name: str | None = None
    size: int | None = None
    """How many configurations there are; null if there is no end to them."""
    notes: list[str] = Field(default_factory=list)
    default: dict[str, JsonValue] | None = None
    script: str | None = None
    command: str | None = None
    parameters: list[dict[str, JsonValue]] = Field(default_factory=list)


class GivenDocument(Given):
    """What a YAML file holds."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"document": {"components": {"dd": {}}}}]})

    document: Document


class TextOfDocument(Told):
    """The text of a YAML file."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"yaml": "components:\n  dd: {}\n"}]})

    yaml: str


class HeldDocument(Told):
    """What a YAML file holds."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"document": {"components": {"dd": {}}}}]})

    document: dict[str, JsonValue]


@router.post("/experiments/check", summary="Check an experiment, and see what it would run")
def check_experiment(server: Server, _: Viewer, given: GivenYaml) -> CheckedExperiment:
    """Nothing is created or run."""
    try:
        found = server.operations.check(given.yaml)
        space = found.experiment.space
        script = script_of(found.experiment, space.default)
    except LuthierError as error:
        line, problem = where_and_what(str(error), SOURCE)
        return CheckedExperiment(ok=False, error=problem, line=line)
    return CheckedExperiment.model_validate(
        {
            "ok": True,
            "name": found.name,
            "size": countable(space.size),
            "notes": list(found.notes),
            "default": dict(space.default),
            "script": script.script,
            "command": script.command,
            "parameters": [parameter_to_json(parameter) for parameter in space.parameters],
        }
    )


@router.post("/experiments/yaml", summary="Write a document as YAML")
def write_yaml(_: Viewer, given: GivenDocument) -> TextOfDocument:
    """The other way round: POST /experiments/document."""
    return TextOfDocument(yaml=yaml_text(given.document))


@router.post("/experiments/document", summary="Read a document from YAML")
def read_yaml(_: Viewer, given: GivenYaml) -> HeldDocument:
    """Only whether it is YAML is checked."""
    return HeldDocument.model_validate({"document": parsed(given.yaml, SOURCE).values})
