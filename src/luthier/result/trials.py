"""Trials from runs: outcomes with the sign changed so that lower is better, and estimates from repeats."""

from collections.abc import Sequence
from dataclasses import replace

from luthier.result.machine_drift import Level
from luthier.spec.experiment import Experiment
from luthier.statistics.estimate import AUTO, estimate, estimator_for
from luthier.trial import Completed, Config, Outcome, Pruned, Run, TimedOut, Trial


def initial_draws(budget: int) -> int:
    """How many of the first trials count as initial draws: the default and a tenth of the budget, at most ten."""
    return 1 + min(budget // 10, 10)


def estimator_of(experiment: Experiment, repeats: Sequence[Sequence[float]]) -> str:
    """The estimator that was given, or one chosen by the repeats so far; with several objectives the mean."""
    if experiment.estimator != AUTO:
        return experiment.estimator
    return "mean" if experiment.has_front else estimator_for(repeats)


def trials_of(experiment: Experiment, runs: Sequence[Run], level: Level) -> list[Trial]:
    """Every tried configuration with the outcomes of its search runs; lower is better, and estimates are missing."""
    configs: list[Config] = []
    outcomes: list[list[Outcome]] = []
    for run in runs:
        if run.trial == len(configs):
            configs.append(run.config)
            outcomes.append([])
        outcome = None if run.purpose == "verify" else level.take_out(run, experiment.objective.goal)
        if outcome is not None:
            outcomes[run.trial].append(turned(outcome, experiment))
    return [Trial(config, tuple(ended), None) for config, ended in zip(configs, outcomes, strict=True)]


def estimated(trial: Trial, estimator: str) -> Trial:
    """The trial with estimates of all objectives from its completed runs."""
    completed = [(past.value, *past.others) for past in trial.outcomes if isinstance(past, Completed)]
    guesses = [estimate(values, estimator) for values in zip(*completed, strict=True)]
    return Trial(trial.config, trial.outcomes, guesses[0] if guesses else None, tuple(guesses[1:]))


def turned(outcome: Outcome, experiment: Experiment) -> Outcome:
    """The outcome with the sign of maximized objectives changed; a lower bound is lost then."""
    if experiment.objective.goal == "minimize" and not experiment.has_front:
        return outcome
    signs = [-1.0 if objective.goal == "maximize" else 1.0 for objective in experiment.objectives]
    if isinstance(outcome, Completed):
        value, *others = (s * v for s, v in zip(signs, (outcome.value, *outcome.others), strict=True))
        return Completed(value, tuple(others))
    if isinstance(outcome, TimedOut | Pruned) and experiment.objective.maximizes:
        return replace(outcome, at_least=None)
    return outcome


def best_first(experiment: Experiment, trials: Sequence[Trial]) -> list[tuple[int, Trial]]:
    """The trials with their numbers, best estimate first; those without an estimate are last."""
    sign = experiment.objective.sign

    def rank(numbered: tuple[int, Trial]) -> tuple[bool, float]:
        guess = numbered[1].estimate
        return guess is None, 0.0 if guess is None else sign * guess.value

    return sorted(enumerate(trials), key=rank)
