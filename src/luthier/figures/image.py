"""Figures as PNG and SVG files."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from luthier.errors import InvalidInputError
from luthier.figures.figure import LIGHT, Axis, Figure, Panel, Trace, columns_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as Ruler
    from matplotlib.figure import Figure as Canvas

FORMATS = (".png", ".svg")
_FEW_DECADES = 60.0
_SYMBOLS = {"dot": "o", "diamond": "D", "cross": "x", "triangle": "^"}


def draw(figure: Figure, path: Path) -> None:
    """Write the figure to a .png or .svg file with a white background; if that fails, no file is left behind."""
    if path.suffix not in FORMATS:
        raise InvalidInputError(f"{path}: not supported; use a file that ends in {' or '.join(FORMATS)}")
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise InvalidInputError(f"{path}: image files need matplotlib: pip install 'luthier[plots]'") from None
    temporary = path.with_name(f".{path.name}.part")
    try:
        # Dollar signs in names are no formulas; a fixed salt makes the output reproducible.
        settings = mpl.rc_context({"text.parse_math": False, "font.size": 9.0, "svg.hashsalt": "luthier"})
        with settings, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # characters that the font lacks are drawn as boxes
            canvas = Canvas(figsize=_size(figure), layout="constrained")
            _fill(canvas, figure)
            canvas.savefig(
                temporary, format=path.suffix[1:], dpi=144, metadata={"Date": None} if path.suffix == ".svg" else None
            )
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _size(figure: Figure) -> tuple[float, float]:
    columns = columns_of(figure)
    rows = -(-len(figure.panels) // columns)
    return (8.0, 4.5) if len(figure.panels) == 1 else (3.4 * columns + 0.4, 2.5 * rows + 0.6)


def _fill(canvas: "Canvas", figure: Figure) -> None:
    columns = columns_of(figure)
    rows = -(-len(figure.panels) // columns)
    frames = [canvas.add_subplot(rows, columns, number + 1) for number in range(len(figure.panels))]
    for frame, panel in zip(frames, figure.panels, strict=True):
        _prepare(frame, panel)
    shown = []
    for trace in figure.traces:
        handle = _LOOKS[trace.kind](frames[trace.panel], trace, LIGHT[trace.role])
        if trace.name:
            shown.append((handle, trace.name))
    for frame, panel in zip(frames, figure.panels, strict=True):
        _set_ticks(frame.xaxis, panel.x)
        _set_ticks(frame.yaxis, panel.y)
    canvas.suptitle(f"{figure.title} ({figure.note})" if figure.note else figure.title, fontsize=11)
    if shown:
        handles, names = zip(*shown, strict=True)
        canvas.legend(handles, names, loc="outside lower center", ncols=min(len(names), 3), frameon=False)


def _prepare(frame: "Axes", panel: Panel) -> None:
    frame.set_title(panel.title, fontsize=9, loc="left")
    frame.set_xlabel(panel.x.title)
    frame.set_ylabel(panel.y.title)
    frame.set_xscale(panel.x.scale)
    frame.set_yscale(panel.y.scale)
    frame.yaxis.set_visible(panel.y.visible)
    frame.spines[["top", "right"]].set_visible(False)
    frame.grid(visible=panel.y.visible, color=LIGHT["grid"], linewidth=0.6)
    frame.set_axisbelow(True)


def _set_ticks(ruler: "Ruler", axis: Axis) -> None:
    """Set the texts of an axis with ticks, and plain numbers instead of formulas on a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    if axis.scale == "log":
        low, high = ruler.get_view_interval()
        ruler.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < _FEW_DECADES * low else (1.0,)))
        ruler.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ruler.set_minor_locator(NullLocator())
    if axis.ticks:
        ruler.set_ticks([place for place, _ in axis.ticks], [text for _, text in axis.ticks])


def _points(frame: "Axes", trace: Trace, colour: str) -> object:
    x, y = _numbers(trace.x), _numbers(trace.y)
    if any(low is not None for low in trace.low):
        frame.errorbar(x, y, yerr=_lengths(y, trace), fmt="none", ecolor=colour, elinewidth=1, capsize=2)
    size = 3.5 if trace.symbol == "dot" else 5
    look = {"marker": _SYMBOLS[trace.symbol], "markersize": size, "alpha": 0.55 if trace.faint else 1.0}
    return frame.plot(x, y, linestyle="none", color=colour, **look)[0]  # type: ignore[arg-type]  # a mapping of types


def _marks(frame: "Axes", trace: Trace, colour: str) -> object:
    heights = [0.015] * len(trace.x)
    across = frame.get_xaxis_transform()
    look = {"marker": _SYMBOLS[trace.symbol], "linestyle": "none", "transform": across, "clip_on": False}
    return frame.plot(trace.x, heights, color=colour, **look)[0]  # type: ignore[arg-type]  # a mapping of types


def _line(frame: "Axes", trace: Trace, colour: str) -> object:
    style, alpha = "--" if trace.dashed else "-", 0.55 if trace.faint else 1.0
    return frame.plot(_numbers(trace.x), _numbers(trace.y), style, color=colour, alpha=alpha, linewidth=1.2)[0]


def _band(frame: "Axes", trace: Trace, colour: str) -> object:
    return frame.fill_between(trace.x, _numbers(trace.low), _numbers(trace.high), color=colour, alpha=0.18, linewidth=0)


def _bars(frame: "Axes", trace: Trace, colour: str) -> object:
    x, y = _numbers(trace.x), _numbers(trace.y)
    return frame.barh(y, x, height=0.6, color=colour, alpha=0.75, xerr=_lengths(x, trace), capsize=2)


def _labels(frame: "Axes", trace: Trace, colour: str) -> object:
    for x, y, text in zip(trace.x, _numbers(trace.y), trace.texts, strict=True):
        box = {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.5}
        frame.annotate(
            text, (x, y), (3, 0), textcoords="offset points", color=colour, fontsize=8, va="center", bbox=box
        )
    return None


_LOOKS: Mapping[str, Callable[["Axes", Trace, str], object]] = {
    "points": _points,
    "marks": _marks,
    "line": _line,
    "band": _band,
    "bars": _bars,
    "labels": _labels,
}


def _lengths(middles: Sequence[float], trace: Trace) -> tuple[list[float], list[float]]:
    """The lengths of the error bars below and above the middles; 0 without an interval."""
    sides = [
        [0.0 if end is None else abs(end - middle) for middle, end in zip(middles, ends, strict=True)]
        for ends in (trace.low, trace.high)
    ]
    return sides[0], sides[1]


def _numbers(values: Sequence[float | None]) -> list[float]:
    """The values as floats; missing and infinite ones become NaN, which is not drawn."""
    return [math.nan if value is None or not math.isfinite(value) else value for value in values]
