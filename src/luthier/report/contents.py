"""The tables of a report that are no facts of the result: trials, parameters, how it ran, and commands."""

import shlex
import time
from collections.abc import Mapping

from luthier.report.commands import tune_command
from luthier.result.findings import Table
from luthier.result.result import Result
from luthier.result.text import estimates_text, measure_names
from luthier.result.trials import best_first
from luthier.space import Choice, Parameter
from luthier.spec.experiment import Experiment
from luthier.spec.template import Template
from luthier.store.base import ENDED, Record
from luthier.store.ownership import status_text

BEST_TRIALS = 15


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


def environment(record: Record, experiment: Experiment) -> list[tuple[str, str]]:
    """How the experiment was started and what it runs, as far as it is stored."""
    created = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(record.created_at))
    rows = [("created", created), ("status", status_text(record)), ("identifier", record.uid)]
    if experiment.command is not None:
        rows.append(("runs on", experiment.command.where))
    if isinstance(template := experiment.command, Template):
        rows.append(("command", " ".join(template.argv) if template.shell else shlex.join(template.argv)))
        rows += [(f"variable {name}", text) for name, text in template.environment.items()]
    return rows


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
