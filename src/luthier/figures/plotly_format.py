"""Figures as data and layout for plotly.js.

Colours are given by role, as in `role:best` or `role:best/0.2` (20 % opacity). `figures.js` replaces them by the
colours of the page, so that one figure works on light and dark pages and on paper.
"""

import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from luthier.errors import InvalidInputError
from luthier.figures.figure import Axis, Figure, Panel, Trace, columns_of
from luthier.trial import Json

_SYMBOLS = {"dot": "circle", "diamond": "diamond", "cross": "x-thin-open", "triangle": "triangle-up"}
_ROW_HEIGHT, _FIRST_ROW = 240, 360
_FAINT = 0.55
_EDGE = 0.015


def to_plotly(figure: Figure) -> dict[str, Json]:
    """The figure as `{data, layout}`; all texts are escaped."""
    several, named = len(figure.panels) > 1, any(trace.name for trace in figure.traces)
    columns = columns_of(figure)
    rows = -(-len(figure.panels) // columns)
    marks = any(trace.kind == "marks" for trace in figure.traces)
    layout: dict[str, Json] = {
        "autosize": True,
        "height": _ROW_HEIGHT * rows + 80 if several else _FIRST_ROW,
        "margin": {"l": 64, "r": 24, "t": 56 if several and named else 32, "b": 48},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": "role:text", "size": 12},
        "hovermode": "closest",
        "hoverlabel": {"align": "left"},
        "showlegend": named,
        "legend": {"orientation": "h", "x": 0, "yref": "container", "y": 1, "yanchor": "top"},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "role:default", "activecolor": "role:text"},
    }
    if several:
        layout["grid"] = {"rows": rows, "columns": columns, "pattern": "independent", "ygap": 0.32, "xgap": 0.16}
    headings = [_panel_title(number, panel) for number, panel in enumerate(figure.panels) if panel.title]
    labels = [label for trace in figure.traces if trace.kind == "labels" for label in _labels(trace)]
    layout["annotations"] = headings + labels
    for number, panel in enumerate(figure.panels):
        layout[f"xaxis{_suffix(number)}"] = _axis(panel.x)
        layout[f"yaxis{_suffix(number)}"] = _axis(panel.y)
    if marks:
        edge: dict[str, Json] = {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}
        layout[f"yaxis{_suffix(len(figure.panels))}"] = edge
    data = [_trace(trace, len(figure.panels)) for trace in figure.traces if trace.kind != "labels"]
    return {"data": data, "layout": layout}


def plotly_js() -> Path:
    """The file plotly.js of the installed package plotly."""
    found = find_spec("plotly")
    folders = found.submodule_search_locations if found is not None else None
    for folder in folders or ():
        if (script := Path(folder, "package_data", "plotly.min.js")).is_file():
            return script
    raise InvalidInputError("figures on web pages need plotly: pip install 'luthier[serve]'")


def _suffix(number: int) -> str:
    """Plotly counts axes as x, x2, x3."""
    return "" if number == 0 else str(number + 1)


def _panel_title(number: int, panel: Panel) -> Json:
    axis = _suffix(number)
    return {
        "text": _safe(panel.title),
        "xref": f"x{axis} domain",
        "yref": f"y{axis} domain",
        "x": 0,
        "y": 1,
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 13},
    }


def _axis(axis: Axis) -> dict[str, Json]:
    plain: dict[str, Json] = {
        "title": {"text": _safe(axis.title)},
        "type": axis.scale,
        "gridcolor": "role:grid",
        "linecolor": "role:grid",
        "zeroline": False,
        "automargin": True,
        "visible": axis.visible,
    }
    if axis.ticks:
        plain |= {
            "tickmode": "array",
            "tickvals": [place for place, _ in axis.ticks],
            "ticktext": [_safe(text) for _, text in axis.ticks],
            "showgrid": False,
        }
    return plain


