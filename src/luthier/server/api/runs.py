"""Runs, trials and logs of an experiment."""

from itertools import islice
from pathlib import Path as FilePath
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import Field

from luthier.errors import NotFoundError
from luthier.result.serial import json_text, trial_json
from luthier.result.trials import best_first
from luthier.runners.output_files import end_of_file
from luthier.server.api.models import (
    ERRORS,
    LARGEST_NUMBER,
    After,
    Id,
    Limit,
    Outcome,
    Page,
    RequestModel,
    RunResponse,
    TrialResponse,
)
from luthier.server.context import Server, Viewer
from luthier.server.experiment_events import public_run
from luthier.trial import Purpose, Run, outcome_name

router = APIRouter(tags=["runs"], responses=ERRORS)

NDJSON = "application/x-ndjson"
MOST_LOG_BYTES = 1_000_000


class RunFilter(RequestModel):
    """A filter for runs."""

    outcome: Outcome | None = None
    """Only runs with this outcome."""
    trial: Annotated[int, Field(ge=0, le=LARGEST_NUMBER)] | None = None
    """Only runs of this trial."""
    purpose: Purpose | None = None
    """Only runs with this purpose."""
    after: Annotated[int, Field(ge=0, le=LARGEST_NUMBER)] | None = None
    """`next` of the previous page: the number of its last run."""
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    """The maximum number of items."""

    def fits(self, run: Run) -> bool:
        """Whether a run passes the filter."""
        return (
            (self.after is None or run.number > self.after)
            and (self.trial is None or run.trial == self.trial)
            and (self.purpose is None or run.purpose == self.purpose)
            and (self.outcome is None or outcome_name(run.outcome) == self.outcome)
        )


Number = Annotated[int, Path(ge=0, le=LARGEST_NUMBER, description="The number of the run.", examples=[0])]


@router.get(
    "/experiments/{experiment_id}/runs",
    summary="List the runs of an experiment",
    response_model=Page[RunResponse],
    responses={200: {"content": {NDJSON: {"schema": {"type": "string"}}}}},
)
def list_runs(
    request: Request, server: Server, who: Viewer, experiment_id: Id, wanted: Annotated[RunFilter, Query()]
) -> Response | Page[RunResponse]:
    """In order of submission. With `Accept: application/x-ndjson`, all runs, one per line."""
    record = server.operations.visible(who, experiment_id)
    found = (public_run(run, record.jobs) for run in server.results.of(record).runs if wanted.fits(run))
    if NDJSON in request.headers.get("accept", ""):
        return StreamingResponse((f"{json_text(run)}\n" for run in found), media_type=NDJSON)
    items = [RunResponse.model_validate(run) for run in islice(found, wanted.limit)]
    return Page(items=items, next=items[-1].run if len(items) == wanted.limit else None)


@router.get("/experiments/{experiment_id}/trials", summary="List the trials of an experiment")
def list_trials(
    server: Server,
    who: Viewer,
    experiment_id: Id,
    sort: Annotated[
        Literal["estimate", "number"], Query(description="Sort by estimate (best first) or by number.")
    ] = "estimate",
    after: After = None,
    limit: Limit = 50,
) -> Page[TrialResponse]:
    """A trial is a configuration with its runs. Here `after` is the number of items to skip."""
    record = server.operations.visible(who, experiment_id)
    numbered = list(enumerate(server.results.of(record).shown_trials))
    if sort == "estimate":
        _, numbered = server.results.derived(
            record, "best first", lambda result: best_first(result.experiment, result.shown_trials)
        )
    first = after or 0
    items = [
        TrialResponse.model_validate({"number": number, **trial_json(trial)})
        for number, trial in numbered[first : first + limit]
    ]
    return Page(items=items, next=first + limit if first + limit < len(numbered) else None)


@router.get(
    "/experiments/{experiment_id}/runs/{number}/log",
    summary="Get the output of a run",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"example": "1000+0 records in\n"}}}},
)
def get_log(
    server: Server,
    who: Viewer,
    experiment_id: Id,
    number: Number,
    stream: Annotated[Literal["stdout", "stderr"], Query(description="Standard output or standard error.")] = "stdout",
    tail_bytes: Annotated[int, Query(ge=1, le=MOST_LOG_BYTES, description="The number of bytes from the end.")] = 65536,
) -> Response:
    """The end of the output; bytes that are not valid UTF-8 are replaced."""
    record = server.operations.visible(who, experiment_id)
    run = next((run for run in server.results.of(record).runs if run.number == number), None)
    if run is None:
        raise NotFoundError(f"experiment {experiment_id} has no run {number}")
    if run.logs is None:
        raise NotFoundError(f"run {number} of experiment {experiment_id} has no log")
    return PlainTextResponse(end_of_file(FilePath(run.logs) / stream, tail_bytes).decode("utf-8", "replace"))
