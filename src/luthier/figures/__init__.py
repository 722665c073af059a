"""Figures of results: their contents as plain values, and two ways to draw them.

`FIGURES` holds every figure of one experiment by name. `to_plotly` is for pages and reports, `draw` for PNG and SVG.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from luthier.figures import gain_figures, parameter_figures, progress_figures, return_figures
from luthier.figures.figure import DARK, LIGHT, Figure
from luthier.figures.gain_figures import compared
from luthier.figures.image import draw
from luthier.figures.plotly_format import plotly_js, to_plotly
from luthier.result.result import Result

__all__ = [
    "DARK",
    "FIGURES",
    "LIGHT",
    "SCRIPT",
    "Drawing",
    "Figure",
    "compared",
    "draw",
    "plotly_js",
    "to_plotly",
]

SCRIPT = Path(__file__).with_name("figures.js")
"""An ES module that shows the output of `to_plotly` in the colours of the page."""

POINTS = 1000
"""The approximate maximum number of points in a figure."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """One entry of `FIGURES`. `explanation` says how to read the figure; a `slow` one takes seconds to fit models."""

    title: str
    explanation: str
    build: Callable[[Result, int], Figure | None]
    slow: bool = False

    def __call__(self, result: Result, points: int = POINTS) -> Figure | None:
        """The figure of this result; None if it would be empty.

        A history longer than `points` is divided into equal sections, of which the lowest and the highest values are
        kept. The line of the best value so far is exact, and every section with a failure keeps its mark.
        """
        return self.build(result, points)


FIGURES: Mapping[str, Drawing] = {
    "trajectory": Drawing(
        "All runs",
        "Each point is one run, in order of submission. Runs without a value are crosses at the lower edge, or "
        "triangles at their lower bound.",
        progress_figures.trajectory,
    ),
    "trials": Drawing(
        "All configurations",
        "Each point is one configuration, estimated from all its runs in the search. The line is the best one so far, "
        "with its interval.",
        progress_figures.trials,
    ),
    "gain": Drawing(
        "Gain over the default",
        "How much better the best configuration is than the default. The gain is significant if its interval does not "
        "touch the dashed line. Estimates from the search are often too good for the winner; the verification is not.",
        gain_figures.gains,
    ),
    "return": Drawing(
        "Return on tuning",
        "RoTI is the gain over the default for each minute of run time spent; it falls once the search finds little "
        "more. The second panel, where run times are measured, adds the time of the tuning to the runs in production: "
        "where the lines cross, the tuning has paid. The band is the 95 % interval of the verification.",
        return_figures.returns,
    ),
    "front": Drawing(
        "Pareto front",
        "No configuration is better in all objectives than one on the front. Configurations on the worse side of the "
        "line are dominated.",
        gain_figures.front,
    ),
    "importance": Drawing(
        "Parameter importance",
        "The share of the variance that a parameter explains, alone and together with others, with its 95 % interval. "
        "An interval that begins at 0: the parameter may have no effect. Runs of the same configuration differ by "
        "noise. The sum can exceed 100 %, because interactions count for every parameter involved.",
        parameter_figures.importance,
        slow=True,
    ),
    "dependence": Drawing(
        "Effect of each parameter",
        "The mean over all values of the other parameters, predicted by a model, with its 95 % interval.",
        parameter_figures.dependence,
        slow=True,
    ),
    "parallel": Drawing(
        "Parallel coordinates",
        "Each line is one configuration, from its parameters to its value; on the last axis, the best are at the top. "
        "Where the best lines meet on an axis, that value of the parameter is good.",
        parameter_figures.parallel,
    ),
    "scatter": Drawing(
        "Values tried",
        "The value of each configuration against each parameter. Empty regions were not tried.",
        parameter_figures.scatter,
    ),
    "noise": Drawing(
        "Noise",
        "How much runs of the same configuration differ. The dashed line is the pooled noise of all configurations.",
        gain_figures.noise,
    ),
    "machine": Drawing(
        "Drift of the machine",
        "Repeated runs of the default: if their level changes, the cause is the machine, not a configuration.",
        progress_figures.machine,
    ),
    "utilisation": Drawing(
        "Parallel runs",
        "How many runs were active at a time. Below the dashed line, slots were idle.",
        progress_figures.utilisation,
    ),
}
"""All figures of one experiment, in the order of the report."""