def _trace(trace: Trace, panels: int) -> dict[str, Json]:
    axis = _suffix(trace.panel)
    plain: dict[str, Json] = {
        "type": "bar" if trace.kind == "bars" else "scatter",
        "x": _numbers(trace.x),
        "y": _numbers(trace.y),
        "name": _safe(trace.name),
        "showlegend": bool(trace.name),
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
        "cliponaxis": trace.kind not in ("points", "marks"),
    }
    if trace.texts:
        plain |= {"hovertext": [_safe(text) for text in trace.texts], "hoverinfo": "text"}
    elif trace.kind != "points":
        plain["hoverinfo"] = "skip"
    return plain | _LOOKS[trace.kind](trace) | ({"yaxis": f"y{_suffix(panels)}"} if trace.kind == "marks" else {})


def _points(trace: Trace) -> dict[str, Json]:
    strength = f"/{_FAINT}" if trace.faint else ""
    size = 9 if trace.symbol != "dot" else 6
    marker: dict[str, Json] = {"color": f"role:{trace.role}{strength}", "symbol": _SYMBOLS[trace.symbol], "size": size}
    return {"mode": "markers", "marker": marker, **_error("error_y", trace, trace.y)}


def _marks(trace: Trace) -> dict[str, Json]:
    marker: dict[str, Json] = {"color": f"role:{trace.role}", "symbol": _SYMBOLS[trace.symbol], "size": 9}
    marker["line"] = {"width": 2, "color": f"role:{trace.role}"}
    return {"mode": "markers", "marker": marker, "y": [_EDGE] * len(trace.x)}


def _line(trace: Trace) -> dict[str, Json]:
    strength = f"/{_FAINT}" if trace.faint else ""
    line: dict[str, Json] = {"color": f"role:{trace.role}{strength}", "width": 1.5}
    return {"mode": "lines", "line": {**line, "dash": "dash"} if trace.dashed else line, "connectgaps": False}


def _band(trace: Trace) -> dict[str, Json]:
    return {
        "mode": "lines",
        "x": _numbers([*trace.x, *reversed(trace.x)]),
        "y": _numbers([*trace.high, *reversed(trace.low)]),
        "fill": "toself",
        "fillcolor": f"role:{trace.role}/0.18",
        "line": {"width": 0},
    }


def _bars(trace: Trace) -> dict[str, Json]:
    return {
        "orientation": "h",
        "width": 0.6,
        "marker": {"color": f"role:{trace.role}/0.75"},
        **_error("error_x", trace, trace.x),
    }


def _labels(trace: Trace) -> list[Json]:
    axis = _suffix(trace.panel)
    look: dict[str, Json] = {
        "xref": f"x{axis}",
        "yref": f"y{axis}",
        "xanchor": "left",
        "xshift": 3,
        "showarrow": False,
        "bgcolor": "role:page/0.75",
        "borderpad": 1,
        "font": {"size": 11, "color": f"role:{trace.role}"},
    }
    placed = zip(trace.x, trace.y, trace.texts, strict=True)
    return [{**look, "x": x, "y": y, "text": _safe(text)} for x, y, text in placed]


_LOOKS = {"points": _points, "marks": _marks, "line": _line, "band": _band, "bars": _bars}


def _error(name: str, trace: Trace, middles: Sequence[float | None]) -> dict[str, Json]:
    """Error bars from the middles to the ends of their intervals, if there are any."""
    if all(low is None for low in trace.low):
        return {}

    def lengths(ends: Sequence[float | None]) -> list[float]:
        pairs = zip(middles, ends, strict=True)
        return [0.0 if end is None or middle is None else abs(end - middle) for middle, end in pairs]

    colour = "role:text" if trace.kind == "bars" else f"role:{trace.role}"
    bars: dict[str, Json] = {"type": "data", "array": lengths(trace.high), "arrayminus": lengths(trace.low)}
    return {name: {**bars, "symmetric": False, "thickness": 1.2, "width": 3, "color": colour}}


def _numbers(values: Sequence[float | None]) -> list[float | None]:
    """The values as JSON numbers; infinite ones become null."""
    return [value if value is not None and math.isfinite(value) else None for value in values]


def _safe(text: str) -> str:
    """The escaped text: plotly.js interprets some HTML tags."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("\n", "<br>")
