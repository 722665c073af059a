"""The command that writes reports and figures."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from luthier.cli.options import Number, StoreUrl
from luthier.cli.terminal import say
from luthier.errors import LuthierError, UnavailableError

if TYPE_CHECKING:
    from luthier.figures import Figure
    from luthier.result.findings import Findings


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command()(report)


def report(
    number: Number,
    html: Annotated[bool, typer.Option("--html", help="Write one HTML file (default).")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The HTML file; luthier-report-NUMBER.html by default.", metavar="FILE"),
    ] = None,
    svg: Annotated[Path | None, typer.Option(help="Folder for the figures as SVG.", metavar="FOLDER")] = None,
    png: Annotated[Path | None, typer.Option(help="Folder for the figures as PNG.", metavar="FOLDER")] = None,
    store: StoreUrl = None,
) -> None:
    """Write a report about an experiment as one self-contained HTML file, or its figures as SVG or PNG files.

    Example: luthier report 3 --html --svg figures
    """
    from luthier import launch
    from luthier.figures import FIGURES
    from luthier.result.findings import stored_findings
    from luthier.store import open_server_store

    record, result = launch.open(number, store)
    page = output or Path(f"luthier-report-{number}.html")
    has_page = html or output is not None or (svg is None and png is None)
    figures = {name: figure for name, drawing in FIGURES.items() if (figure := drawing(result)) is not None}
    try:
        if has_page:
            _write(page, stored_findings(open_server_store(store), record, result, time.time()), figures)
        for folder, suffix in ((svg, ".svg"), (png, ".png")):
            if folder is not None:
                _draw(folder, suffix, figures)
    except OSError as error:
        raise UnavailableError(f"cannot write {error.filename}: {error.strerror}; choose another folder") from None


def _write(path: Path, findings: "Findings", figures: "Mapping[str, Figure]") -> None:
    """Write to a temporary file first, so that a full disk never leaves an incomplete report."""
    from luthier.report import report_html

    text = report_html(findings, figures)
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
        raise LuthierError("nothing to draw: no run gave a number")
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        draw(figure, folder / f"{name}{suffix}")
    say(f"wrote {folder}: {', '.join(f'{name}{suffix}' for name in figures)}")
