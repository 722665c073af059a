"""Figures of one experiment, and of several side by side."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response
from pydantic import AfterValidator, ConfigDict, JsonValue

from luthier.analysis.plain import json_text
from luthier.analysis.result import Result
from luthier.errors import NotFoundError
from luthier.figures import FIGURES, POINTS, Figure, compared, to_plotly
from luthier.server.access import Principal
from luthier.server.api.models import ERRORS, LARGEST_NUMBER, Id, Summary, Told
from luthier.server.context import Context, Server, Viewer
from luthier.server.plain import Answer
from luthier.server.summaries import summary_of
from luthier.store.base import Record

router = APIRouter(tags=["figures"], responses=ERRORS)

MOST_COMPARED = 20
COMPARISONS = {"best": "The best so far of each, against runs and time."}


class FigureListed(Told):
    """A figure that can be asked for."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "trajectory", "title": "Every run", "explanation": "...", "slow": False}]
        }
    )

    name: str
    title: str
    explanation: str
    slow: bool


class FigureTold(Told):
    """A figure as plotly.js takes it; colours are named by their role, such as `role:best`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"data": [], "layout": {}, "title": "Every run", "note": ""}]}
    )

    data: list[dict[str, JsonValue]]
    layout: dict[str, JsonValue]
    title: str
    note: str


class Compared(Summary):
    """An experiment beside others."""

    best: dict[str, JsonValue] | None
    """The best configuration, once it has ended."""
    measure: str
    goal: str
    optimizer: str


def _numbers(text: str) -> str:
    words = text.split(",")
    if len(words) > MOST_COMPARED:
        raise ValueError(f"there are {len(words)} numbers; {MOST_COMPARED} are the most")
    if not all(word.isascii() and word.isdigit() and 0 < int(word) <= LARGEST_NUMBER for word in words):
        raise ValueError("is no list of numbers such as 1,2,3")
    return text


Ids = Annotated[
    str,
    Query(
        max_length=300, pattern=r"^[0-9]{1,10}(,[0-9]{1,10})*$", description="Numbers of experiments.", examples=["1"]
    ),
    AfterValidator(_numbers),
]
_DRAWN: dict[int | str, dict[str, object]] = {
    200: {"model": FigureTold},
    204: {"description": "There is nothing to draw yet."},
    304: {"description": "Unchanged: the tag in `If-None-Match` is that of the newest figure."},
}


@router.get("/figures", summary="Every figure there is")
def list_figures(_: Viewer) -> list[FigureListed]:
    """In the order in which a report shows them; slow ones take seconds."""
    return [
        FigureListed(name=name, title=drawing.title, explanation=drawing.explanation, slow=drawing.slow)
        for name, drawing in FIGURES.items()
    ]


@router.get(
    "/experiments/{experiment_id}/figures/{name}", summary="One figure", response_class=Answer, responses=_DRAWN
)
async def get_figure(
    server: Server,
    who: Viewer,
    experiment_id: Id,
    name: Annotated[str, Path(max_length=100, examples=["trajectory"])],
    points: Annotated[int, Query(ge=10, le=20_000, description="About how many points at most.")] = POINTS,
    known: Annotated[str | None, Header(alias="If-None-Match")] = None,
) -> Response:
    """As data and layout for plotly.js."""
    drawing = FIGURES.get(name)
    if drawing is None:
        raise NotFoundError(f"there is no figure {name}; there are {', '.join(FIGURES)}")

    def work() -> Response:
        record = server.operations.seen(who, experiment_id)
        if known is not None and known == _tag(record, server.books.desk.changes(experiment_id)[1]):
            return Response(status_code=304, headers={"ETag": known})
        events, figure = server.results.worked_out(
            record, f"figure {name} {points}", lambda result: _drawn(drawing(result, points))
        )
        headers = {"ETag": _tag(record, events), "Cache-Control": "private, no-cache"}
        return _answer(figure, headers)

    return await server.results.slowly(work)


def _first_objective(record: Record) -> Mapping[str, object]:
    objectives = record.settings.get("objectives")
    first = objectives[0] if isinstance(objectives, Sequence) and objectives else None
    return first if isinstance(first, Mapping) else {}


@router.get("/compare", summary="Several experiments side by side")
def compare_experiments(server: Server, who: Viewer, ids: Ids) -> list[Compared]:
    """In the order in which they were named."""
    return [
        Compared.model_validate(
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
    "/compare/figures/{name}", summary="One figure of several experiments", response_class=Answer, responses=_DRAWN
)
async def get_comparison(
    server: Server, who: Viewer, name: Annotated[str, Path(max_length=100, examples=["best"])], ids: Ids
) -> Response:
    """`best`: the best so far of each, relative to its default, against runs and time."""
    if name not in COMPARISONS:
        raise NotFoundError(f"there is no figure {name}; there are {', '.join(COMPARISONS)}")

    def work() -> Response:
        results: dict[str, Result] = {}
        for record in _named(server, who, ids):
            results[f"{record.id} {record.name}"] = server.results.of(record)
        return _answer(_drawn(compared(results)), {})

    return await server.results.slowly(work)


def _named(server: Context, who: Principal, ids: str) -> list[Record]:
    numbers = dict.fromkeys(int(word) for word in ids.split(","))
    return [server.operations.seen(who, number) for number in numbers]


def _drawn(figure: Figure | None) -> bytes | None:
    """The figure as it is sent, so that however many people look, it is written once."""
    if figure is None:
        return None
    return json_text({**to_plotly(figure), "title": figure.title, "note": figure.note}).encode("utf-8")


def _answer(drawn: bytes | None, headers: dict[str, str]) -> Response:
    if drawn is None:
        return Response(status_code=204, headers=headers)
    return Response(drawn, headers=headers, media_type="application/json")


def _tag(record: Record, events: int) -> str:
    return f'"{record.uid}-{events}"'
