"""The story of a tuning of several steps: what each of them brought, in sentences, and the time that it took."""

from luthier.result.result import Result
from luthier.result.text import duration_text
from luthier.spec.experiment import Experiment
from luthier.spec.origin import Step
from luthier.trial import Json


def story(experiment: Experiment, cost_s: float) -> list[Step]:
    """What was done, step by step, this experiment included; empty if it is not part of a larger tuning."""
    origin = experiment.origin
    if origin is None:
        return []
    name = "search" if origin.searched is None else "comparison"
    return [*origin.steps, Step(name, (f"this experiment, on {origin.program}",), cost_s)]


def story_lines(result: Result) -> list[str]:
    """The steps before this experiment, and the time of all of them, as sentences."""
    steps = story(result.experiment, result.cost_s)
    if not steps:
        return []
    lines = [f"{step.name}: {line}" for step in steps[:-1] for line in step.lines]
    spent = ", ".join(f"{step.name} {duration_text(step.seconds)}" for step in steps)
    total = duration_text(sum(step.seconds for step in steps))
    return [*lines, f"time of the whole tuning: {total} ({spent})"]


def story_json(result: Result) -> list[Json]:
    """The steps as JSON, this experiment last."""
    return [
        {"name": step.name, "lines": list(step.lines), "seconds": step.seconds}
        for step in story(result.experiment, result.cost_s)
    ]
