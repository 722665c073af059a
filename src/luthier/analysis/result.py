"""The result of an experiment, computed from its stored runs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from luthier.analysis.machine_drift import Level, level_of, outliers_among, search_level
from luthier.analysis.recommendation import is_reliable, winner_of
from luthier.analysis.trials import estimated, estimator_of, trials_of, turned
from luthier.analysis.verification import Duel, duel_of
from luthier.errors import LuthierError
from luthier.optimizers.front import front_of, values_of
from luthier.policies.base import completed_values
from luthier.spec.experiment import Experiment
from luthier.statistics.comparison import Comparison
from luthier.statistics.drift import Drift
from luthier.statistics.estimate import estimate
from luthier.statistics.noise import Noise, noise_of
from luthier.statistics.outliers import Outlier
from luthier.trial import Completed, Config, Estimate, Outcome, Run, Trial


@dataclass(frozen=True, slots=True)
class Result:
    """The result, in the unit of the measure.

    If there was a verification, the estimates of `default` and `winner` are from its runs only: in the search, the
    winner's estimate is too good, because the best of many noisy values was selected. `comparison` is None if nothing
    could be verified. `estimator` is the one used for all estimates.

    `front` holds the Pareto-optimal trials, sorted by the first objective; with a single objective it is the best trial
    of the search. With several objectives, `winner` is the trial of the front that is best in the first objective among
    those that are no worse than the default in any other.
    """

    experiment: Experiment
    runs: tuple[Run, ...]
    trials: tuple[Trial, ...]
    default: Trial | None
    winner: Trial | None
    comparison: Comparison | None
    verdict: str
    estimator: str
    front: tuple[Trial, ...] = ()

    @property
    def best(self) -> Trial:
        """The best configuration found; an error if no run gave a number."""
        if self.winner is None:
            raise LuthierError(self.verdict)
        return self.winner

    @property
    def speedup(self) -> float | None:
        """How many times better than the default the best configuration is; a difference if values are not positive."""
        return None if self.comparison is None else self.comparison.speedup

    @property
    def improved(self) -> bool:
        """Whether the best configuration is proven to be better than the default."""
        return self.comparison is not None and self.comparison.improved

    @property
    def recommended(self) -> Config | None:
        """The configuration to use: the best one if it is proven or the default has no value, else the default.

        With several objectives nothing is verified, and the winner is recommended, which is estimated to be no worse
        than the default.
        """
        if self.winner is None:
            return None
        if self.improved or self.experiment.has_front or self.default is None or self.default.estimate is None:
            return self.winner.config
        return self.default.config

    @property
    def noise(self) -> Noise:
        """How much the runs of one configuration differ in the first objective, including the verification."""
        values: dict[int, list[float]] = {}
        for run in self.runs:
            if isinstance(run.outcome, Completed):
                values.setdefault(run.trial, []).append(run.outcome.value)
        return noise_of(list(values.values()))

    @property
    def repeats(self) -> int:
        """How many runs of the search repeated a configuration."""
        return sum(run.purpose != "verify" for run in self.runs) - len(self.trials)

    @property
    def drift(self) -> Drift:
        """How the speed of the machine changed, from all runs of the default; sentinels correct values for it.

        Values of the verification are not corrected: it compares runs that are close in time.
        """
        return level_of(self.runs).drift

    @property
    def outliers(self) -> list[Outlier]:
        """The runs that are far from the others of their configuration, with a possible reason."""
        return outliers_among(self.runs, self.drift)

    @property
    def cost_s(self) -> float:
        """The total time of all runs."""
        return sum(run.duration_s or 0.0 for run in self.runs)


def conclude(experiment: Experiment, runs: Sequence[Run]) -> Result:
    """Compute the result from the runs so far."""
    tried = trials_of(experiment, runs, search_level(runs) if experiment.sentinels else Level())
    estimator = estimator_of(experiment, [values for trial in tried if len(values := completed_values(trial)) > 1])
    inner = [estimated(trial, estimator) for trial in tried]
    default = inner[0] if inner else None
    reliable = [number for number, trial in enumerate(inner) if is_reliable(trial)]
    front = [reliable[position] for position in front_of([inner[number] for number in reliable])]
    best = _compromise(inner, front) if experiment.has_front else _winner(experiment, runs, inner, estimator)
    duel, comparison = None, None
    shown_default, shown_winner = default, None if best is None else inner[best]
    if best and default is not None and not experiment.has_front:
        duel = duel_of(runs, default.config, inner[best].config)
        if not duel.default_failures and not duel.winner_failures:
            comparison = duel.compare(experiment.objective.goal)
        sign = experiment.objective.sign
        shown_default = _verified(default, [sign * value for value in duel.default_values], estimator)
        shown_winner = _verified(inner[best], [sign * value for value in duel.winner_values], estimator)
    return Result(
        experiment=experiment,
        runs=tuple(runs),
        trials=tuple(_outward(trial, experiment) for trial in inner),
        default=None if shown_default is None else _outward(shown_default, experiment),
        winner=None if shown_winner is None else _outward(shown_winner, experiment),
        comparison=comparison,
        verdict=_verdict(experiment, runs, best, duel, comparison)
        if best is None or not experiment.has_front
        else _front_verdict(inner, front),
        estimator=estimator,
        front=tuple(_outward(inner[number], experiment) for number in front),
    )


def _winner(experiment: Experiment, runs: Sequence[Run], trials: Sequence[Trial], estimator: str) -> int | None:
    """The trial that was verified or, before the verification, the one that would be."""
    verified = next((run.trial for run in runs if run.purpose == "verify" and run.trial), None)
    return winner_of(experiment.space, trials, estimator) if verified is None else verified


def _verified(trial: Trial, values: Sequence[float], estimator: str) -> Trial:
    """The trial with an estimate from the verification's runs, if there were any."""
    return replace(trial, estimate=estimate(values, estimator)) if values else trial


