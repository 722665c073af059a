"""The command that explains why the best configuration of an experiment is better."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from luthier.cli.options import AsJson, Number, Quiet, StoreUrl
from luthier.cli.terminal import print_json, print_view, say
from luthier.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.table import Table

    from luthier.result.explanation import Explanation
    from luthier.result.result import Result


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command()(explain)


def explain(
    number: Number,
    stored: Annotated[bool, typer.Option("--stored", help="Show the explanation in the store; run nothing.")] = False,
    store: StoreUrl = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Explain why the best configuration is better: run it and the default once more and compare what they do.

    System calls, I/O, processor time and memory are compared, the largest differences first. The explanation is kept
    in the store; reports and pages show it.

    Example: luthier explain 3
    """
    from luthier import launch
    from luthier.result.explanation import explanation_json

    if stored:
        explanation = launch.explained(number, store)
        if explanation is None:
            raise InvalidInputError(
                f"experiment {number} has no explanation yet; make one with: luthier explain {number}"
            )
    else:
        explanation = launch.explain(number, store, lambda line: None if quiet else say(line, sys.stderr))
    if as_json:
        print_json({"number": number, **explanation_json(explanation)})
    else:
        _show(explanation, launch.open(number, store)[1])


def _show(explanation: "Explanation", result: "Result") -> None:
    from luthier.result.explanation import NOTE
    from luthier.result.text import config_text
    from luthier.trial import Config

    space = result.experiment.space
    for label, one in (("default", explanation.default), ("best", explanation.best)):
        say(f"{label + ':':<9}{config_text(Config(one.config), space)}")
    say("")
    say("The best configuration, compared with the default:")
    for sentence in explanation.sentences:
        say(f"  - {sentence}")
    say("")
    print_view(_table(explanation))
    say("")
    for note in (NOTE, *explanation.notes):
        say(note)


def _table(explanation: "Explanation") -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading, justify in (("", "left"), ("default", "right"), ("best", "right"), ("", "left")):
        table.add_column(heading, justify="right" if justify == "right" else "left")
    for one in explanation.differences:
        texts = (one.default_text, one.best_text, one.change)
        table.add_row(one.quantity.label, *texts, style="bold" if one.is_large else "")
    return table
