"""Models of the requests and responses of the API: they validate requests and define the OpenAPI document."""

import re
from typing import Annotated, Generic, Literal, TypeVar

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

from luthier.result.serial import plain
from luthier.server.operations import LONGEST_TEXT
from luthier.server.text_checks import check_body, check_line

LARGEST_NUMBER = 2**31 - 1
T = TypeVar("T")


def _is_finite(value: JsonValue) -> JsonValue:
    if plain(value) != value:
        raise ValueError("contains a number that is not finite")
    return value


Id = Annotated[int, Path(ge=1, le=LARGEST_NUMBER, description="The number of the experiment.", examples=[1])]
Limit = Annotated[int, Query(ge=1, le=500, description="The maximum number of items.")]
Before = Annotated[int | None, Query(ge=1, le=LARGEST_NUMBER, description="`next` of the previous page.")]
After = Annotated[int | None, Query(ge=0, le=LARGEST_NUMBER, description="`next` of the previous page.")]
Short = Annotated[str, Field(max_length=200), AfterValidator(check_line)]
Yaml = Annotated[str, Field(max_length=LONGEST_TEXT, description="The text of a YAML file.")]
Document = Annotated[dict[str, JsonValue], AfterValidator(_is_finite)]
Outcome = Literal["running", "completed", "failed", "timed out", "pruned", "lost"]
Status = Literal["queued", "running", "interrupted", "stopped", "finished", "no result", "failed"]


def example(values: dict[str, JsonValue]) -> ConfigDict:
    """The configuration of a model with one example for the OpenAPI document."""
    return ConfigDict(json_schema_extra={"examples": [values]})


class RequestModel(BaseModel):
    """A request; unknown fields are an error."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _is_sound(cls, values: object) -> object:
        check_body(values)
        return values


class ResponseModel(BaseModel):
    """A response; always valid JSON, whatever was measured."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, values: object) -> object:
        return plain(values)


def exact_size(size: int | None) -> int | None:
    """The size of a space if JSON can represent it exactly; None if it is larger or infinite."""
    return size if size is not None and size < 2**53 else None


def split_location(problem: str, source: str) -> tuple[int | None, str]:
    """Split the line number from an error: `experiment.yaml:3: budget: ...` gives `3` and `budget: ...`."""
    found = re.match(rf"{re.escape(source)}(?::(\d+))?: ", problem)
    if found is None:
        return None, problem
    return int(found[1]) if found[1] else None, problem[found.end() :]


class Problem(ResponseModel):
    """An error."""

    model_config = example({"error": "experiment 7 does not exist"})

    error: str
    """The message, in one line."""


class Page(ResponseModel, Generic[T]):
    """Part of a list."""

    items: list[T]
    next: int | None
    """The `before` or `after` of the next page; null on the last page."""


ERRORS: dict[int | str, dict[str, object]] = {
    code: {"description": text, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    for code, text in (
        (400, "Invalid request."),
        (401, "Not logged in: log in, or send a token."),
        (403, "Not allowed."),
        (404, "Not found, or not visible to you."),
        (409, "Not possible in the current state."),
        (413, "The request is too long."),
        (422, "The request contains invalid values."),
        (429, "Too many attempts, or too much work; see `Retry-After`."),
        (503, "The store is not available; try again later."),
    )
}
"""The error responses of all operations."""


COMPONENT_EXAMPLE = (
    "components:\n  dd:\n    command: dd if=/dev/zero of=/dev/null count=1000\n    parameters:\n"
    "      bs: {type: int, default: 512, cmd_var: true, min: 512, max: 65536, step: 2, step_type: multiplicative}\n"
)
EXPERIMENT_EXAMPLE = (
    f"experiment: {{name: first try, budget: 20}}\ncomponents: {{dd: {{}}}}\n{COMPONENT_EXAMPLE}".replace(
        "\ncomponents:\n", "\ndefinitions:\n"
    )
)


class YamlText(RequestModel):
    """The text of a YAML file."""

    model_config = example({"yaml": EXPERIMENT_EXAMPLE})

    yaml: Yaml


SUMMARY_EXAMPLE: dict[str, JsonValue] = {
    "id": 1,
    "name": "first try",
    "status": "finished",
    "author": "ada",
    "shared": False,
    "created_at": 1.7e9,
    "runs": 20,
    "budget": 20,
    "verdict": "1.31x faster than the default (1.28 to 1.34)",
    "improved": True,
    "speedup": 1.31,
    "low": 1.28,
    "high": 1.34,
    "value": 0.52,
    "kind": "ratio",
    "cost_s": 12.5,
    "mine": True,
    "may_change": True,
}


class Summary(ResponseModel):
    """An experiment in a list; the fields of the result are null until it ends."""

    model_config = example(SUMMARY_EXAMPLE)

    id: int
    name: str
    status: Status
    author: str
    """The user who launched it; empty for the command line."""
    shared: bool
    created_at: float
    runs: int
    budget: int | None
    verdict: str | None
    improved: bool | None
    speedup: float | None
    low: float | None
    high: float | None
    value: float | None
    kind: Literal["ratio", "difference"] | None
    """The meaning of `speedup`: a ratio to the default or, where values are not positive, a difference in its unit."""
    cost_s: float | None
    mine: bool
    may_change: bool


class RunResponse(ResponseModel):
    """One run."""

    model_config = example(
        {
            "run": 0,
            "trial": 0,
            "purpose": "default",
            "outcome": "completed",
            "value": 0.68,
            "others": [],
            "at_least": None,
            "reason": None,
            "submitted_at": 1.7e9,
            "started_at": 1.7e9,
            "duration_s": 0.68,
            "batch_job": "4711",
            "config": {"bs": 512},
            "metrics": {"wall": 0.68},
            "has_log": True,
        }
    )

    run: int
    trial: int
    purpose: Literal["default", "search", "verify"]
    outcome: Outcome
    value: float | None
    others: list[float | None]
    at_least: float | None
    reason: str | None
    submitted_at: float
    started_at: float | None
    duration_s: float | None
    batch_job: str | None
    """The number of its job in the batch system; null without one."""
    config: dict[str, JsonValue]
    metrics: dict[str, float | None]
    has_log: bool


class EstimateResponse(ResponseModel):
    """The estimated value of a configuration, with a 95 % interval if it ran more than once."""

    value: float | None
    low: float | None
    high: float | None
    count: int
    deviation: float | None


class TrialResponse(ResponseModel):
    """A configuration under test."""

    model_config = example(
        {
            "number": 3,
            "config": {"bs": 4096},
            "estimate": {"value": 0.52, "low": 0.51, "high": 0.53, "count": 4, "deviation": 0.01},
            "others": [],
            "runs": 4,
        }
    )

    number: int
    config: dict[str, JsonValue]
    estimate: EstimateResponse | None
    others: list[EstimateResponse] = []
    runs: int
