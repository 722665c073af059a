"""Remarks about a result, as sentences for terminal, page and report."""

import math

from luthier.result.activity import activity_of
from luthier.result.result import Result
from luthier.result.text import value_text

VERIFIED_TRIALS = (
    "The estimates of the default and of the configuration compared with it are from the verification, the others from "
    "the search, where the best of many noisy values looks better than it is."
)


def runs_text(result: Result) -> str:
    """How many runs used up the budget, and how many were lost in addition."""
    lost = result.lost
    return f"{len(result.runs) - lost} of {result.experiment.budget} runs" + (
        f" ({lost} more were lost)" if lost else ""
    )


def noise_text(result: Result) -> str:
    """How much runs of one configuration differ, and how many were repeats; empty if none ran twice."""
    noise = result.noise
    if not noise.freedom:
        return ""
    spread = f"{100.0 * noise.deviation:.2g} %"
    if not noise.relative:
        spread = value_text(noise.deviation, result.experiment.objective.measure)
    repeated = f"{result.repeats} runs of the search were repeats (estimator: {result.estimator})"
    return f"noise: {spread} from run to run" + (f"; {repeated}" if result.repeats else "")


def search_lines(result: Result) -> list[str]:
    """How the search used its slots, and how much sooner it was than a random search; none if nothing was searched."""
    if result.experiment.is_comparison:
        return []
    compared = None if result.over_random is None else result.over_random.sentence()
    return [line for line in (activity_of(result).sentence(), compared) if line]


def trouble_lines(result: Result) -> list[str]:
    """How the speed of the machine changed, and which runs are outliers."""
    lines = []
    drift, outliers = result.drift, result.outliers
    if drift.kind != "steady":
        advice = (
            "values are corrected for it" if result.experiment.sentinels else "use --sentinels 10 to correct for it"
        )
        lines.append(f"machine: {drift.sentence()}, measured by the runs of the default; {advice}")
    if outliers:
        worst = max(outliers, key=lambda outlier: abs(math.log(outlier.factor)))
        lines.append(
            f"outliers: {len(outliers)} of {len(result.runs)} runs; "
            f"run {worst.run} gave {worst.factor:.3g}x the usual value of its configuration ({worst.reason})"
        )
    return lines


def command_line(result: Result) -> str | None:
    """The recommended command line, where a command was tuned."""
    template, config = result.experiment.command, result.recommended
    return None if template is None or config is None else template.line(result.experiment.space, config)
