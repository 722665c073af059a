"""The answer of an experiment in one sentence, and how its numbers were computed."""

import math
from collections import Counter
from collections.abc import Sequence

from luthier.optimizers.front import values_of
from luthier.result.failures import reasons_text
from luthier.result.recommendation import is_reliable
from luthier.result.text import config_text, value_text
from luthier.result.verification import Duel
from luthier.spec.experiment import Experiment
from luthier.statistics.comparison import Comparison, Kind
from luthier.trial import Completed, Lost, Outcome, Run, Trial

_MOST_DIGITS = 7  # of a ratio that is close to 1


def verdict_of(
    experiment: Experiment,
    runs: Sequence[Run],
    challenger: Trial | None,
    duel: Duel | None,
    comparison: Comparison | None,
) -> str:
    """What is known about `challenger`, the best configuration, which is None if no run gave a number."""
    if not any(run.outcome is not None for run in runs):
        return "nothing has been measured yet"
    if challenger is None:
        return _all_failed(runs)
    defaults = [run.outcome for run in runs if run.trial == 0 and run.outcome is not None]
    # Nothing to compare with: that something works at all is the result.
    if defaults and not any(isinstance(outcome, Completed) for outcome in defaults):
        failed = "was lost in every run" if all(isinstance(past, Lost) for past in defaults) else "fails"
        other = config_text(challenger.config, experiment.space)
        return f"the default {failed} ({_reason(defaults)}); {other} works instead"
    if challenger.config == experiment.space.default:
        return "no improvement found: the default is the best of all configurations tried"
    # What fails when it is run again is no improvement, however fast it was once.
    if duel is not None and duel.winner_failures:
        return "no improvement found: the best configuration failed when it was run again"
    if duel is not None and duel.default_failures:
        return "not verified: the default failed when it was run again"
    if comparison is None:
        return "not verified: the best value may be due to chance"
    return _compared(experiment, challenger, comparison)


def _all_failed(runs: Sequence[Run]) -> str:
    outcomes = [run.outcome for run in runs if run.outcome is not None]
    if any(isinstance(outcome, Completed) for outcome in outcomes):
        return f"every configuration failed at least once: {reasons_text(runs)}"
    return f"none of {len(outcomes)} runs gave a number: {reasons_text(runs)}"


def _compared(experiment: Experiment, challenger: Trial, comparison: Comparison) -> str:
    is_time, measure = experiment.objective.is_time, experiment.objective.measure
    if comparison.low is None or comparison.high is None:
        count = f"{comparison.pairs} pair{'' if comparison.pairs == 1 else 's'} of runs"
        return f"not verified: {count} of default and best configuration are too few for a confidence interval"
    if comparison.improved:
        return f"{_better(experiment, comparison, 'the default')}{_interval(experiment, comparison)}"
    # The best value of the search was luck; the interval is told from the default's point of view.
    if comparison.worsened:
        back, other = comparison.reversed(), config_text(challenger.config, experiment.space)
        said = f"the default is {_better(experiment, back, other)}, the best of the others"
        return f"no improvement found: {said}{_interval(experiment, back)}"
    low, high = (gain_text(one, comparison.kind, measure) for one in (comparison.low, comparison.high))
    if comparison.kind == "ratio":
        said = f"has {low} to {high} the speed of" if is_time else f"is {low} to {high} as good as"
    else:
        said = f"is better by {low} to {high} than"
    confidence = f"95 % confidence, {comparison.pairs} pairs"
    return f"no improvement proven: the best configuration {said} the default ({confidence})"


def _better(experiment: Experiment, comparison: Comparison, than: str) -> str:
    """`1.42x faster than the default`, `better by 3 than the default`."""
    said = gain_text(comparison.speedup, comparison.kind, experiment.objective.measure)
    if comparison.kind == "difference":
        return f"better by {said} than {than}"
    return f"{said} {'faster' if experiment.objective.is_time else 'better'} than {than}"


def _interval(experiment: Experiment, comparison: Comparison) -> str:
    low, high = (
        "" if one is None else gain_text(one, comparison.kind, experiment.objective.measure)
        for one in (comparison.low, comparison.high)
    )
    # Only with runs that are repeatable to the last digit, where an interval would have no length.
    if comparison.low == comparison.high:
        return f" (the same in all {comparison.pairs} pairs of runs)"
    return f" ({low} to {high} with 95 % confidence, {comparison.pairs} pairs)"


def gain_text(gain: float, kind: Kind, measure: str) -> str:
    """A ratio as `1.42x`, with enough digits to tell it from 1; a difference in the unit of the measure."""
    return ratio_text(gain) if kind == "ratio" else value_text(gain, measure)


def ratio_text(ratio: float) -> str:
    """`1.42x`: three digits, or more if they are needed to tell it from 1."""
    away = abs(ratio - 1.0)
    # Three digits of 1.42, but 1.0013 needs five to show what is beyond 1.
    digits = 3 if away in (0.0, math.inf) else min(max(3, 2 - math.floor(math.log10(away))), _MOST_DIGITS)
    return f"{ratio:.{digits}g}x"


def method_text(comparison: Comparison | None, estimator: str) -> str:
    """How the numbers of a verification were computed; empty if there was none."""
    if comparison is None:
        return ""
    what = "ratio" if comparison.kind == "ratio" else "difference"
    count = f"{comparison.pairs} run{'' if comparison.pairs == 1 else 's'} each, made in turns after the search"
    name = {"minimum": "best runs"}.get(estimator, f"{estimator}s")
    interval = "" if comparison.low is None else f"; the interval is from the {what}s of the pairs"
    return f"computed as: {what} of the two {name}, of {count}{interval}"


def front_verdict(trials: Sequence[Trial], front: Sequence[int]) -> str:
    """The size of a Pareto front, and how many members are better than the default."""
    count = f"{len(front)} configuration{'' if len(front) == 1 else 's'} on the Pareto front"
    default = values_of(trials[0]) if is_reliable(trials[0]) else None
    if default is None:
        return f"{count}; the default gave no number, so they cannot be compared with it"
    vectors = [values for number in front if (values := values_of(trials[number])) is not None]
    better = sum(all(a < b for a, b in zip(values, default, strict=True)) for values in vectors)
    return f"{count}, {better} of them better than the default in every objective (not verified)"


def _reason(outcomes: Sequence[Outcome | None]) -> str:
    """The most common reason of runs that gave no number."""
    reasons = Counter(
        outcome.reason for outcome in outcomes if outcome is not None and not isinstance(outcome, Completed)
    )
    return reasons.most_common(1)[0][0]
