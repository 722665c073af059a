"""Figures as plain values: what to draw, not how to draw it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["points", "line", "band", "bars", "marks", "labels"]
"""`bars` are horizontal; `marks` have no y value and are drawn at the lower edge; `labels` are only text."""

Symbol: TypeAlias = Literal["dot", "diamond", "cross", "triangle"]

Role: TypeAlias = Literal[
    "page", "text", "grid", "default", "search", "verify", "best", "failed", "pruned",
    "shade1", "shade2", "shade3", "shade4", "shade5",
]  # fmt: skip
"""What a colour is used for; a palette maps roles to colours. `shade1` is for the best values, `shade5` the worst."""

SHADES: tuple[Role, ...] = ("shade1", "shade2", "shade3", "shade4", "shade5")

SERIES: tuple[Role, ...] = ("search", "best", "pruned", "verify", "failed", "default")
"""Roles that distinguish several experiments."""

LIGHT: dict[Role, str] = {
    "page": "#ffffff", "text": "#1f2933", "grid": "#dfe4ea", "default": "#6b7280", "search": "#2f6db5",
    "verify": "#8250c4", "best": "#0b7f57", "failed": "#c0362c", "pruned": "#b97a00",
    "shade1": "#0b7f57", "shade2": "#59a98a", "shade3": "#a9b4bf", "shade4": "#d9a066", "shade5": "#c9653f",
}  # fmt: skip
DARK: dict[Role, str] = {
    "page": "#14181d", "text": "#e4e7eb", "grid": "#333c47", "default": "#9aa5b1", "search": "#78aef0",
    "verify": "#c4a1f5", "best": "#45cf9c", "failed": "#ff7d70", "pruned": "#efb548",
    "shade1": "#45cf9c", "shade2": "#3b9475", "shade3": "#66727f", "shade4": "#a8733a", "shade5": "#e07a50",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis; `ticks` are positions with texts, for axes whose numbers have no meaning."""

    title: str = ""
    scale: Literal["linear", "log"] = "linear"
    ticks: tuple[tuple[float, str], ...] = ()
    visible: bool = True


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes."""

    x: Axis
    y: Axis
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Something drawn on a panel; without a name it is not in the legend.

    `low` and `high` are the ends of a band or of error bars (None: no error bar). A None in `y` interrupts a line.
    `texts` are shown next to the pointer; for `labels` they are the labels.
    """

    kind: Kind
    role: Role
    x: Sequence[float]
    y: Sequence[float | None] = ()
    name: str = ""
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    texts: Sequence[str] = ()
    symbol: Symbol = "dot"
    dashed: bool = False
    faint: bool = False
    panel: int = 0


@dataclass(frozen=True, slots=True)
class Figure:
    """One picture: panels in rows of at most three, the traces on them, and a `note` for the reader."""

    title: str
    panels: tuple[Panel, ...]
    traces: tuple[Trace, ...]
    note: str = ""


MOST_COLUMNS = 3


def columns_of(figure: Figure) -> int:
    """The number of panels in a row."""
    count = len(figure.panels)
    return 2 if count == 4 else min(count, MOST_COLUMNS)
