"""Results as tables on the terminal."""

from rich.console import Group, RenderableType
from rich.table import Table

from luthier.cli.terminal import cell
from luthier.result.failures import first_output, reasons_of
from luthier.result.importance import Importances
from luthier.result.result import Result
from luthier.result.sentences import VERIFIED_TRIALS, command_line, noise_text, runs_text, search_lines, trouble_lines
from luthier.result.serial import ending_of
from luthier.result.story import story_lines
from luthier.result.text import config_text, duration_text, estimate_text, estimates_text, measure_names
from luthier.result.trials import best_first
from luthier.result.tuned_parameters import tuned_parameters
from luthier.result.tuning_return import return_lines
from luthier.spec.experiment import Experiment
from luthier.store.base import ENDED, Record
from luthier.store.ownership import status_text
from luthier.trial import Estimate

SHOWN_TRIALS = 10
BAR_WIDTH = 20


def result_view(record: Record, result: Result) -> RenderableType:
    """The default and the best configuration or the Pareto front, the verdict, and the command to use."""
    several = result.experiment.has_front
    table = _front_table(result) if several else _comparison_table(result)
    parts: list[RenderableType] = [table, cell(result.verdict, style="bold")]
    if result.method:
        parts.append(cell(result.method))
    parts.append(cell(f"{runs_text(result)}, {duration_text(result.cost_s)} of run time"))
    if not result.experiment.is_comparison and (ending := ending_of(record)) is not None:
        parts.append(cell(f"the search ended: {ending}"))
    if result.experiment.earlier is not None:
        parts += [cell(f"learnt from {note}") for note in result.experiment.earlier.notes]
    if tuned := tuned_parameters(record, result.experiment, result.runs):
        parts.append(cell(tuned.sentence))
    parts += [cell(line) for line in (*story_lines(result), *return_lines(result), *search_lines(result))]
    if noise := noise_text(result):
        parts.append(cell(noise))
    parts += [cell(line) for line in trouble_lines(result)]
    if result.winner is None:
        parts += _failure_lines(result)
    command = command_line(result)
    if command is not None and "\n" in command:
        command = f"luthier apply {record.id} > tuned.sh"
    if command is not None:
        is_default = result.default is not None and result.recommended == result.default.config
        use = "command to use (the default):" if is_default else "command to use:"
        if several:
            use = _choice_text(result)
        parts += [cell(use, style="dim"), _one_line(f"  {command}")]
    if record.status == "no result":
        parts.append(cell("no result: correct the cause and start a new experiment"))
    elif record.status not in ENDED:
        parts.append(cell(f"{status_text(record)}; continue with: luthier resume {record.id}"))
    return Group(*parts)


def _failure_lines(result: Result) -> list[RenderableType]:
    """The reasons of the runs without a number, and the output of the first failing run."""
    space = result.experiment.space
    reasons = reasons_of(result.runs)
    lines = [cell("runs without a number:", style="dim")] if reasons else []
    for reason in reasons:
        first = "" if reason.first is None else f"  [first: run {reason.first.number}]"
        lines.append(cell(f"  {reason.runs:>4}  {reason.text}{first}"))
    found = first_output(result.runs)
    if found is None:
        return [*lines]
    for stream, text in (("stderr", found.stderr), ("stdout", found.stdout)):
        where = f"run {found.run.number} ({config_text(found.run.config, space)})"
        lines.append(cell(f"{stream} of {where}:" if text else f"{stream} of {where} is empty", style="dim"))
        lines += [cell(f"  {line}") for line in text.split("\n") if text]
    return [*lines]


def _one_line(text: str) -> RenderableType:
    """A line to copy, without line breaks."""
    line = cell(text)
    line.overflow, line.no_wrap = "ignore", True
    return line


def _choice_text(result: Result) -> str:
    """Why this configuration of the Pareto front is recommended."""
    first = measure_names(result.experiment)[0]
    if result.default is None or result.default.estimate is None:
        return f"best in {first}:"
    if result.recommended == result.default.config:
        return "no configuration is as good as the default in all objectives; choose one of the front, or keep:"
    return f"the best in {first} of those that are no worse than the default in any objective:"


def trials_view(result: Result, *, everything: bool) -> RenderableType:
    """The trials, best first."""
    experiment = result.experiment
    numbered = best_first(experiment, result.shown_trials)
    shown = numbered if everything else numbered[:SHOWN_TRIALS]
    table = Table(box=None, pad_edge=False, header_style="dim")
    noisy = ["noise"] if any(_spread_text(trial.estimate) for _, trial in shown) else []
    for heading in ("trial", "runs", *measure_names(experiment), *noisy, *experiment.space.names):
        table.add_column(cell(heading))
    for number, trial in shown:
        values = [cell(text) for text in estimates_text(trial, experiment)]
        values += [cell(_spread_text(trial.estimate)) for _ in noisy]
        settings = [cell(parameter.format(trial.config[parameter.name])) for parameter in experiment.space.parameters]
        table.add_row(str(number), str(len(trial.outcomes)), *values, *settings)
    notes = [f"... and {rest} more (--all shows them)"] if (rest := len(numbered) - len(shown)) else []
    notes += [VERIFIED_TRIALS] if result.comparison is not None else []
    return Group(table, *(cell(note, style="dim") for note in notes))


def _spread_text(estimate: Estimate | None) -> str:
    """The standard deviation of the runs of one configuration in percent of its value; empty if it ran once."""
    if estimate is None or estimate.deviation is None or estimate.value == 0.0:
        return ""
    return f"{100.0 * estimate.deviation / abs(estimate.value):.2g} %"


def importance_view(importances: Importances, experiment: Experiment) -> RenderableType:
    """A bar for each parameter: its share of the variation of the first objective; or why there is none."""
    what = f"importance for {measure_names(experiment)[0]}" if experiment.has_front else "importance"
    if importances.note is not None:
        return cell(f"parameter {what}: {importances.note}")
    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(3):
        table.add_column()
    for one in importances.parameters:
        text = f"{one.share:.0%} ({100 * one.low:.0f} to {100 * one.high:.0f})".replace("%", " %")
        table.add_row(cell(one.parameter), cell("█" * round(BAR_WIDTH * one.share) or "▏", style="cyan"), cell(text))
    if importances.unexplained is not None:
        bar = "░" * round(BAR_WIDTH * importances.unexplained)
        table.add_row(cell("(noise)", style="dim"), cell(bar), cell(f"{100 * importances.unexplained:.0f} %"))
    return Group(cell(f"parameter {what}: share of the variation that depends on each parameter", style="dim"), table)


def _front_table(result: Result) -> Table:
    experiment = result.experiment
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("", *measure_names(experiment), "configuration"):
        table.add_column(cell(heading))
    first = [] if result.default is None else [("default", result.default)]
    labels = ["front", *[""] * len(result.front)]
    for label, trial in [*first, *zip(labels, result.front, strict=False)]:
        values = [cell(text) for text in estimates_text(trial, experiment)]
        table.add_row(label, *values, cell(config_text(trial.config, experiment.space)))
    return table


def _comparison_table(result: Result) -> Table:
    experiment: Experiment = result.experiment
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("", measure_names(experiment)[0], "configuration"):
        table.add_column(cell(heading))
    is_best = result.challenger == result.winner
    for label, trial in (("default", result.default), ("best" if is_best else "next best", result.challenger)):
        if trial is not None and (label == "default" or result.default is None or trial != result.default):
            value = estimate_text(trial.estimate, experiment.objective.measure)
            table.add_row(label, cell(value), cell(config_text(trial.config, experiment.space)))
    return table
