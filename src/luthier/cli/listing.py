"""The list of experiments, made without reading their runs."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from luthier.store.base import Record
from luthier.store.ownership import status_text

if TYPE_CHECKING:
    from rich.table import Table


def experiments_view(records: Sequence[Record]) -> "Table":
    """A table with one line for each experiment."""
    from rich.table import Table

    from luthier.cli.terminal import cell

    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("number", "name", "created", "status", "runs", "result"):
        table.add_column(heading)
    for record in records:
        created = time.strftime("%Y-%m-%d %H:%M", time.localtime(record.created_at))
        verdict = str((record.result or {}).get("verdict") or "")
        table.add_row(str(record.id), cell(record.name), created, status_text(record), str(record.runs), cell(verdict))
    return table
