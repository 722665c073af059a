"""All details of one experiment."""

import time
from dataclasses import asdict

from fastapi import APIRouter
from pydantic import JsonValue

from luthier.figures import FIGURES
from luthier.result.activity import activity_of
from luthier.result.facts import Fact, facts_json, find_facts, lasting_facts
from luthier.result.findings import Findings, Found, stored_findings
from luthier.result.result import Result
from luthier.result.search_speedup import beside_random
from luthier.result.serial import record_json
from luthier.result.setting_rows import settings_texts
from luthier.server.api.models import ERRORS, SUMMARY_EXAMPLE, Id, ResponseModel, Summary, example
from luthier.server.context import Server, Viewer
from luthier.server.summaries import summary_of
from luthier.space.serial import parameter_to_json
from luthier.spec.experiment import Experiment, settings_json
from luthier.store.base import STOPS, Record

router = APIRouter(tags=["experiments"], responses=ERRORS)

_SAME = (
    "verdict",
    "improved",
    "cost_s",
    "size",
    "explored",
    "impact_first",
    "explanation",
    "failures",
    "failing_output",
    "elapsed_s",
    "left_s",
    "waiting",
)
"""The fields that are as in the JSON of the result."""

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


class ActiveJob(ResponseModel):
    """The job of an active run in a batch system, as that described it last."""

    run: int
    number: str
    """Empty while the batch system has not accepted the job."""
    state: str
    reason: str
    """Why it waits."""
    submitted_at: float
    began_at: float | None
    """Null while it waits in the queue."""


class DifferenceResponse(ResponseModel):
    """One quantity that was counted for the default and for the best configuration."""

    name: str
    label: str
    default: float
    best: float
    default_text: str
    best_text: str
    change: str
    is_large: bool
    """Whether the difference is more than chance and matters."""


class ExplanationResponse(ResponseModel):
    """What the default and the best configuration did when each was run once more under counters."""

    at: float
    default: dict[str, JsonValue]
    best: dict[str, JsonValue]
    differences: list[DifferenceResponse]
    """The largest ones first."""
    sentences: list[str]
    note: str
    notes: list[str]
    """What could not be counted."""


class TunedStepResponse(ResponseModel):
    """A decision on what is tuned, from the trial with this number on."""

    first_trial: int
    parameters: list[str]
    reason: str


class ImpactFirstResponse(ResponseModel):
    """Which parameters are tuned now, or were last, and all decisions before; `of` is the number of all parameters."""

    sentence: str
    parameters: list[str]
    of: int
    steps: list[TunedStepResponse]


