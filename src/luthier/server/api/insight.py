"""Analyses of an experiment, the configuration to use, exports and reports."""

import io
import tempfile
import time
from dataclasses import asdict
from pathlib import Path as FilePath
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import JsonValue

from luthier.errors import InvalidInputError, NotFoundError
from luthier.figures import FIGURES
from luthier.launch import config_from
from luthier.report.export import write_runs
from luthier.result.apply import applied
from luthier.result.findings import Findings, stored_findings
from luthier.result.importance import importances, partial_dependence
from luthier.result.result import Result
from luthier.result.search_speedup import beside_random
from luthier.result.serial import importance_json, trial_json
from luthier.server.api.models import ERRORS, Id, ResponseModel, TrialResponse, example
from luthier.server.api.scripts import script_of
from luthier.server.context import Server, Viewer
from luthier.server.operations import ConflictError

router = APIRouter(tags=["insight"], responses=ERRORS)

_MEDIA = {"csv": "text/csv; charset=utf-8", "json": "application/json", "parquet": "application/vnd.apache.parquet"}
_PREFIX = "p."


class ImportanceResponse(ResponseModel):
    """The importance of a parameter: its share of the variance with interactions, and `alone` without them."""

    model_config = example({"parameter": "bs", "share": 0.9, "low": 0.8, "high": 0.95, "alone": 0.9})

    parameter: str
    share: float | None
    low: float | None
    high: float | None
    alone: float | None


class ImportancesResponse(ResponseModel):
    """The parameters, most important first, and the share of the variance that they leave unexplained.

    Without any parameters, `note` says why: too few measurements, or no effect that can be told from noise.
    """

    model_config = example({"parameters": [], "unexplained": 1.0, "note": "no effect of any parameter ..."})

    parameters: list[ImportanceResponse]
    unexplained: float | None
    note: str | None


class CurveResponse(ResponseModel):
    """How the value depends on one parameter, averaged over the others; null where nothing was measured."""

    model_config = example(
        {"parameter": "bs", "values": [512, 4096], "mean": [0.7, 0.5], "low": [0.6, 0.5], "high": [0.8, 0.6]}
    )

    parameter: str
    values: list[JsonValue]
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


class ScriptResponse(ResponseModel):
    """The script of a configuration, and the command that runs it."""

    model_config = example(
        {"config": {"bs": 4096}, "script": "#!/bin/bash\ndd bs=4096\n", "command": "/bin/bash SCRIPT"}
    )

    config: dict[str, JsonValue]
    script: str
    command: str


class AppliedResponse(ResponseModel):
    """The configuration to use, as a command line or script and as shell variables."""

    model_config = example(
        {"config": {"bs": 4096}, "line": "dd bs=4096", "variables": "export bs=4096", "improved": True}
    )

    config: dict[str, JsonValue]
    line: str
    variables: str
    improved: bool


@router.get("/experiments/{experiment_id}/importance", summary="Parameter importance")
async def get_importance(server: Server, who: Viewer, experiment_id: Id) -> ImportancesResponse:
    """Computed from a model of the measurements; noise is a part of the variance."""

    def work() -> ImportancesResponse:
        record = server.operations.visible(who, experiment_id)
        found = server.results.derived(record, "importance", importances)[1]
        return ImportancesResponse.model_validate(importance_json(found))

    return await server.results.run_slow(work)


@router.get("/experiments/{experiment_id}/front", summary="The Pareto front")
def get_front(server: Server, who: Viewer, experiment_id: Id) -> list[TrialResponse]:
    """The configurations that no other one beats in all objectives; with one objective, the best configuration."""
    result = server.results.of(server.operations.visible(who, experiment_id))
    numbers = {trial.config: number for number, trial in enumerate(result.trials)}
    return [
        TrialResponse.model_validate({"number": numbers[trial.config], **trial_json(trial)}) for trial in result.front
    ]


