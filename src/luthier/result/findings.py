"""The functions that find the facts of a result: their values as JSON, and what people see of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from luthier.result.activity import activity_of
from luthier.result.apply import applied
from luthier.result.explanation import NOTE, Explanation, explanation_json
from luthier.result.failures import first_output, reasons_of
from luthier.result.result import Result
from luthier.result.serial import ending_of, trial_json
from luthier.result.text import (
    config_text,
    duration_text,
    estimate_text,
    estimates_text,
    measure_names,
    share_text,
    value_text,
)
from luthier.result.tuned_parameters import tuned_parameters
from luthier.result.tuning_return import return_lines, tuning_return
from luthier.result.waiting import Waiting, waiting_for
from luthier.result.working_time import machine_rows, working_time
from luthier.spec.origin import Step
from luthier.store.base import ENDED, Record
from luthier.store.ownership import status_text
from luthier.store.server_store import ServerStore
from luthier.trial import Json, Run, Trial


@dataclass(frozen=True, slots=True)
class Findings:
    """What facts are computed from: an experiment and its result at the time `now`.

    `explanation` is the one in the store, and `waiting` what a queued experiment waits for, if these are known.
    """

    record: Record
    result: Result
    now: float
    explanation: Explanation | None = None
    waiting: Waiting | None = None


def stored_findings(store: ServerStore, record: Record, result: Result, now: float) -> Findings:
    """The findings of a stored experiment with what else its store knows."""
    explanation = store.explanations.get(record.id)
    return Findings(
        record,
        result,
        now,
        None if explanation is None else Explanation.from_json(explanation),
        waiting_for(store.queue, record, now) if record.status == "queued" else None,
    )


@dataclass(frozen=True, slots=True)
class Table:
    """Headings and rows of texts."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Found:
    """A fact of one experiment: its values as JSON by key, and what people see.

    Page and report begin `sentences` with a capital and end them with a full stop. `texts` are headings with a text to
    copy or to read as it is, such as a command or the output of a program.
    """

    json: Mapping[str, Json]
    sentences: Sequence[str] = ()
    table: Table | None = None
    texts: Sequence[tuple[str, str]] = ()

    @property
    def is_shown(self) -> bool:
        """Whether people see something of it."""
        return bool(self.sentences or self.texts or (self.table is not None and self.table.rows))


def runs_text(result: Result) -> str:
    """How many runs used up the budget, and how many were lost in addition."""
    lost = result.lost
    return f"{len(result.runs) - lost} of {result.experiment.budget} runs" + (
        f" ({lost} more were lost)" if lost else ""
    )


def command_line(result: Result) -> str | None:
    """The recommended command line, where a command was tuned."""
    template, config = result.experiment.command, result.recommended
    return None if template is None or config is None else template.line(result.experiment.space, config)


def configurations_found(known: Findings) -> Found:
    """The default beside the best configuration, or beside the Pareto front."""
    result = known.result
    experiment, default, other = result.experiment, result.default, result.challenger
    rows = [] if default is None else [("default", default)]
    if experiment.has_front:
        labels = ["front", *[""] * len(result.front)]
        rows += zip(labels, result.front, strict=False)
    elif other is not None and other != default:
        rows.append(("best" if other == result.winner else "next best", other))
    return Found(
        {
            "default": None if default is None else trial_json(default),
            "best": None if result.winner is None else trial_json(result.winner),
            "compared": None if other is None else trial_json(other),
            "front": [trial_json(trial) for trial in result.front],
        },
        table=Table(
            ("", *measure_names(experiment), "configuration"),
            [(label, *_values(trial, result), config_text(trial.config, experiment.space)) for label, trial in rows],
        ),
    )


def _values(trial: Trial, result: Result) -> list[str]:
    if result.experiment.has_front:
        return estimates_text(trial, result.experiment)
    return [estimate_text(trial.estimate, result.experiment.objective.measure)]


def verdict_found(known: Findings) -> Found:
    """The answer in one sentence, and the speed-up behind it."""
    result = known.result
    comparison = result.comparison
    speedup: Json = None
    if comparison is not None:
        names = ("low", "high", "kind", "pairs")
        speedup = {"value": comparison.speedup, **{name: getattr(comparison, name) for name in names}}
    return Found({"verdict": result.verdict, "improved": result.improved, "speedup": speedup}, [result.verdict])


def method_found(known: Findings) -> Found:
    """How the numbers of the verification were computed."""
    method = known.result.method
    return Found({"method": method or None}, [method] if method else [])


