"""Figures of one experiment, and of several experiments compared."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response
from pydantic import AfterValidator, JsonValue

from luthier.errors import NotFoundError
from luthier.figures import FIGURES, POINTS, Figure, compared, to_plotly
from luthier.result.result import Result
from luthier.result.serial import json_text
from luthier.server.api.models import ERRORS, LARGEST_NUMBER, Id, ResponseModel, Summary, example
from luthier.server.authentication import Principal
from luthier.server.context import Context, Server, Viewer
from luthier.server.json_response import SafeJsonResponse
from luthier.server.summaries import summary_of
from luthier.store.base import Record

router = APIRouter(tags=["figures"], responses=ERRORS)

MOST_COMPARED = 20
COMPARISONS = {"best": "The best value so far of each experiment, by runs and by time."}


class FigureListed(ResponseModel):
    """An available figure."""

    model_config = example({"name": "trajectory", "title": "Every run", "explanation": "...", "slow": False})

    name: str
    title: str
    explanation: str
    slow: bool


class FigureResponse(ResponseModel):
    """A figure for plotly.js; colours are given by role, such as `role:best`."""

    model_config = example({"data": [], "layout": {}, "title": "Every run", "note": ""})

    data: list[dict[str, JsonValue]]
    layout: dict[str, JsonValue]
    title: str
    note: str


class ComparedExperiment(Summary):
    """An experiment in a comparison."""

    best: dict[str, JsonValue] | None
    """The best configuration; null until the experiment has ended."""
    measure: str
    goal: str
    optimizer: str


def _numbers(text: str) -> str:
    words = text.split(",")
    if len(words) > MOST_COMPARED:
        raise ValueError(f"has {len(words)} numbers; the limit is {MOST_COMPARED}")
    if not all(word.isascii() and word.isdigit() and 0 < int(word) <= LARGEST_NUMBER for word in words):
        raise ValueError("is not a list of numbers such as 1,2,3")
    return text


Ids = Annotated[
    str,
    Query(
        max_length=300, pattern=r"^[0-9]{1,10}(,[0-9]{1,10})*$", description="Numbers of experiments.", examples=["1"]
    ),
    AfterValidator(_numbers),
]
_DRAWN: dict[int | str, dict[str, object]] = {
    200: {"model": FigureResponse},
    204: {"description": "The figure has no content yet."},
    304: {"description": "Unchanged: the tag in `If-None-Match` is the current one."},
}


@router.get("/figures", summary="List the available figures")
def list_figures(_: Viewer) -> list[FigureListed]:
    """In the order of the report; figures marked `slow` take seconds."""
    return [
        FigureListed(name=name, title=drawing.title, explanation=drawing.explanation, slow=drawing.slow)
        for name, drawing in FIGURES.items()
    ]


@router.get(
    "/experiments/{experiment_id}/figures/{name}",
    summary="Get a figure",
    response_class=SafeJsonResponse,
    responses=_DRAWN,
)
async def get_figure(
    server: Server,
    who: Viewer,
    experiment_id: Id,
    name: Annotated[str, Path(max_length=100, examples=["trajectory"])],
    points: Annotated[int, Query(ge=10, le=20_000, description="The approximate maximum number of points.")] = POINTS,
    known: Annotated[str | None, Header(alias="If-None-Match")] = None,
) -> Response:
    """As data and layout for plotly.js."""
    drawing = FIGURES.get(name)
    if drawing is None:
        raise NotFoundError(f"figure {name} does not exist; available: {', '.join(FIGURES)}")

    def work() -> Response:
        record = server.operations.visible(who, experiment_id)
        if known is not None and known == _tag(record, server.store.queue.changes(experiment_id).events):
            return Response(status_code=304, headers={"ETag": known})
        events, figure = server.results.derived(
            record, f"figure {name} {points}", lambda result: _drawn(drawing(result, points))
        )
        headers = {"ETag": _tag(record, events), "Cache-Control": "private, no-cache"}
        return _answer(figure, headers)

    return await server.results.run_slow(work)


def _first_objective(record: Record) -> Mapping[str, object]:
    objectives = record.settings.get("objectives")
    first = objectives[0] if isinstance(objectives, Sequence) and objectives else None
    return first if isinstance(first, Mapping) else {}


@router.get("/compare", summary="Compare experiments")
def compare_experiments(server: Server, who: Viewer, ids: Ids) -> list[ComparedExperiment]:
    """In the order of `ids`."""
    return [
        ComparedExperiment.model_validate(
            {
                **summary_of(record, who),
                "best": (record.result or {}).get("best"),
                **_first_objective(record),
                "optimizer": record.settings.get("optimizer"),
            }
        )
        for record in _named(server, who, ids)
    ]


@router.get(
    "/compare/figures/{name}",
    summary="Get a figure of several experiments",
    response_class=SafeJsonResponse,
    responses=_DRAWN,
)
async def get_comparison(
    server: Server, who: Viewer, name: Annotated[str, Path(max_length=100, examples=["best"])], ids: Ids
) -> Response:
    """`best`: the best value so far of each experiment, relative to its default, by runs and by time."""
    if name not in COMPARISONS:
        raise NotFoundError(f"figure {name} does not exist; available: {', '.join(COMPARISONS)}")

    def work() -> Response:
        results: dict[str, Result] = {}
        for record in _named(server, who, ids):
            results[f"{record.id} {record.name}"] = server.results.of(record)
        return _answer(_drawn(compared(results)), {})

    return await server.results.run_slow(work)


def _named(server: Context, who: Principal, ids: str) -> list[Record]:
    numbers = dict.fromkeys(int(word) for word in ids.split(","))
    return [server.operations.visible(who, number) for number in numbers]


def _drawn(figure: Figure | None) -> bytes | None:
    """The figure as JSON, so that it is encoded only once for all viewers."""
    if figure is None:
        return None
    return json_text({**to_plotly(figure), "title": figure.title, "note": figure.note}).encode("utf-8")


def _answer(drawn: bytes | None, headers: dict[str, str]) -> Response:
    if drawn is None:
        return Response(status_code=204, headers=headers)
    return Response(drawn, headers=headers, media_type="application/json")


def _tag(record: Record, events: int) -> str:
    return f'"{record.uid}-{events}"'
