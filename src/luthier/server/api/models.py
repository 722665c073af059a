"""What the API takes and tells, as models: they check what comes in, and describe both in the OpenAPI document."""

import re
from typing import Annotated, Generic, Literal, TypeVar

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

from luthier.analysis.plain import plain
from luthier.server.operations import LONGEST_TEXT
from luthier.server.texts import check_body, check_line

LARGEST_NUMBER = 2**31 - 1
T = TypeVar("T")


def _is_finite(value: JsonValue) -> JsonValue:
    if plain(value) != value:
        raise ValueError("holds a number that is not finite")
    return value


Id = Annotated[int, Path(ge=1, le=LARGEST_NUMBER, description="The number of the experiment.", examples=[1])]
Limit = Annotated[int, Query(ge=1, le=500, description="How many to list at most.")]
Before = Annotated[int | None, Query(ge=1, le=LARGEST_NUMBER, description="`next` of the page before.")]
After = Annotated[int | None, Query(ge=0, le=LARGEST_NUMBER, description="`next` of the page before.")]
Short = Annotated[str, Field(max_length=200), AfterValidator(check_line)]
Yaml = Annotated[str, Field(max_length=LONGEST_TEXT, description="The text of a YAML file.")]
Document = Annotated[dict[str, JsonValue], AfterValidator(_is_finite)]
Outcome = Literal["running", "completed", "failed", "timed out", "pruned", "lost"]
Status = Literal["queued", "running", "interrupted", "stopped", "finished", "failed"]


class Given(BaseModel):
    """Something that comes in: what nobody knows is an error."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _is_sound(cls, values: object) -> object:
        check_body(values)
        return values


class Told(BaseModel):
    """Something that goes out: made of whatever was measured, always valid JSON."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, values: object) -> object:
        return plain(values)


def countable(size: int | None) -> int | None:
    """The size of a space as a number that JSON carries exactly; None if there is no end to it, or nearly so."""
    return size if size is not None and size < 2**53 else None


def where_and_what(problem: str, source: str) -> tuple[int | None, str]:
    """The line that an error names and the rest of it: `experiment.yaml:3: budget: ...` is `3` and `budget: ...`."""
    found = re.match(rf"{re.escape(source)}(?::(\d+))?: ", problem)
    if found is None:
        return None, problem
    return int(found[1]) if found[1] else None, problem[found.end() :]


class Problem(Told):
    """What went wrong."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"error": "there is no experiment 7"}]})

    error: str
    """One line."""


class Page(Told, Generic[T]):
    """Part of a list."""

    items: list[T]
    next: int | None
    """Where to go on, as `before` or `after`; null at the end."""


ERRORS: dict[int | str, dict[str, object]] = {
    code: {"description": text, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    for code, text in (
        (400, "This is no request."),
        (401, "Nobody known: log in, or send a token."),
        (403, "Not allowed."),
        (404, "Not there, or not to be seen."),
        (409, "Not now."),
        (413, "Too long."),
        (422, "What was sent is wrong."),
        (503, "The store is away; try again."),
    )
}
"""What any operation may answer instead."""


COMPONENT_EXAMPLE = (
    "components:\n  dd:\n    command: dd if=/dev/zero of=/dev/null count=1000\n    parameters:\n"
    "      bs: {type: int, default: 512, cmd_var: true, min: 512, max: 65536, step: 2, step_type: multiplicative}\n"
)
EXPERIMENT_EXAMPLE = (
    f"experiment: {{name: first try, budget: 20}}\ncomponents: {{dd: {{}}}}\n{COMPONENT_EXAMPLE}".replace(
        "\ncomponents:\n", "\ndefinitions:\n"
    )
)


class GivenYaml(Given):
    """The text of a YAML file."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"yaml": EXPERIMENT_EXAMPLE}]})

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


class Summary(Told):
    """An experiment in a listing; what it came to is null until it ends."""

    model_config = ConfigDict(json_schema_extra={"examples": [SUMMARY_EXAMPLE]})

    id: int
    name: str
    status: Status
    author: str
    """Who launched it; empty for the command line."""
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
    """What `speedup` is: how many times better, or by how much where values are not positive."""
    cost_s: float | None
    mine: bool
    may_change: bool


class RunTold(Told):
    """One run."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
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
                    "config": {"bs": 512},
                    "metrics": {"wall": 0.68},
                    "has_log": True,
                }
            ]
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
    config: dict[str, JsonValue]
    metrics: dict[str, float | None]
    has_log: bool


class EstimateTold(Told):
    """What a configuration's runs come to, with a 95 % interval where there are several."""

    value: float | None
    low: float | None
    high: float | None
    count: int
    deviation: float | None


class TrialTold(Told):
    """A configuration under test."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "number": 3,
                    "config": {"bs": 4096},
                    "estimate": {"value": 0.52, "low": 0.51, "high": 0.53, "count": 4, "deviation": 0.01},
                    "others": [],
                    "runs": 4,
                }
            ]
        }
    )

    number: int
    config: dict[str, JsonValue]
    estimate: EstimateTold | None
    others: list[EstimateTold] = []
    runs: int
