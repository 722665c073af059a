"""The steps of a tuning with several experiments, as each experiment stores those before it."""

from luthier.result.result import Result
from luthier.result.sentences import runs_text
from luthier.result.serial import ending_of
from luthier.result.text import duration_text, estimate_text
from luthier.result.tuned_parameters import tuned_parameters, tuned_text
from luthier.result.tuning_return import tuning_return
from luthier.spec.origin import Searched, Step
from luthier.store.base import Record


def search_step(record: Record, result: Result, program: str) -> Step:
    """A finished search: its values are of the `program` that it ran, and not verified."""
    measure = result.experiment.objective.measure
    trials = [trial for trial in (result.default, result.winner) if trial is not None]
    values = " -> ".join(dict.fromkeys(estimate_text(trial.estimate, measure) for trial in trials))
    spent = f"{runs_text(result)}, {duration_text(result.cost_s)} of run time"
    ending = ending_of(record)
    lines = [f"experiment {record.id}, on {program}, not verified: {values} ({spent})", *tuned_lines(record, result)]
    return Step("search", (*lines, *([] if ending is None else [f"ended: {ending}"])), result.cost_s)


def tuned_lines(record: Record, result: Result) -> list[str]:
    """Which parameters were tuned first and last, and why; none if all were tuned all the time."""
    found = tuned_parameters(record, result.experiment, result.runs)
    if found is None:
        return []
    chosen = [step for step in found.steps if step.begin > 0]
    if not chosen:
        return ["impact first: the search ended before parameters were chosen"]
    lines = [f"tuned first, after {chosen[0].begin} configurations: {tuned_text(chosen[0], found.of)}"]
    if set(chosen[-1].names) != set(chosen[0].names):
        lines.append(f"tuned last, after {chosen[-1].begin} configurations: {tuned_text(chosen[-1], found.of)}")
    return lines


def searched(record: Record, result: Result, program: str) -> Searched:
    """The search, as the comparison of its best configuration stores it."""
    found = tuning_return(result)
    return Searched(record.uid, record.id, len(result.runs), program, () if found is None else found.over_time)


def comparison_step(record: Record, result: Result) -> Step:
    """A comparison that was made earlier in the same tuning."""
    return Step("comparison", (f"experiment {record.id}: {result.verdict}",), result.cost_s)
