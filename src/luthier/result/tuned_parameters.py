"""Which parameters an experiment with impact first tunes now, tuned before, and why."""

from collections.abc import Sequence
from dataclasses import dataclass

from luthier.optimizers.impact_first import TunedParts
from luthier.policies.base import SubsetPicker, TunedStep
from luthier.result.known_trials import KnownTrials, events_of
from luthier.spec.experiment import Experiment
from luthier.store.base import Record
from luthier.trial import Json, Run


@dataclass(frozen=True, slots=True)
class TunedParameters:
    """The decisions of a search so far, the latest last; `of` is the number of all parameters."""

    steps: Sequence[TunedStep]
    of: int
    is_over: bool

    @property
    def sentence(self) -> str:
        """What is tuned now or was tuned last, for people."""
        return f"{'tuned last' if self.is_over else 'tuned now'}: {tuned_text(self.steps[-1], self.of)}"

    def to_json(self) -> dict[str, Json]:
        """As JSON: the sentence, the parameters, and every step with the number of its first configuration."""
        steps: list[Json] = [
            {"first_trial": step.begin, "parameters": list(step.names), "reason": step.reason} for step in self.steps
        ]
        return {"sentence": self.sentence, "parameters": list(self.steps[-1].names), "of": self.of, "steps": steps}


def tuned_parameters(record: Record, experiment: Experiment, runs: Sequence[Run]) -> TunedParameters | None:
    """The decisions again, from the history; None if all parameters are tuned all the time."""
    if experiment.picker_rule is None:
        return None
    steps = replayed(experiment, runs, experiment.picker_rule)
    is_over = record.status not in ("running", "queued") or any(run.purpose == "verify" for run in runs)
    return TunedParameters(steps, len(experiment.space.names), is_over)


def replayed(experiment: Experiment, runs: Sequence[Run], picker: SubsetPicker) -> Sequence[TunedStep]:
    """The decisions of a picker over a stored history."""
    parts = TunedParts(experiment.space, picker, seed=experiment.seed, budget=experiment.budget)
    known, begun = KnownTrials(experiment), list[Run]()
    for run in events_of(runs):
        if run.outcome is None:
            begun.append(run)
            if run.trial == len(known.trials):
                known.add(run.config)
            continue
        begun[run.number] = run
        if run.purpose != "verify":
            for number in known.learn(run, begun):
                parts.tell(known.trials[number])
    return parts.steps


def tuned_text(step: TunedStep, of: int) -> str:
    """A decision for people: which parameters, how many of how many, and why."""
    if len(step.names) == of:
        return f"all {of} parameters: {step.reason}"
    return f"{', '.join(step.names)} ({len(step.names)} of {of}): {step.reason}"
