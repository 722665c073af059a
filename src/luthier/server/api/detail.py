"""All details of one experiment."""

from fastapi import APIRouter
from pydantic import JsonValue

from luthier.analysis.failures import first_output, reasons_of
from luthier.analysis.result import Result
from luthier.analysis.sentences import noise_text, trouble_lines
from luthier.analysis.serial import ending_of, record_json, result_json
from luthier.analysis.settings import settings_texts
from luthier.figures import FIGURES
from luthier.server.api.models import ERRORS, SUMMARY_EXAMPLE, Id, ResponseModel, Summary, exact_size, example
from luthier.server.context import Server, Viewer
from luthier.server.summaries import summary_of
from luthier.space.serial import parameter_to_json
from luthier.spec.experiment import Experiment, settings_json
from luthier.store.base import Record
from luthier.trial import Json

router = APIRouter(tags=["experiments"], responses=ERRORS)

_FEW = 10  # points of a figure that is only built to see whether it has content


class FailureReason(ResponseModel):
    """A reason for runs without a number."""

    reason: str
    runs: int
    first: int | None
    """The number of the first of these runs; null for the sum of rare reasons."""


class FailingOutput(ResponseModel):
    """The end of what the first failing run wrote, with unprintable characters escaped."""

    run: int
    config: dict[str, JsonValue]
    stdout: str
    stderr: str


class Detail(Summary):
    """An experiment with all its details."""

    model_config = example(
        {
            **SUMMARY_EXAMPLE,
            "events": 40,
            "result": {"verdict": "1.31x faster than the default (1.28 to 1.34)"},
            "settings": {"budget": 20, "optimizer": "auto"},
            "settings_texts": [["Search", [["Budget", "20"], ["Optimizer", "auto"]]]],
            "parameters": [{"kind": "integer", "name": "bs", "low": 512, "high": 65536}],
            "constraints": [],
            "size": 8,
            "explored": 1.0,
            "noise": "noise: 2.1 % from run to run",
            "trouble": [],
            "failures": [],
            "failing_output": None,
            "utilisation": 0.98,
            "has_source": True,
            "has_script": True,
            "figures": ["trajectory", "gain"],
            "stop_requested": False,
        }
    )

    events: int
    """The number of events that the result includes; use it as `since` for the event stream."""
    result: dict[str, JsonValue]
    """The same as the output of `luthier show --json`."""
    settings: dict[str, JsonValue]
    settings_texts: list[tuple[str, list[tuple[str, str]]]]
    """The settings as the page shows them, by topic."""
    parameters: list[dict[str, JsonValue]]
    constraints: list[str]
    size: int | None
    """The number of configurations in the space; null if it is infinite."""
    explored: float | None
    """The fraction of them that has been tried."""
    noise: str
    trouble: list[str]
    """Remarks about drift of the machine and about outliers."""
    failures: list[FailureReason]
    """Why runs gave no number, most common reason first."""
    failing_output: FailingOutput | None
    """The output of the first failing run; null if there is a result, or if no output was kept."""
    utilisation: float | None
    """The fraction of the time of all slots in which a run was active."""
    has_source: bool
    has_script: bool
    """Whether a script or a command is tuned, not a Python function."""
    figures: list[str]
    """The names of the figures that have content now."""
    stop_requested: bool


@router.get("/experiments/{experiment_id}", summary="Get an experiment")
async def get_experiment(server: Server, who: Viewer, experiment_id: Id) -> Detail:
    """With its result so far, its settings, and the names of its figures."""

    def work() -> Detail:
        record = server.operations.visible(who, experiment_id)
        events, (concluded, known) = server.results.derived(record, "detail", lambda result: _known(record, result))
        return Detail.model_validate(
            {
                **known,
                **summary_of(record, who),
                **{name: concluded[name] for name in ("verdict", "improved", "cost_s")},
                "result": {**concluded, **record_json(record), "ending": ending_of(record)},
                "events": events,
                "has_source": record.source is not None,
                "has_script": record.settings.get("command") is not None,
                "stop_requested": record.stop_requested is not None,
            }
        )

    return await server.results.run_slow(work)


def _known(record: Record, result: Result) -> tuple[dict[str, Json], dict[str, object]]:
    """The values that depend only on the runs and the settings: the result, and the other fields."""
    experiment = result.experiment
    size = exact_size(experiment.space.size)
    return result_json(record, result), {
        "settings": _settings(experiment),
        "settings_texts": settings_texts(result),
        "parameters": [parameter_to_json(parameter) for parameter in experiment.space.parameters],
        "constraints": list(experiment.space.constraints),
        "size": size,
        "explored": None if size is None else len(result.trials) / size,
        "noise": noise_text(result),
        "trouble": trouble_lines(result),
        "failures": [
            {"reason": one.text, "runs": one.runs, "first": None if one.first is None else one.first.number}
            for one in reasons_of(result.runs)
        ],
        "failing_output": _failing_output(result),
        "utilisation": _utilisation(result),
        "figures": [name for name, drawing in FIGURES.items() if drawing.slow or drawing(result, _FEW) is not None],
    }


def _failing_output(result: Result) -> dict[str, object] | None:
    found = first_output(result.runs) if result.winner is None else None
    if found is None:
        return None
    return {
        "run": found.run.number,
        "config": dict(found.run.config),
        "stdout": found.stdout,
        "stderr": found.stderr,
    }


def _settings(experiment: Experiment) -> dict[str, object]:
    job = experiment.command
    where = "local" if job is None else job.where
    return {**settings_json(experiment), "runner": where, "verify": experiment.reserved_pairs}


def _utilisation(result: Result) -> float | None:
    """The fraction of the time of all slots, from the first start to the last end, in which a run was active."""
    spans = [
        (run.started_at, run.duration_s)
        for run in result.runs
        if run.started_at is not None and run.duration_s is not None
    ]
    if not spans:
        return None
    begin, end = min(start for start, _ in spans), max(start + length for start, length in spans)
    whole = (end - begin) * result.experiment.slots
    return min(sum(length for _, length in spans) / whole, 1.0) if whole > 0 else None