@router.get("/experiments/{experiment_id}/dependence/{parameter}", summary="Partial dependence on a parameter")
async def get_dependence(
    server: Server,
    who: Viewer,
    experiment_id: Id,
    parameter: Annotated[str, Path(max_length=200, examples=["bs"])],
) -> CurveResponse:
    """Predicted by a model of the measurements, averaged over the values of the other parameters."""

    def work() -> CurveResponse:
        record = server.operations.visible(who, experiment_id)
        if parameter not in server.results.of(record).experiment.space.names:
            raise NotFoundError(f"experiment {experiment_id} has no parameter {parameter}")
        try:
            found = server.results.derived(
                record, f"dependence {parameter}", lambda result: partial_dependence(result, parameter)
            )[1]
        except InvalidInputError as error:  # too few measurements, or nothing but noise
            raise ConflictError(str(error)) from None
        return CurveResponse.model_validate(asdict(found))

    return await server.results.run_slow(work)


@router.get("/experiments/{experiment_id}/script", summary="Get the script of a configuration")
def get_script(request: Request, server: Server, who: Viewer, experiment_id: Id) -> ScriptResponse:
    """By default of the recommended configuration; with `?p.NAME=VALUE`, of the default with these values changed."""
    result = server.results.of(server.operations.visible(who, experiment_id))
    space = result.experiment.space
    chosen = [
        f"{name.removeprefix(_PREFIX)}={value}"
        for name, value in request.query_params.multi_items()
        if name.startswith(_PREFIX)
    ]
    config = config_from(space, chosen) if chosen else result.recommended or space.default
    script = script_of(result.experiment, config)
    return ScriptResponse(config=dict(config), script=script.script, command=script.command)


@router.get("/experiments/{experiment_id}/apply", summary="Get the configuration to use")
def get_applied(server: Server, who: Viewer, experiment_id: Id) -> AppliedResponse:
    """As a command line or script, and as shell variables."""
    result = server.results.of(server.operations.visible(who, experiment_id))
    if result.recommended is None:
        raise ConflictError(f"nothing to apply: {result.verdict}")
    found = applied(result, best=False)
    return AppliedResponse(
        config=dict(found.config), line=found.line, variables=found.variables, improved=result.improved
    )


@router.get(
    "/experiments/{experiment_id}/export",
    summary="Export all runs",
    response_class=Response,
    responses={
        200: {
            "content": {
                "text/csv": {"example": "run,trial,purpose\n0,0,default\n"},
                "application/json": {"schema": {"type": "array", "items": {"type": "object"}}},
                "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
            }
        }
    },
)
def export_runs(
    server: Server,
    who: Viewer,
    experiment_id: Id,
    form: Annotated[Literal["csv", "json", "parquet"], Query(alias="format")] = "csv",
) -> Response:
    """As a CSV, JSON or Parquet file."""
    result = server.results.of(server.operations.visible(who, experiment_id))
    return Response(
        _exported(result, form), headers=_as_file(f"luthier-{experiment_id}.{form}"), media_type=_MEDIA[form]
    )


@router.get(
    "/experiments/{experiment_id}/report",
    summary="Download a report",
    response_class=HTMLResponse,
    responses={200: {"content": {"text/html": {"example": "<!doctype html>"}}}},
)
async def get_report(server: Server, who: Viewer, experiment_id: Id) -> Response:
    """One HTML file that needs no network: result, figures, settings, and how to repeat the experiment."""

    def work() -> bytes:
        record = server.operations.visible(who, experiment_id)
        result = beside_random(server.store.history, record, server.results.of(record))
        return _reported(stored_findings(server.store, record, result, time.time()))

    return HTMLResponse(await server.results.run_slow(work), headers=_as_file(f"luthier-report-{experiment_id}.html"))


def _reported(findings: Findings) -> bytes:
    from luthier.report import report_html

    drawn = {name: drawing(findings.result) for name, drawing in FIGURES.items()}
    figures = {name: figure for name, figure in drawn.items() if figure is not None}
    return report_html(findings, figures).encode("utf-8", "replace")


def _exported(result: Result, form: str) -> bytes:
    if form == "parquet":
        with tempfile.TemporaryDirectory() as folder:
            path = FilePath(folder) / "runs.parquet"
            write_runs(result.experiment, result.runs, form, path)
            return path.read_bytes()
    stream = io.StringIO()
    write_runs(result.experiment, result.runs, form, stream)
    return stream.getvalue().encode("utf-8", "replace")


def _as_file(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}