def cost_found(known: Findings) -> Found:
    """How many runs there were, how long they took, and how much of the space they explored."""
    result = known.result
    tried, size = len(result.trials), result.experiment.space.size
    size = size if size is not None and size < 2**53 else None  # JSON represents no larger number exactly
    explored = None if size is None else tried / size
    share = "" if explored is None else f" ({share_text(explored)} of all)"
    return Found(
        {"cost_s": result.cost_s, "lost": result.lost, "configurations": tried, "size": size, "explored": explored},
        [
            f"{runs_text(result)}, {duration_text(result.cost_s)} of run time",
            f"{tried} configuration{'' if tried == 1 else 's'} tried{share}",
        ],
    )


def recommendation_found(known: Findings) -> Found:
    """The configuration to use, and the command line with it."""
    result = known.result
    config, default, experiment = result.recommended, result.default, result.experiment
    values = {"recommended": None if config is None else dict(config), "command": command_line(result)}
    if config is None:
        return Found(values, ["no configuration can be recommended"])
    written = config_text(config, experiment.space)
    is_default = default is not None and config == default.config
    is_measured = default is not None and default.estimate is not None
    what = "configuration" if experiment.command is None else "command"
    said, use = f"use {written}", f"{what} to use"
    if is_default:
        said, use = f"keep the default, {written}", f"{use} (the default)"
    if experiment.has_front:
        first = measure_names(experiment)[0]
        if not is_measured:
            use = f"best in {first}"
        elif is_default:
            use = "no configuration is as good as the default in all objectives; choose one of the front, or keep"
        else:
            said = f"use {written}: not worse than the default in any objective"
            use = f"the best in {first} of those that are no worse than the default in any objective"
    return Found(values, [said], texts=[(use, applied(result, best=False).line)])


def working_time_found(known: Findings) -> Found:
    """How long it was worked on, and how long it may still take."""
    spent = working_time(known.record, known.result, known.now)
    return Found({**asdict(spent)}, [spent.sentence] if spent.sentence else [])


def waiting_found(known: Findings) -> Found:
    """Why it waits in a queue."""
    waiting = known.waiting
    if waiting is None:
        return Found({"waiting": None})
    sentence = waiting.sentence
    return Found({"waiting": {**asdict(waiting), "sentence": sentence}}, [f"waiting: {sentence}"])


def ending_found(known: Findings) -> Found:
    """Why the search ended; a comparison of two configurations has no search."""
    ending = ending_of(known.record)
    is_shown = ending is not None and not known.result.experiment.is_comparison
    return Found({"ending": ending}, [f"the search ended: {ending}"] if is_shown else [])


def learned_from_found(known: Findings) -> Found:
    """The earlier experiments that the search learned from."""
    earlier = known.result.experiment.earlier
    notes = [] if earlier is None else list(earlier.notes)
    return Found({"learned_from": [*notes]}, [f"learned from {note}" for note in notes])


def impact_first_found(known: Findings) -> Found:
    """Which parameters are tuned now, or were tuned last."""
    tuned = tuned_parameters(known.record, known.result.experiment, known.result.runs)
    if tuned is None:
        return Found({"impact_first": None})
    return Found({"impact_first": tuned.to_json()}, [f"impact first: {tuned.sentence}"])


def steps_found(known: Findings) -> Found:
    """What was done before in the same tuning, and the time of all steps."""
    result = known.result
    origin = result.experiment.origin
    if origin is None:
        return Found({"steps": []})
    name = "search" if origin.searched is None else "comparison"
    steps = [*origin.steps, Step(name, (f"this experiment, on {origin.program}",), result.cost_s)]
    lines = [f"{step.name}: {line}" for step in steps[:-1] for line in step.lines]
    spent = ", ".join(f"{step.name} {duration_text(step.seconds)}" for step in steps)
    total = duration_text(sum(step.seconds for step in steps))
    return Found(
        {"steps": [{"name": step.name, "lines": list(step.lines), "seconds": step.seconds} for step in steps]},
        [*lines, f"time of the whole tuning: {total} ({spent})"],
    )


def return_found(known: Findings) -> Found:
    """What the tuning brought for its time."""
    found = tuning_return(known.result)
    if found is None:
        return Found({"return": None})
    value = {**asdict(found), "over_time": [list(point) for point in found.over_time]}
    return Found({"return": value}, return_lines(known.result))


def activity_found(known: Findings) -> Found:
    """How the search used its slots."""
    activity = activity_of(known.result)
    sentence = "" if known.result.experiment.is_comparison else activity.sentence()
    return Found({"activity": asdict(activity)}, [sentence] if sentence else [])


