"""The command that writes reports and pictures."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from luthier.cli.terminal import say
from luthier.errors import LuthierError, UnavailableError

if TYPE_CHECKING:
    from luthier.analysis.result import Result
    from luthier.figures import Figure
    from luthier.store.base import Record


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command()(report)


def report(
    number: Annotated[int, typer.Argument(help="The experiment's number; see luthier list.", metavar="NUMBER")],
    html: Annotated[bool, typer.Option("--html", help="Write one HTML file, as if nothing is said.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The HTML file; luthier-report-NUMBER.html.", metavar="FILE")
    ] = None,
    svg: Annotated[Path | None, typer.Option(help="A folder for the figures as SVG.", metavar="FOLDER")] = None,
    png: Annotated[Path | None, typer.Option(help="A folder for the figures as PNG.", metavar="FOLDER")] = None,
    store: Annotated[
        str | None, typer.Option("--store", envvar="LUTHIER_STORE", help="Where history is kept.", metavar="URL")
    ] = None,
) -> None:
    """Write what an experiment found as one HTML file with everything in it, or its figures as pictures.

    Example: luthier report 3 --html --svg figures
    """
    from luthier.analysis.result import conclude
    from luthier.figures import FIGURES
    from luthier.spec.experiment import Experiment
    from luthier.store import open_store

    history = open_store(store)
    record = history.experiment(number)
    result = conclude(Experiment.from_json(record.settings), history.runs(number))
    page = output or Path(f"luthier-report-{number}.html")
    has_page = html or output is not None or (svg is None and png is None)
    figures = {name: figure for name, drawing in FIGURES.items() if (figure := drawing(result)) is not None}
    try:
        if has_page:
            _write(page, record, result, figures)
        for folder, suffix in ((svg, ".svg"), (png, ".png")):
            if folder is not None:
                _draw(folder, suffix, figures)
    except OSError as error:
        raise UnavailableError(f"cannot write {error.filename}: {error.strerror}; choose another place") from None


def _write(path: Path, record: "Record", result: "Result", figures: "Mapping[str, Figure]") -> None:
    """Beside the target first, so that a full disk never leaves half a file under its name."""
    from luthier.report import report_html

    text = report_html(record, result, figures)
    beside = path.with_name(f".{path.name}.part")
    try:
        beside.write_text(text, encoding="utf-8", errors="replace")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    say(f"wrote {path}")


def _draw(folder: Path, suffix: str, figures: "Mapping[str, Figure]") -> None:
    from luthier.figures import draw

    if not figures:
        raise LuthierError("there is nothing to draw: no run gave a number")
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        draw(figure, folder / f"{name}{suffix}")
    say(f"wrote {folder}: {', '.join(f'{name}{suffix}' for name in figures)}")
