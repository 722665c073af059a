"""Figures of results: what to draw as plain values, and two ways to draw it.

`FIGURES` holds every figure of one experiment by name. `to_plotly` is for pages and reports, `draw` for PNG and SVG.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from luthier.analysis.result import Result
from luthier.figures import course, gains, knobs
from luthier.figures.figure import DARK, LIGHT, Figure
from luthier.figures.gains import compared
from luthier.figures.image import draw
from luthier.figures.web import plotly_js, to_plotly

__all__ = ["DARK", "FIGURES", "LIGHT", "SCRIPT", "Drawing", "Figure", "compared", "draw", "plotly_js", "to_plotly"]

SCRIPT = Path(__file__).with_name("figures.js")
"""An ES module that shows what `to_plotly` gives in the colours of the page."""

POINTS = 1000
"""About how many points a figure has at most."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """One entry of `FIGURES`. `explanation` says how to read the figure; a `slow` one fits models, for seconds."""

    title: str
    explanation: str
    build: Callable[[Result, int], Figure | None]
    slow: bool = False

    def __call__(self, result: Result, points: int = POINTS) -> Figure | None:
        """The figure of this result; None if it would tell nothing.

        Of a history longer than `points`, the lowest and the highest value of each of equally long stretches are kept.
        The best so far is exact at any length, and no stretch with a failure loses its mark.
        """
        return self.build(result, points)


FIGURES: Mapping[str, Drawing] = {
    "trajectory": Drawing(
        "Every run",
        "Each point is one run, in the order in which they were submitted. Runs without a number are crosses at the "
        "lower edge, or triangles at what they took at least.",
        course.trajectory,
    ),
    "trials": Drawing(
        "Every configuration",
        "Each point is one configuration, judged by all of its runs in the search. The line is the best so far, as it "
        "is known now, with its interval.",
        course.trials,
    ),
    "gain": Drawing(
        "Gain over the default",
        "How much better the best configuration is. An interval that does not touch the dashed line is beyond doubt. "
        "Estimates of the search flatter the winner; the verification does not.",
        gains.gains,
    ),
    "front": Drawing(
        "The Pareto front",
        "No other configuration is better in everything than one on the front. Whatever lies on the worse side of the "
        "line is beaten.",
        gains.front,
    ),
    "importance": Drawing(
        "What matters",
        "The share of all variation that a parameter has a part in, with its 95 % interval. Shares may add up to more "
        "than 100 %, because parameters act together.",
        knobs.importance,
        slow=True,
    ),
    "dependence": Drawing(
        "How the value follows each parameter",
        "The mean over all values of the other parameters, by a model of what was measured, with its 95 % interval.",
        knobs.dependence,
        slow=True,
    ),
    "parallel": Drawing(
        "Every configuration at once",
        "Each line is one configuration, from its parameters to its value, with better ones on top of the last axis. "
        "Where the best lines run together, the value of that parameter is what makes them good.",
        knobs.parallel,
    ),
    "scatter": Drawing(
        "What was tried",
        "The value of each configuration against every parameter by itself. Empty stretches were not tried.",
        knobs.scatter,
    ),
    "noise": Drawing(
        "Noise",
        "How much the runs of one configuration differ. The dashed line is the noise of all configurations together.",
        gains.noise,
    ),
    "machine": Drawing(
        "The machine",
        "Runs of the default, again and again: a level that moves is the machine's doing, not that of a configuration.",
        course.machine,
    ),
    "utilisation": Drawing(
        "Runs at once",
        "How many runs were under way at a time. Below the dashed line, workers were waiting.",
        course.utilisation,
    ),
}
"""Every figure of one experiment, in the order in which a report shows them."""
