"""Experiments: list, launch, stop, resume, copy, share, delete."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from luthier.errors import InvalidInputError, NotFoundError
from luthier.server.api.models import (
    ERRORS,
    EXPERIMENT_EXAMPLE,
    SUMMARY_EXAMPLE,
    Before,
    Document,
    Id,
    Limit,
    Page,
    RequestModel,
    ResponseModel,
    Short,
    Status,
    Summary,
    Yaml,
    example,
)
from luthier.server.api.yaml_text import yaml_text
from luthier.server.authentication import Principal
from luthier.server.context import Context, Launcher, Server, Viewer
from luthier.server.operations import Launched
from luthier.server.summaries import summary_of
from luthier.spec.as_file import as_file
from luthier.spec.experiment import Experiment
from luthier.store.base import Record, StopRequest
from luthier.store.base import Status as StoredStatus
from luthier.store.ownership import status_text

router = APIRouter(tags=["experiments"], responses=ERRORS)

_PAGE = 200
_ALSO_FOUND: dict[Status, Status] = {"failed": "no result"}
"""The filter for a status also finds experiments with this one."""


class NewExperiment(RequestModel):
    """An experiment: the text of its YAML file, or the contents of the file as JSON."""

    model_config = example({"yaml": EXPERIMENT_EXAMPLE})

    yaml: Yaml | None = None
    experiment: Document | None = None
    components: Document | None = None
    definitions: Document | None = None


class LaunchedExperiment(Summary):
    """An experiment that was just launched."""

    model_config = example({**SUMMARY_EXAMPLE, "status": "queued", "notes": ["learns from experiment 3 (first try)"]})

    notes: list[str]
    """What its user should know, such as which earlier experiments it learns from."""


class ChangedExperiment(RequestModel):
    """Whether all users may see it."""

    model_config = example({"shared": True})

    shared: bool


class Clone(RequestModel):
    """What to change in the copy."""

    model_config = example({"yaml": EXPERIMENT_EXAMPLE})

    yaml: Yaml | None = None
    """The text to use instead of the original one."""


class Source(ResponseModel):
    """The text that describes an experiment."""

    model_config = example({"yaml": EXPERIMENT_EXAMPLE, "is_written": True, "notes": []})

    yaml: str
    """The text of the file; for an experiment of the command line, one that describes the same."""
    is_written: bool
    """Whether a user wrote this text; false if it was generated."""
    notes: list[str]
    """What differs from the experiment, if the text was generated."""


@router.get("/experiments", summary="List experiments")
def list_experiments(
    server: Server,
    who: Viewer,
    text: Annotated[Short | None, Query(description="Part of the name.")] = None,
    status: Annotated[
        Status | None, Query(description="Only experiments with this status; failed also finds those with no result.")
    ] = None,
    mine: Annotated[bool, Query(description="Only your own experiments.")] = False,
    before: Before = None,
    limit: Limit = 50,
) -> Page[Summary]:
    """Your own and the shared experiments, newest first; administrators see all."""
    author = who.name if mine or who.role != "admin" else None
    found: list[Record] = []
    for record in _records(server, author=author, status=status, text=text, before=before):
        has_status = status is None or status_text(record) in (status, _ALSO_FOUND.get(status))
        if has_status and (not mine or record.author == who.name):
            found.append(record)
        if len(found) == limit:
            break
    return Page(items=[_summary(record, who) for record in found], next=found[-1].id if len(found) == limit else None)


@router.post(
    "/experiments",
    summary="Launch an experiment",
    status_code=201,
    responses={
        200: {
            "model": LaunchedExperiment,
            "description": "The key was used before: this is the experiment that it created.",
        }
    },
)
def create_experiment(
    response: Response,
    server: Server,
    who: Launcher,
    given: NewExperiment,
    key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            max_length=200,
            description="A request with a key that was used before creates no second experiment.",
        ),
    ] = None,
) -> LaunchedExperiment:
    """The experiment is queued for a worker. The server reads no files: the script must be in the text."""
    launched = server.operations.create(who, _text(given), key=key or None)
    return _launched(response, launched, who)


@router.get("/experiments/{experiment_id}/source", summary="Get the YAML text of an experiment")
def get_source(server: Server, who: Viewer, experiment_id: Id) -> Source:
    """As it was when the experiment was launched; that of an experiment of the command line is generated.

    An experiment that tunes a Python function has none.
    """
    record = server.operations.visible(who, experiment_id)
    if record.source is not None:
        return Source(yaml=record.source, is_written=True, notes=[])
    try:
        document, notes = as_file(Experiment.from_json(record.settings), record.name)
    except InvalidInputError as error:
        raise NotFoundError(f"experiment {experiment_id}: {error}") from None
    return Source(yaml=yaml_text(document), is_written=False, notes=notes)


@router.post("/experiments/{experiment_id}/stop", summary="Stop an experiment")
def stop_experiment(
    server: Server,
    who: Viewer,
    experiment_id: Id,
    now: Annotated[bool, Query(description="Kill active runs instead of waiting for them.")] = False,
    verify: Annotated[
        bool, Query(description="End the search only, and verify the best configuration so far.")
    ] = False,
) -> Summary:
    """No new runs start; active runs finish, or are killed with `now`.

    With `verify` the search ends and the verification follows, with what is left of the budget.
    """
    if now and verify:
        raise InvalidInputError("now and verify cannot be combined; give one of them")
    how: StopRequest = "kill" if now else "verify" if verify else "drain"
    return _summary(server.operations.stop(who, experiment_id, how), who)


@router.post("/experiments/{experiment_id}/resume", summary="Resume an experiment")
def resume_experiment(
    server: Server,
    who: Viewer,
    experiment_id: Id,
    budget: Annotated[
        str | None,
        Query(
            description="Continue with a larger budget: +30 for 30 more runs, or a total.",
            max_length=10,
            pattern=r"^\+?[0-9]{1,9}$",
            examples=["+30"],
        ),
    ] = None,
) -> Summary:
    """An experiment that was stopped, failed or was interrupted is queued for a worker again.

    With a `budget`, one that has ended is too: the search continues and knows what was measured, and is verified again.
    """
    return _summary(server.operations.resume(who, experiment_id, budget), who)


@router.post("/experiments/{experiment_id}/clone", summary="Launch a copy of an experiment", status_code=201)
def clone_experiment(
    response: Response, server: Server, who: Launcher, experiment_id: Id, given: Clone | None = None
) -> LaunchedExperiment:
    """With the same settings, or with those of a changed text."""
    launched = server.operations.clone(who, experiment_id, None if given is None else given.yaml)
    return _launched(response, launched, who)


@router.patch("/experiments/{experiment_id}", summary="Share an experiment, or stop sharing it")
def change_experiment(server: Server, who: Viewer, experiment_id: Id, given: ChangedExperiment) -> Summary:
    """All users can see a shared experiment."""
    return _summary(server.operations.share(who, experiment_id, shared=given.shared), who)


@router.delete("/experiments/{experiment_id}", summary="Delete an experiment", status_code=204)
def delete_experiment(
    server: Server,
    who: Viewer,
    experiment_id: Id,
    stop: Annotated[bool, Query(description="If it is running, stop it first and kill its runs.")] = False,
) -> None:
    """With all its runs and their files on the server. A running experiment must be stopped first."""
    server.operations.delete(who, experiment_id, stop=stop)


def _records(
    server: Context, *, author: str | None, status: Status | None, text: str | None, before: int | None
) -> Iterator[Record]:
    """Candidates from the store, page by page; `interrupted` is not stored but computed, so the caller checks it."""
    stored: StoredStatus | None = "running" if status == "interrupted" else status
    also = None if status is None else _ALSO_FOUND.get(status)
    kept = [one for one in (stored, also) if one is not None and one != "interrupted"] or None
    while True:
        page = server.store.queue.records(author=author, status=kept, text=text, before=before, limit=_PAGE)
        yield from page
        if len(page) < _PAGE:
            return
        before = page[-1].id


def _summary(record: Record, who: Principal) -> Summary:
    return Summary.model_validate(summary_of(record, who))


def _launched(response: Response, launched: Launched, who: Principal) -> LaunchedExperiment:
    response.headers["Location"] = f"/api/v1/experiments/{launched.record.id}"
    response.status_code = 201 if launched.is_new else 200
    return LaunchedExperiment.model_validate({**summary_of(launched.record, who), "notes": list(launched.notes)})


def _text(given: NewExperiment) -> str:
    """The YAML text; generated if the contents were sent as JSON."""
    sections = {name: getattr(given, name) for name in ("experiment", "components", "definitions")}
    document = {name: section for name, section in sections.items() if section is not None}
    if (given.yaml is None) == (not document):
        raise InvalidInputError("give either yaml, or experiment, components and definitions")
    return given.yaml if given.yaml is not None else yaml_text(document)
