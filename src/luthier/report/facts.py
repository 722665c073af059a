"""The contents of a report, as plain texts."""

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from luthier.report.commands import tune_command
from luthier.result.apply import applied
from luthier.result.explanation import NOTE, Explanation
from luthier.result.failures import first_output, reasons_of
from luthier.result.result import Result
from luthier.result.sentences import noise_text, search_lines, trouble_lines
from luthier.result.story import story
from luthier.result.text import config_text, duration_text, estimate_text, estimates_text, measure_names
from luthier.result.trials import best_first
from luthier.result.tuned_parameters import tuned_parameters
from luthier.result.tuning_return import return_lines
from luthier.result.working_time import machine_rows, working_time
from luthier.space import Choice, Parameter
from luthier.spec.experiment import Experiment
from luthier.spec.template import Template
from luthier.store.base import ENDED, Record
from luthier.store.ownership import status_text
from luthier.trial import Config, Run, Trial

BEST_TRIALS = 15

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Table:
    """Headings and rows of texts."""

    headings: Sequence[str]
    rows: Rows


def headline(result: Result) -> str:
    """The recommendation, in one sentence."""
    config, default = result.recommended, result.default
    if config is None:
        return "No configuration can be recommended."
    written = config_text(config, result.experiment.space)
    if default is not None and config == default.config:
        return f"Keep the default, {written}."
    if result.experiment.has_front and default is not None and default.estimate is not None:
        return f"Use {written}: not worse than the default in any objective."
    return f"Use {written}."


def cost(result: Result) -> str:
    """The cost of the experiment."""
    size = result.experiment.space.size
    share = "" if size is None else f" ({100.0 * len(result.trials) / size:.2g} % of all)"
    text = f"{len(result.runs)} runs of {len(result.trials)} configurations{share}"
    return f"It took {text} and {duration_text(result.cost_s)} of run time."


def to_use(result: Result) -> str | None:
    """The command line or script of the recommended configuration."""
    return None if result.recommended is None else applied(result, best=False).line


def against_default(result: Result) -> Table:
    """The default and the best, or the default and the front."""
    experiment = result.experiment
    if experiment.has_front:
        best = [("front", trial) for trial in result.front]
    else:
        label = "best" if result.challenger == result.winner else "next best"
        is_other = result.challenger is not None and result.challenger != result.default
        best = [(label, result.challenger)] if is_other and result.challenger is not None else []
    default = [] if result.default is None else [("default", result.default)]
    rows = [
        (label, *_values(trial, experiment), config_text(trial.config, experiment.space))
        for label, trial in (*default, *best)
    ]
    return Table(("", *measure_names(experiment), "with"), rows)


def compared(explanation: Explanation) -> Table:
    """What the default and the best configuration did, the largest differences first."""
    rows = [(one.quantity.label, one.default_text, one.best_text, one.change) for one in explanation.differences]
    return Table(("", "default", "best", "difference"), rows)


def observed_configs(explanation: Explanation, result: Result) -> str:
    """The two configurations of an explanation."""
    space = result.experiment.space
    default, best = (config_text(Config(one.config), space) for one in (explanation.default, explanation.best))
    return f"The default is {default}; the best is {best}."


def explanation_notes(explanation: Explanation) -> str:
    """How the explanation was made, and what is missing in it."""
    return " ".join((NOTE, *explanation.notes))


def _values(trial: Trial, experiment: Experiment) -> list[str]:
    if experiment.has_front:
        return estimates_text(trial, experiment)
    return [estimate_text(trial.estimate, experiment.objective.measure)]


def best_trials(result: Result) -> Table:
    """The trials with the best estimates, best first."""
    experiment = result.experiment
    known = [numbered for numbered in best_first(experiment, result.shown_trials) if numbered[1].estimate is not None]
    rows = [
        (
            str(number),
            str(len(trial.outcomes)),
            *estimates_text(trial, experiment),
            *(parameter.format(trial.config[parameter.name]) for parameter in experiment.space.parameters),
        )
        for number, trial in known[:BEST_TRIALS]
    ]
    return Table(("trial", "runs", *measure_names(experiment), *experiment.space.names), rows)