def _outward(trial: Trial, experiment: Experiment) -> Trial:
    """The trial with values in the unit of the measure instead of lower-is-better ones."""
    if experiment.objective.goal == "minimize" and not experiment.has_front:
        return trial
    outcomes = tuple(turned(outcome, experiment) for outcome in trial.outcomes)
    if trial.estimate is None:
        return replace(trial, outcomes=outcomes)
    first, *others = (
        _turned_estimate(guess) if objective.goal == "maximize" else guess
        for guess, objective in zip((trial.estimate, *trial.others), experiment.objectives, strict=True)
    )
    return Trial(trial.config, outcomes, first, tuple(others))


def _turned_estimate(guess: Estimate) -> Estimate:
    return Estimate(
        -guess.value,
        guess.count,
        guess.deviation,
        low=None if guess.high is None else -guess.high,
        high=None if guess.low is None else -guess.low,
    )


def _compromise(trials: Sequence[Trial], front: Sequence[int]) -> int | None:
    """The first trial of the front (sorted by the first objective) that is no worse than the default in the others."""
    default = values_of(trials[0]) if trials and is_reliable(trials[0]) else None
    for number in front:
        values = values_of(trials[number])
        if default is None or (values is not None and all(a <= b for a, b in zip(values, default, strict=True))):
            return number
    return None


def _front_verdict(trials: Sequence[Trial], front: Sequence[int]) -> str:
    count = f"{len(front)} configuration{'' if len(front) == 1 else 's'} on the Pareto front"
    default = values_of(trials[0]) if is_reliable(trials[0]) else None
    if default is None:
        return f"{count}; the default gave no number, so they cannot be compared with it"
    vectors = [values for number in front if (values := values_of(trials[number])) is not None]
    better = sum(all(a < b for a, b in zip(values, default, strict=True)) for values in vectors)
    return f"{count}, {better} of them better than the default in every objective (not verified)"


def _verdict(
    experiment: Experiment, runs: Sequence[Run], best: int | None, duel: Duel | None, comparison: Comparison | None
) -> str:
    if not any(run.outcome is not None for run in runs):
        return "nothing has been measured yet"
    if best is None:
        return _all_failed(runs)
    defaults = [run.outcome for run in runs if run.trial == 0 and run.outcome is not None]
    if defaults and not any(isinstance(outcome, Completed) for outcome in defaults):
        return f"the default gave no number ({_reason(defaults)}); the best configuration works instead"
    if best == 0:
        return "no improvement found: the default is the best of all configurations tried"
    if duel is not None and duel.winner_failures:
        return "no improvement found: the best configuration failed when it was run again"
    if comparison is None:
        return "not verified: the best value may be due to chance"
    better = "faster than" if experiment.objective.is_time else "better than"
    said = comparison.sentence(f"{better} the default")
    if comparison.low is None or comparison.high is None:
        return f"not verified: {said}, but {comparison.pairs} pairs of runs are too few for a confidence interval"
    return said if comparison.improved else f"no improvement found: the best configuration is {said}"


def _all_failed(runs: Sequence[Run]) -> str:
    outcomes = [run.outcome for run in runs if run.outcome is not None]
    return f"none of {len(runs)} runs gave a number; most often: {_reason(outcomes)}"


def _reason(outcomes: Sequence[Outcome]) -> str:
    """The most common reason of runs that gave no number."""
    reasons = Counter(outcome.reason for outcome in outcomes if not isinstance(outcome, Completed))
    return reasons.most_common(1)[0][0]
