"""Jobs that are being submitted: which configuration each gets."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.responses import PlainTextResponse
from fastapi.security import HTTPBearer
from pydantic import Field, JsonValue
from starlette.concurrency import run_in_threadpool

from luthier.errors import InvalidInputError, NotFoundError
from luthier.server.api.models import ERRORS, LARGEST_NUMBER, Before, Limit, Page, RequestModel, ResponseModel, example
from luthier.server.authentication import ForbiddenError, Principal
from luthier.server.context import Context, Server, Viewer, address_of, context_of, require_user
from luthier.store.server_store import shown_author
from luthier.submission.answer_signature import NONCE_BYTES, NONCE_HEADER, SIGNATURE_HEADER
from luthier.submission.job import LONGEST_SCRIPT as READ_OF_SCRIPT
from luthier.submission.matching import job_of_script
from luthier.submission.server.cpu_budget import client_of
from luthier.submission.server.queue import AskedJob, RecordedDecision
from luthier.submission.server.state import submission_of
from luthier.submission.store.submitted import Decision, NewSubmission, Submission
from luthier.submission.submitted_job import JobText, is_refused

router = APIRouter(tags=["submitted jobs"], responses=ERRORS)

Id = Annotated[int, Path(ge=1, le=LARGEST_NUMBER, description="The number of the submitted job.", examples=[1])]

LONGEST_SCRIPT = 256 * 1024
"""Most characters of a script; a client does not ask about longer ones. Only `READ_OF_SCRIPT` are read."""

_DAY_S = 24 * 3600
_NONCE = f"^[0-9a-f]{{{2 * NONCE_BYTES}}}$"
_JOB: dict[str, JsonValue] = {
    "user": "ada",
    "name": "stencil",
    "script": "#!/bin/bash\nsrun ./stencil --size 4096\n",
    "options": ["--nodes=4"],
}
_BEARER = HTTPBearer(auto_error=False)


class SubmittedJob(RequestModel):
    """A job that is being submitted. The script is read and not stored."""

    model_config = example(_JOB)

    user: Annotated[str, Field(min_length=1, max_length=200)]
    """The name of the user who submits it."""
    script: Annotated[str, Field(max_length=LONGEST_SCRIPT)]
    options: Annotated[list[Annotated[str, Field(max_length=10_000)]], Field(max_length=1_000)] = Field(
        default_factory=list
    )
    """The options on the command line of sbatch."""
    name: Annotated[str, Field(max_length=1_000)] | None = None
    """The name of the job; by default as sbatch finds it."""
    file: Annotated[str, Field(max_length=10_000)] = "sbatch"
    """The name of the script's file, which is the name of a job without one."""
    variables: Annotated[list[Annotated[str, Field(max_length=1_000)]], Field(max_length=5_000)] = Field(
        default_factory=list
    )
    """The names of the environment variables that are set already; they stay as they are. Values are not sent."""
    utc_offset_s: Annotated[int, Field(gt=-_DAY_S, lt=_DAY_S)] | None = None
    """The time zone of the cluster, in seconds east of UTC; by default that of the server."""
    via: Literal["environment", "export"] = "environment"
    """How variables are passed on: `export` is the option of sbatch, which cannot pass commas."""


class DecidedJob(ResponseModel):
    """What was decided about a job; without a number it was not recorded."""

    model_config = example(
        {
            "id": 7,
            "decision": "set",
            "environment": {"OMPI_MCA_coll_tuned_bcast_algorithm": "6"},
            "reason": "sets OMPI_MCA_coll_tuned_bcast_algorithm=6 as found by experiment 12 (similarity 0.93)",
            "component": "openmpi",
            "record_id": 3,
            "experiment_id": 12,
            "score": 0.93,
            "by_field": {"user": 1.0, "name": 0.8},
        }
    )

    id: int | None
    decision: Decision | Literal["refused"]
    """`set`: the variables are to be set; `default`: it matched, and keeps the default for comparison; `none`: nothing
    is similar enough; `unused`: it matched, but cannot get the configuration; `refused`: the job wants to be left
    alone."""
    environment: dict[str, str] = Field(default_factory=dict)
    reason: str
    """One line for the user."""
    component: str | None = None
    record_id: int | None = None
    experiment_id: int | None = None
    score: float | None = None
    by_field: dict[str, float] | None = None
    """The similarity of each field, from 0 to 1."""


class SubmissionSummary(DecidedJob):
    """A submitted job, what was decided about it and how it ended."""

    model_config = example(
        {
            "id": 7,
            "decision": "none",
            "reason": "no tuned job is similar enough",
            "author": "ada",
            "submitted_at": 1.7e9,
            "user": "ada",
            "name": "stencil",
            "program": "stencil",
            "command": "srun ./stencil --size 4096",
            "nodes": 4,
            "job_id": "4711",
            "state": "COMPLETED",
            "elapsed_s": 93.0,
            "confirmed": None,
            "mine": True,
        }
    )

    author: str
    submitted_at: float
    user: str
    name: str
    program: str
    command: str
    nodes: int
    job_id: str | None
    state: str | None
    """As Slurm calls it; null until the end is known."""
    elapsed_s: float | None
    confirmed: bool | None
    """Whether a person confirmed (true) or rejected (false) the match."""
    mine: bool


class Review(RequestModel):
    """What a person says about a match."""

    model_config = example({"confirmed": True})

    confirmed: bool | None
    """Whether the match is right; null removes an earlier review."""


async def submitter(request: Request, _: Annotated[object, Depends(_BEARER)]) -> Principal:
    """The user of a request; a token that was accepted is accepted for some seconds without asking the store again."""
    header = request.headers.get("authorization", "")
    if not header.lower().startswith("bearer "):
        return await run_in_threadpool(require_user, request, None)
    who = await submission_of(context_of(request)).submitters.user(
        header, lambda: run_in_threadpool(require_user, request, None)
    )
    request.state.who = who
    return who


