"""What was run and what came out: runs, configurations, logs."""

import os
import stat
from pathlib import Path as FilePath
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import Field

from luthier.analysis.plain import json_text
from luthier.analysis.result import Result
from luthier.analysis.serial import outcome_fields, trial_json
from luthier.errors import NotFoundError
from luthier.server.api.models import (
    ERRORS,
    LARGEST_NUMBER,
    After,
    Given,
    Id,
    Limit,
    Outcome,
    Page,
    RunTold,
    TrialTold,
)
from luthier.server.context import Server, Viewer
from luthier.server.live import told_run
from luthier.trial import Purpose, Run, Trial

router = APIRouter(tags=["runs"], responses=ERRORS)

NDJSON = "application/x-ndjson"
MOST_LOG_BYTES = 1_000_000


class Wanted(Given):
    """Which runs to list."""

    outcome: Outcome | None = None
    """Only those that ended so."""
    trial: Annotated[int, Field(ge=0, le=LARGEST_NUMBER)] | None = None
    """Only those of one trial."""
    purpose: Purpose | None = None
    """Only those made for this."""
    after: Annotated[int, Field(ge=0, le=LARGEST_NUMBER)] | None = None
    """`next` of the page before: the number of its last run."""
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    """How many to list at most."""

    def fits(self, run: Run) -> bool:
        """Whether a run is one of them."""
        return (
            (self.after is None or run.number > self.after)
            and (self.trial is None or run.trial == self.trial)
            and (self.purpose is None or run.purpose == self.purpose)
            and (self.outcome is None or outcome_fields(run.outcome)[0] == self.outcome)
        )


Number = Annotated[int, Path(ge=0, le=LARGEST_NUMBER, description="The number of the run.", examples=[0])]


@router.get(
    "/experiments/{experiment_id}/runs",
    summary="The runs of an experiment",
    response_model=Page[RunTold],
    responses={200: {"content": {NDJSON: {"schema": {"type": "string"}}}}},
)
def list_runs(
    request: Request, server: Server, who: Viewer, experiment_id: Id, wanted: Annotated[Wanted, Query()]
) -> Response | Page[RunTold]:
    """In the order in which they were submitted. With `Accept: application/x-ndjson` all of them, one a line."""
    result = server.results.of(server.operations.seen(who, experiment_id))
    found = filter(wanted.fits, result.runs)
    if NDJSON in request.headers.get("accept", ""):
        return StreamingResponse((f"{json_text(told_run(run))}\n" for run in found), media_type=NDJSON)
    items = [RunTold.model_validate(told_run(run)) for run, _ in zip(found, range(wanted.limit), strict=False)]
    return Page(items=items, next=items[-1].run if len(items) == wanted.limit else None)


@router.get("/experiments/{experiment_id}/trials", summary="The configurations that were tried")
def list_trials(
    server: Server,
    who: Viewer,
    experiment_id: Id,
    sort: Annotated[Literal["estimate", "number"], Query(description="The best or the first one first.")] = "estimate",
    after: After = None,
    limit: Limit = 50,
) -> Page[TrialTold]:
    """Here `after` counts how many of the list were seen."""
    record = server.operations.seen(who, experiment_id)
    numbered = list(enumerate(server.results.of(record).trials))
    if sort == "estimate":
        _, numbered = server.results.worked_out(record, "best first", _best_first)
    first = after or 0
    items = [
        TrialTold.model_validate({"number": number, **trial_json(trial)})
        for number, trial in numbered[first : first + limit]
    ]
    return Page(items=items, next=first + limit if first + limit < len(numbered) else None)


@router.get(
    "/experiments/{experiment_id}/runs/{number}/log",
    summary="What a run printed",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"example": "1000+0 records in\n"}}}},
)
def get_log(
    server: Server,
    who: Viewer,
    experiment_id: Id,
    number: Number,
    stream: Annotated[Literal["stdout", "stderr"], Query(description="Which of both.")] = "stdout",
    tail_bytes: Annotated[int, Query(ge=1, le=MOST_LOG_BYTES, description="How much of its end.")] = 65536,
) -> Response:
    """The end of it; bytes that are no UTF-8 are replaced."""
    record = server.operations.seen(who, experiment_id)
    run = next((run for run in server.results.of(record).runs if run.number == number), None)
    if run is None:
        raise NotFoundError(f"experiment {experiment_id} has no run {number}")
    if run.logs is None:
        raise NotFoundError(f"run {number} of experiment {experiment_id} has no log")
    return PlainTextResponse(_tail(FilePath(run.logs) / stream, tail_bytes).decode("utf-8", "replace"))


def _best_first(result: Result) -> list[tuple[int, Trial]]:
    sign = result.experiment.objective.sign

    def rank(numbered: tuple[int, Trial]) -> tuple[bool, float]:
        guess = numbered[1].estimate
        return guess is None, 0.0 if guess is None else sign * guess.value

    return sorted(enumerate(result.trials), key=rank)


def _tail(path: FilePath, size_bytes: int) -> bytes:
    """The end of a plain file; what a job may have put in its place, such as a link to another file, is not read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        raise NotFoundError(f"there is no {path.name} of this run any more") from None
    with os.fdopen(handle, "rb") as stream:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise NotFoundError(f"the {path.name} of this run is no file any more")
        stream.seek(max(found.st_size - size_bytes, 0))
        return stream.read(size_bytes)