def search_speedup_found(known: Findings) -> Found:
    """How much sooner the search was than a random search."""
    compared = known.result.over_random
    if compared is None:
        return Found({"search_speedup": None})
    is_shown = not known.result.experiment.is_comparison
    return Found({"search_speedup": asdict(compared)}, [compared.sentence()] if is_shown else [])


def noise_found(known: Findings) -> Found:
    """How much runs of one configuration differ, and how many were repeats."""
    result = known.result
    noise = result.noise
    values: dict[str, Json] = {"repeats": result.repeats, "estimator": result.estimator}
    if not noise.freedom:
        return Found({"noise": None, **values})
    spread = share_text(noise.deviation)
    if not noise.relative:
        spread = value_text(noise.deviation, result.experiment.objective.measure)
    repeated = f"; {result.repeats} runs of the search were repeats (estimator: {result.estimator})"
    return Found(
        {"noise": {"deviation": noise.deviation, "relative": noise.relative}, **values},
        [f"noise: {spread} from run to run{repeated if result.repeats else ''}"],
    )


def drift_found(known: Findings) -> Found:
    """How the speed of the machine changed."""
    drift = known.result.drift
    said = drift.sentence()
    value: dict[str, Json] = {"machine": {"kind": drift.kind, "sentence": said}}
    if drift.kind == "steady":
        return Found(value)
    is_corrected = known.result.experiment.sentinels
    advice = "values are corrected for it" if is_corrected else "use --sentinels 10 to correct for it"
    return Found(value, [f"machine: {said}, measured by the runs of the default; {advice}"])


def outliers_found(known: Findings) -> Found:
    """The runs that are far from the others of their configuration."""
    result = known.result
    outliers = result.outliers
    if not outliers:
        return Found({"outliers": []})
    worst = max(outliers, key=lambda outlier: abs(math.log(outlier.factor)))
    said = (
        f"outliers: {len(outliers)} of {len(result.runs)} runs; "
        f"run {worst.run} gave {worst.factor:.3g}x the usual value of its configuration ({worst.reason})"
    )
    return Found({"outliers": [asdict(outlier) for outlier in outliers]}, [said])


def failures_found(known: Findings) -> Found:
    """Why runs gave no number; without any result also what the first failing run wrote."""
    result = known.result
    reasons = reasons_of(result.runs)
    output = first_output(result.runs) if result.winner is None else None
    rows = [(str(one.runs), one.text, _named(one.first, result)) for one in reasons]
    kept: Json = None
    texts: list[tuple[str, str]] = []
    if output is not None:
        streams = {"stderr": output.stderr, "stdout": output.stdout}
        kept = {"run": output.run.number, "config": dict(output.run.config), **streams}
        texts = [(f"{name} of {_named(output.run, result)}", text or "(empty)") for name, text in streams.items()]
    return Found(
        {
            "failures": [
                {"reason": one.text, "runs": one.runs, "first": None if one.first is None else one.first.number}
                for one in reasons
            ],
            "failing_output": kept,
        },
        table=Table(("runs", "outcome", "first of them"), rows),
        texts=texts,
    )


def _named(run: Run | None, result: Result) -> str:
    return "" if run is None else f"run {run.number} ({config_text(run.config, result.experiment.space)})"


def explanation_found(known: Findings) -> Found:
    """What the best configuration does differently from the default."""
    explanation, space = known.explanation, known.result.experiment.space
    if explanation is None:
        return Found({"explanation": None})
    default, best = (config_text(space.check(one.config), space) for one in (explanation.default, explanation.best))
    rows = [(one.quantity.label, one.default_text, one.best_text, one.change) for one in explanation.differences]
    return Found(
        {"explanation": explanation_json(explanation)},
        [f"the default is {default}; the best is {best}", *explanation.sentences, NOTE, *explanation.notes],
        Table(("", "default", "best", "difference"), rows),
    )


def computer_found(known: Findings) -> Found:
    """Where luthier ran, and its version."""
    rows = machine_rows(known.record, known.result)
    said = "; ".join(f"{name if name == 'CPU' else name.lower()}: {text}" for name, text in rows)
    return Found({"computer": [list(row) for row in rows]}, [said] if said else [])


def next_step_found(known: Findings) -> Found:
    """How to go on with an experiment that is not finished."""
    record, status = known.record, status_text(known.record)
    said = None
    if status == "no result":
        said = "no result: correct the cause and start a new experiment"
    elif status not in (*ENDED, "running", "queued"):
        said = f"{status}; continue with: luthier resume {record.id}"
    return Found({"next_step": said}, [] if said is None else [said])