_LINES: dict[int | str, dict[str, object]] = {201: {"content": {"text/plain": {"example": "luthier 1\nend\n"}}}}


@router.post(
    "/submissions", summary="Decide which configuration a submitted job gets", status_code=201, responses=_LINES
)
async def submit_job(
    server: Server,
    who: Annotated[Principal, Depends(submitter)],
    given: SubmittedJob,
    request: Request,
    form: Annotated[Literal["json", "lines"], Query(description="`lines` for the plug-in of Slurm.")] = "json",
    nonce: Annotated[
        str | None,
        Header(
            alias=NONCE_HEADER, pattern=_NONCE, description="Random; an answer in lines is signed if this is given."
        ),
    ] = None,
) -> DecidedJob:
    """The job is matched with those that were tuned; the decision is recorded. Nothing in the script is run."""
    client = client_of(who, address_of(request))
    with submission_of(server).budget.charged(client):
        asked = _asked(given, who)
    if asked is None:
        decided = DecidedJob(id=None, decision="refused", reason="the job wants to be left alone")
    else:
        found = await submission_of(server).queue.decide(asked)
        submission_of(server).budget.spend(client, found.cpu_s)
        decided = _decided(found)
    if form == "lines":
        answer = PlainTextResponse(_lines(decided), 201)
        if nonce is not None:
            signature = submission_of(server).signing_key.signature(
                bytes.fromhex(nonce), await request.body(), bytes(answer.body)
            )
            answer.headers[SIGNATURE_HEADER] = signature
        return answer  # type: ignore[return-value]  # FastAPI sends it as it is
    return decided


@router.get("/submissions", summary="List submitted jobs")
def list_submissions(
    server: Server,
    who: Viewer,
    decision: Annotated[Decision | None, Query(description="Only with this decision.")] = None,
    *,
    mine: Annotated[bool, Query(description="Only your own.")] = False,
    before: Before = None,
    limit: Limit = 50,
) -> Page[SubmissionSummary]:
    """The newest first: your own; those of all users for administrators."""
    author = None if who.role == "admin" and not mine else who.name
    found = submission_of(server).submissions.all(author=author, decision=decision, before=before, limit=limit + 1)
    items = [_summary(one, who) for one in found[:limit]]
    return Page(items=items, next=found[limit - 1].id if len(found) > limit else None)


@router.get("/submissions/{number}", summary="Get a submitted job")
def get_submission(server: Server, who: Viewer, number: Id) -> SubmissionSummary:
    """With the similarity of each field."""
    return _summary(_visible(server, who, number), who)


@router.post("/submissions/{number}/review", summary="Confirm or reject a match")
def review_submission(server: Server, who: Viewer, number: Id, given: Review) -> SubmissionSummary:
    """The weights of the fields are learned from reviewed matches."""
    found = _visible(server, who, number)
    if found.record_id is None:
        raise InvalidInputError(f"submitted job {number} matched no record; there is nothing to review")
    submission_of(server).submissions.review(number, confirmed=given.confirmed)
    return _summary(submission_of(server).submissions.get(number), who)


def _asked(given: SubmittedJob, who: Principal) -> AskedJob | None:
    """What is to be decided; None if the job wants to be left alone."""
    text = given.script[:READ_OF_SCRIPT]
    script = JobText(text, given.options, frozenset(given.variables), given.via == "environment")
    if is_refused(script):
        return None
    if who.role not in ("submitter", "admin") and given.user != who.name:
        raise ForbiddenError(f"{who.name} cannot submit jobs of another user")
    now = datetime.now(UTC)
    zone = None if given.utc_offset_s is None else timezone(timedelta(seconds=given.utc_offset_s))
    job = job_of_script(text, given.user, now.astimezone(zone), given.name, options=given.options, script=given.file)
    return AskedJob(given.user, job, script)


def _decided(answer: RecordedDecision) -> DecidedJob:
    return DecidedJob.model_validate({"id": answer.id, **_decision(answer.decided)})


def _decision(new: NewSubmission) -> dict[str, object]:
    fields = ("decision", "environment", "reason", "component", "record_id", "experiment_id", "score", "by_field")
    return {name: getattr(new, name) for name in fields}


def _lines(decided: DecidedJob) -> str:
    """The decision for a program that reads no JSON: a key and a value in each line, and `end` in the last."""
    lines = [] if decided.id is None else [f"decision {decided.id}"]
    lines += [f"set {name}={value}" for name, value in decided.environment.items()]
    said = decided.reason.encode("ascii", "backslashreplace").decode()  # clients accept nothing else for a terminal
    lines += [f"say {said}"] if decided.decision in ("set", "default", "unused") else []
    return "\n".join(["luthier 1", *lines, "end", ""])


def _visible(server: Context, who: Principal, number: int) -> Submission:
    """A submitted job that this user may see; others do not exist for them."""
    found = submission_of(server).submissions.get(number)
    if who.role != "admin" and found.author != who.name:
        raise NotFoundError(f"submitted job {number} does not exist")
    return found


def _summary(one: Submission, who: Principal) -> SubmissionSummary:
    job = one.job
    described = {name: getattr(job, name) for name in ("user", "name", "program", "command", "nodes")}
    ended = {name: getattr(one, name) for name in ("job_id", "state", "elapsed_s", "confirmed")}
    about = {"author": shown_author(one.author), "mine": one.author == who.name}
    at = job.submitted_at.timestamp()
    return SubmissionSummary.model_validate(
        {"id": one.id, **_decision(one), **about, "submitted_at": at, **described, **ended}
    )