def steps(result: Result) -> Table:
    """The steps of a larger tuning, this experiment last, with their times; empty for other experiments."""
    done = story(result.experiment, result.cost_s)
    rows = [
        (step.name if number == 0 else "", line, duration_text(step.seconds) if number == 0 else "")
        for step in done
        for number, line in enumerate(step.lines)
    ]
    total = [("whole tuning", "", duration_text(sum(step.seconds for step in done)))] if done else []
    return Table(("step", "", "time"), [*rows, *total])


def failures(result: Result) -> Table:
    """The runs without a value, counted by reason; most common first."""
    rows = [(str(reason.runs), reason.text, _named(reason.first, result)) for reason in reasons_of(result.runs)]
    return Table(("runs", "outcome", "first of them"), rows)


def failing_output(result: Result) -> list[tuple[str, str]]:
    """If there is no result, what the first failing run wrote: a heading and a text for each stream."""
    found = first_output(result.runs) if result.winner is None else None
    if found is None:
        return []
    name = _named(found.run, result)
    return [(f"{stream} of {name}", getattr(found, stream) or "(empty)") for stream in ("stderr", "stdout")]


def _named(run: Run | None, result: Result) -> str:
    return "" if run is None else f"run {run.number}: {config_text(run.config, result.experiment.space)}"


def remarks(record: Record, result: Result) -> list[str]:
    """Remarks about the search, noise, outliers and drift of the machine."""
    tuned = tuned_parameters(record, result.experiment, result.runs)
    first = "" if tuned is None else f"impact first: {tuned.sentence}"
    known = (*return_lines(result), *search_lines(result), noise_text(result), *trouble_lines(result))
    return [text for text in (result.method, first, *known) if text]


def space(experiment: Experiment) -> Table:
    """The parameters with their values and defaults."""
    rows = [
        (parameter.name, _kind(parameter), parameter.describe(), parameter.format(parameter.default))
        for parameter in experiment.space.parameters
    ]
    return Table(("parameter", "scale", "values", "default"), rows)


def _kind(parameter: Parameter) -> str:
    if isinstance(parameter, Choice):
        return "ordered" if parameter.ordered else "categories"
    return parameter.scale


def environment(record: Record, result: Result) -> Rows:
    """Where and how the experiment ran, as far as it is stored."""
    experiment = result.experiment
    created = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(record.created_at))
    rows = [("created", created), ("status", status_text(record)), ("identifier", record.uid)]
    ending = (record.result or {}).get("ending")
    if ending:
        rows.append(("the search ended", str(ending)))
    if experiment.command is not None:
        rows.append(("runs on", experiment.command.where))
    if isinstance(template := experiment.command, Template):
        rows.append(("command", " ".join(template.argv) if template.shell else shlex.join(template.argv)))
        rows += [(f"variable {name}", text) for name, text in template.environment.items()]
    if spent := working_time(record, result, time.time()).elapsed_s:
        rows.append(("elapsed, without pauses", duration_text(spent)))
    return [*rows, *((name if name == "CPU" else name.lower(), text) for name, text in machine_rows(record, result))]


def commands(record: Record, experiment: Experiment) -> Mapping[str, str]:
    """The commands to show, export, use, resume and repeat the experiment."""
    number = record.id
    again = "luthier run experiment.yaml" if record.source else tune_command(experiment, record.name)
    known = {
        "Show the result": f"luthier show {number} --all",
        "Export all runs": f"luthier export {number} --output runs-{number}.csv",
        "Use the recommended configuration": f"luthier apply {number}",
    }
    if record.status not in ENDED and experiment.command is not None:
        known["Resume"] = f"luthier resume {number}"
    elif experiment.command is not None:
        known["Continue with more runs"] = f"luthier resume {number} --budget +30"
    return known | ({} if again is None else {"Repeat the experiment": again})