class WaitingResponse(ResponseModel):
    """What a queued experiment waits for."""

    sentence: str
    workers: int
    """The number of workers that are alive."""
    before: int
    """The number of experiments before it in the queue."""
    running: int


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
            "search": ["search: 20 runs finished, slots busy 98 % of the time, suggestions took 0.2 s"],
            "impact_first": None,
            "explanation": None,
            "trouble": [],
            "returns": ["return on tuning (RoTI): 0.8 s gained for each minute of the 12 s of tuning"],
            "story": [],
            "failures": [],
            "failing_output": None,
            "utilisation": 0.98,
            "elapsed_s": 12.8,
            "left_s": None,
            "waiting": None,
            "machine": [["Host", "node1"], ["CPU", "Xeon, 8 cores"], ["luthier", "0.1.0"]],
            "has_source": True,
            "has_script": True,
            "figures": ["trajectory", "gain"],
            "stop_requested": False,
            "jobs": [
                {
                    "run": 20,
                    "number": "4711",
                    "state": "PENDING",
                    "reason": "Resources",
                    "submitted_at": 1.7e9,
                    "began_at": None,
                }
            ],
            "verify_requested": False,
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
    search: list[str]
    """How the search used its slots, and how much sooner it was than a random search in the store."""
    impact_first: ImpactFirstResponse | None
    """Which parameters are tuned now, and why; null if all are tuned all the time."""
    explanation: ExplanationResponse | None
    """What the best configuration does differently from the default; null before `luthier explain`."""
    trouble: list[str]
    """Remarks about drift of the machine and about outliers."""
    returns: list[str]
    """What the tuning brought for its time: RoTI, when it has paid, the net gain in production."""
    story: list[str]
    """What was done before as part of the same tuning, and the time of all steps; empty for other experiments."""
    failures: list[FailureReason]
    """Why runs gave no number, most common reason first."""
    failing_output: FailingOutput | None
    """The output of the first failing run; null if there is a result, or if no output was kept."""
    utilisation: float | None
    """The fraction of the time of all slots in which a run was active, during the search and without pauses."""
    elapsed_s: float | None
    """The time that it was worked on, without pauses; null for experiments of earlier versions."""
    left_s: float | None
    """An estimate of the largest time left, at the pace so far; null if there is none, or after the end."""
    waiting: WaitingResponse | None
    """What a queued experiment waits for."""
    machine: list[tuple[str, str]]
    """Where luthier ran, and its version, as names and texts."""
    has_source: bool
    has_script: bool
    """Whether a script or a command is tuned, not a Python function."""
    figures: list[str]
    """The names of the figures that have content now."""
    stop_requested: bool
    jobs: list[ActiveJob]
    """The jobs of active runs in a batch system."""
    verify_requested: bool
    """Whether the search was asked to end so that the best configuration is verified."""


@router.get("/experiments/{experiment_id}", summary="Get an experiment")
async def get_experiment(server: Server, who: Viewer, experiment_id: Id) -> Detail:
    """With its result so far, its settings, and the names of its figures."""

    def work() -> Detail:
        record = server.operations.visible(who, experiment_id)
        events, (lasting, known) = server.results.derived(record, "detail", lambda result: _known(record, result))
        result = beside_random(server.store.history, record, server.results.of(record))
        found = find_facts(stored_findings(server.store, record, result, time.time()), lasting)
        values = facts_json(found)
        said = {fact.name: list(one.sentences) for fact, one in found.items()}
        submitted = {run.number: run.submitted_at for run in result.runs} if record.jobs else {}
        return Detail.model_validate(
            {
                **known,
                **summary_of(record, who),
                **{name: values[name] for name in _SAME},
                "result": {**record_json(record), **values},
                "noise": "".join(said["noise"]),
                "search": said["activity"] + said["search_speedup"],
                "trouble": said["drift"] + said["outliers"],
                "returns": said["return"],
                "story": said["steps"],
                "machine": values["computer"],
                "events": events,
                "has_source": record.source is not None,
                "has_script": record.settings.get("command") is not None,
                "stop_requested": record.stop_requested in STOPS,
                "verify_requested": record.stop_requested == "verify",
                "jobs": [
                    {"run": number, "submitted_at": submitted[number], **asdict(job)}
                    for number, job in sorted(record.jobs.items())
                    if number in submitted
                ],
            }
        )

    return await server.results.run_slow(work)


def _known(record: Record, result: Result) -> tuple[dict[Fact, Found], dict[str, object]]:
    """What depends only on the runs and the settings: facts, and other fields."""
    experiment = result.experiment
    return lasting_facts(Findings(record, result, time.time())), {
        "settings": _settings(experiment),
        "settings_texts": settings_texts(result),
        "parameters": [parameter_to_json(parameter) for parameter in experiment.space.parameters],
        "constraints": list(experiment.space.constraints),
        "utilisation": activity_of(result).busy,
        "figures": [name for name, drawing in FIGURES.items() if drawing.slow or drawing(result, _FEW) is not None],
    }


def _settings(experiment: Experiment) -> dict[str, object]:
    job = experiment.command
    where = "local" if job is None else job.where
    return {**settings_json(experiment), "runner": where, "verify": experiment.reserved_pairs}
