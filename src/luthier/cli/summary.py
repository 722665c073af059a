"""Results as tables on the terminal."""

import time
from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table

from luthier.cli.terminal import cell
from luthier.result.facts import Fact, find_facts
from luthier.result.findings import Findings, Found
from luthier.result.findings import Table as FactTable
from luthier.result.importance import Importances
from luthier.result.result import Result
from luthier.result.text import estimates_text, measure_names, share_text
from luthier.result.trials import best_first
from luthier.spec.experiment import Experiment
from luthier.store.base import Record
from luthier.trial import Estimate

SHOWN_TRIALS = 10
BAR_WIDTH = 20
VERIFIED_TRIALS = (
    "The estimates of the default and of the configuration compared with it are from the verification, the others from "
    "the search, where the best of many noisy values looks better than it is."
)


def result_view(record: Record, result: Result) -> RenderableType:
    """All facts of a result, as far as they are known without its store."""
    return facts_view(record, find_facts(Findings(record, result, time.time())))


def facts_view(record: Record, found: Mapping[Fact, Found]) -> RenderableType:
    """All facts of an experiment."""
    parts: list[RenderableType] = []
    for fact, one in found.items():
        if one.table is not None and one.table.rows:
            if fact.topic != "answer":
                parts.append(cell(f"{fact.title[0].lower()}{fact.title[1:]}:", style="dim"))
            parts.append(_table(one.table))
        parts += [cell(line, style="bold" if fact.name == "verdict" else "") for line in one.sentences]
        for heading, text in one.texts:
            is_script = fact.name == "recommendation" and "\n" in text
            lines = [f"luthier apply {record.id} > tuned.sh"] if is_script else text.split("\n")
            parts += [cell(f"{heading}:", style="dim"), *(_one_line(f"  {line}") for line in lines)]
    return Group(*parts)


def _table(content: FactTable) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in content.headings:
        table.add_column(cell(heading))
    for row in content.rows:
        table.add_row(*map(cell, row))
    return table


def _one_line(text: str) -> RenderableType:
    """A line to copy, without line breaks."""
    line = cell(text)
    line.overflow, line.no_wrap = "ignore", True
    return line


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
    return share_text(estimate.deviation / abs(estimate.value))


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
