"""Experiments one line each, without reading their runs."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from luthier.store.base import Record
from luthier.store.ownership import status_text

if TYPE_CHECKING:
    from rich.table import Table


def experiments_view(records: Sequence[Record]) -> "Table":
    """One line an experiment."""
    from rich.table import Table

    from luthier.cli.terminal import cell

    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("number", "name", "begun", "status", "runs", "what came out"):
        table.add_column(heading)
    for record in records:
        begun = time.strftime("%Y-%m-%d %H:%M", time.localtime(record.created_at))
        verdict = str((record.result or {}).get("verdict") or "")
        table.add_row(str(record.id), cell(record.name), begun, status_text(record), str(record.runs), cell(verdict))
    return table
