"""Experiments that are still being edited: checks, previews, and conversion between YAML and JSON."""

from fastapi import APIRouter
from pydantic import Field, JsonValue

from luthier.errors import LuthierError
from luthier.server.api.models import (
    ERRORS,
    Document,
    RequestModel,
    ResponseModel,
    YamlText,
    exact_size,
    example,
    split_location,
)
from luthier.server.api.scripts import script_of
from luthier.server.api.yaml_text import yaml_text
from luthier.server.context import Server, Viewer
from luthier.server.operations import SOURCE, parsed
from luthier.space.serial import parameter_to_json

router = APIRouter(tags=["drafts"], responses=ERRORS)


class CheckedExperiment(ResponseModel):
    """The described experiment with the script of its default configuration, or the error in the text."""

    model_config = example({"ok": False, "error": "budget: 0 is not a whole number", "line": 1})

    ok: bool
    error: str | None = None
    line: int | None = None
    name: str | None = None
    size: int | None = None
    """The number of configurations in the space; null if it is infinite."""
    notes: list[str] = Field(default_factory=list)
    default: dict[str, JsonValue] | None = None
    script: str | None = None
    command: str | None = None
    parameters: list[dict[str, JsonValue]] = Field(default_factory=list)


class DocumentRequest(RequestModel):
    """The contents of a YAML file as JSON."""

    model_config = example({"document": {"components": {"dd": {}}}})

    document: Document


class YamlResponse(ResponseModel):
    """The text of a YAML file."""

    model_config = example({"yaml": "components:\n  dd: {}\n"})

    yaml: str


class DocumentResponse(ResponseModel):
    """The contents of a YAML file as JSON."""

    model_config = example({"document": {"components": {"dd": {}}}})

    document: dict[str, JsonValue]


@router.post("/experiments/check", summary="Check an experiment and preview its script")
def check_experiment(server: Server, who: Viewer, given: YamlText) -> CheckedExperiment:
    """Nothing is created or run."""
    try:
        found = server.operations.check(given.yaml, who)
        space = found.experiment.space
        script = script_of(found.experiment, space.default)
    except LuthierError as error:
        line, problem = split_location(str(error), SOURCE)
        return CheckedExperiment(ok=False, error=problem, line=line)
    return CheckedExperiment.model_validate(
        {
            "ok": True,
            "name": found.name,
            "size": exact_size(space.size),
            "notes": list(found.notes),
            "default": dict(space.default),
            "script": script.script,
            "command": script.command,
            "parameters": [parameter_to_json(parameter) for parameter in space.parameters],
        }
    )


@router.post("/experiments/yaml", summary="Convert a JSON document to YAML")
def write_yaml(_: Viewer, given: DocumentRequest) -> YamlResponse:
    """For the other direction, see POST /experiments/document."""
    return YamlResponse(yaml=yaml_text(given.document))


@router.post("/experiments/document", summary="Convert YAML to a JSON document")
def read_yaml(_: Viewer, given: YamlText) -> DocumentResponse:
    """Only the YAML syntax is checked."""
    return DocumentResponse.model_validate({"document": parsed(given.yaml, SOURCE).values})
