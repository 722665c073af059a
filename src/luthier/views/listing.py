"""Experiments one line each, without reading their runs."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from luthier.engine.ownership import is_alive
from luthier.store.base import Json, Record

if TYPE_CHECKING:
    from rich.table import Table


def status_text(record: Record) -> str:
    """Where the experiment stands, seen from here."""
    if record.status == "running" and not is_alive(record, time.time()):
        return "interrupted"
    return record.status


def experiments_view(records: Sequence[Record]) -> "Table":
    """One line an experiment."""
    from rich.table import Table

    from luthier.views.terminal import cell

    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("number", "name", "begun", "status", "runs", "what came out"):
        table.add_column(heading)
    for record in records:
        begun = time.strftime("%Y-%m-%d %H:%M", time.localtime(record.created_at))
        verdict = str((record.result or {}).get("verdict") or "")
        table.add_row(str(record.id), cell(record.name), begun, status_text(record), str(record.runs), cell(verdict))
    return table


def record_json(record: Record) -> dict[str, Json]:
    """One experiment of a listing as plain values."""
    return {
        "number": record.id,
        "name": record.name,
        "created_at": record.created_at,
        "status": status_text(record),
        "runs": record.runs,
        "budget": record.settings.get("budget"),
    }
