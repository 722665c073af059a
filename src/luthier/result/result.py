"""The result of an experiment, computed from its stored runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from luthier.errors import LuthierError, StoreError
from luthier.optimizers.front import front_of, values_of
from luthier.policies.base import completed_values
from luthier.result.machine_drift import Level, level_of, outliers_among, search_level
from luthier.result.recommendation import is_reliable, winner_of
from luthier.result.trials import estimated, estimator_of, trials_of, turned
from luthier.result.verdict import front_verdict, method_text, verdict_of
from luthier.result.verification import Duel, duel_of, with_verification
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Goal
from luthier.statistics.comparison import Comparison
from luthier.statistics.drift import Drift
from luthier.statistics.estimate import estimate
from luthier.statistics.noise import Noise, noise_of
from luthier.statistics.outliers import Outlier
from luthier.trial import Completed, Config, Estimate, Lost, Run, Trial

if TYPE_CHECKING:
    from luthier.result.search_speedup import SearchSpeedup


@dataclass(frozen=True, slots=True)
class Result:
    """The result, in the unit of the measure.

    `challenger` is the configuration that is compared with the default: the best of the others, or the default itself
    if no other gave a number. `winner` is the challenger, or the default if the comparison shows that the challenger
    is no better. If there was a verification, the estimates of these are from its complete pairs only: in the search,
    the estimate of the best is too good, because the best of many noisy values was selected. `comparison` is the one
    of these estimates, and None if nothing could be verified. `estimator` is the one used for all estimates.

    `front` holds the Pareto-optimal trials, sorted by the first objective; with a single objective it is the best trial
    of the search. With several objectives, `winner` is the trial of the front that is best in the first objective among
    those that are no worse than the default in any other.

    `verification` holds the runs behind `comparison`. If the search was continued with a larger budget, there are
    several verifications: the last one that proves an improvement counts, or else the last one. `pauses` are the times
    in which nobody worked on it; `over_random` compares the search with a random one, if there is one and it was
    looked for. `notes` are what `luthier.tune` found out before the first run, such as which earlier experiments the
    search learns from.
    """

    experiment: Experiment
    runs: tuple[Run, ...]
    trials: tuple[Trial, ...]
    default: Trial | None
    challenger: Trial | None
    winner: Trial | None
    comparison: Comparison | None
    verdict: str
    estimator: str
    front: tuple[Trial, ...] = ()
    verification: tuple[Run, ...] = ()
    pauses: tuple[tuple[float, float], ...] = ()
    over_random: "SearchSpeedup | None" = None
    notes: tuple[str, ...] = ()

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
    def method(self) -> str:
        """How the numbers of the verification were computed; empty if there was none."""
        return method_text(self.comparison, self.estimator)

    @property
    def shown_trials(self) -> tuple[Trial, ...]:
        """The trials as they are shown: the two that were verified have the estimates of the verification."""
        verified = [trial for trial in (self.default, self.challenger) if trial is not None and self.comparison]
        shown = {trial.config: trial for trial in verified}
        return tuple(shown.get(trial.config, trial) for trial in self.trials) if shown else self.trials

    @property
    def lost(self) -> int:
        """How many runs were lost or interrupted; they do not use up the budget."""
        return sum(isinstance(run.outcome, Lost) for run in self.runs)

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
    odd = next((run.number for run in runs if run.config.keys() != set(experiment.space.names)), None)
    if odd is not None:
        raise StoreError(f"run {odd} has other parameters than its experiment; restore the store from a backup")
    tried = trials_of(experiment, runs, search_level(runs) if experiment.sentinels else Level())
    estimator = estimator_of(experiment, [values for trial in tried if len(values := completed_values(trial)) > 1])
    inner = [estimated(trial, estimator) for trial in tried]
    reliable = [number for number, trial in enumerate(inner) if is_reliable(trial)]
    front = [reliable[position] for position in front_of([inner[number] for number in reliable])]
    if experiment.has_front:
        best = _compromise(inner, front)
        verified = Verified(inner[0] if inner else None, None if best is None else inner[best])
    else:
        verified = _verified(experiment, runs, inner, estimator)
    default, challenger, duel = verified.default, verified.challenger, verified.duel
    comparison = None if duel is None or duel.has_failures else duel.compare(experiment.objective.goal)
    is_worse = comparison is not None and not comparison.looks_better
    return Result(
        experiment=experiment,
        runs=tuple(runs),
        trials=tuple(_outward(trial, experiment) for trial in inner),
        default=None if default is None else _outward(default, experiment),
        challenger=None if challenger is None else _outward(challenger, experiment),
        winner=None if challenger is None else _outward(default if default and is_worse else challenger, experiment),
        comparison=comparison,
        verdict=front_verdict(inner, front)
        if experiment.has_front and challenger is not None
        else verdict_of(experiment, runs, challenger, duel, comparison),
        estimator=estimator,
        front=tuple(_outward(inner[number], experiment) for number in front),
        verification=verified.runs,
    )


@dataclass(frozen=True, slots=True)
class Verified:
    """The default and the best other configuration, as far as there are any, and the runs that compare them."""

    default: Trial | None
    challenger: Trial | None
    duel: Duel | None = None
    runs: tuple[Run, ...] = ()

    def proves(self, goal: Goal) -> bool:
        """Whether the challenger is proven to be better than the default."""
        comparison = None if self.duel is None or self.duel.has_failures else self.duel.compare(goal)
        return comparison is not None and comparison.improved


def _verified(experiment: Experiment, runs: Sequence[Run], trials: Sequence[Trial], estimator: str) -> Verified:
    """The default and the configuration that was compared with it or, before the verification, would be.

    Of several verifications the last one that proves an improvement: what was proven stays proven.
    """
    last = len(experiment.refinements)
    found = [
        _verified_in(experiment, with_verification(experiment, runs, number), trials, estimator)
        for number in range(last, -1, -1)
    ]
    return next((one for one in found if one.proves(experiment.objective.goal)), found[0])


def _verified_in(experiment: Experiment, runs: Sequence[Run], trials: Sequence[Trial], estimator: str) -> Verified:
    """The same for the runs of one verification."""
    verification = tuple(run for run in runs if run.purpose == "verify")
    best = next((run.trial for run in verification if run.trial), None)
    if best is None:
        best = winner_of(experiment.space, trials, estimator)
    default = trials[0] if trials else None
    if not best or default is None:
        return Verified(default, None if best is None else default)
    duel = duel_of(runs, default.config, trials[best].config, estimator)
    sign = experiment.objective.sign
    sides = ((default, duel.default_values), (trials[best], duel.winner_values))
    shown = [
        replace(trial, estimate=estimate([sign * value for value in values[: duel.pairs]], estimator))
        if duel.pairs
        else trial
        for trial, values in sides
    ]
    return Verified(shown[0], shown[1], duel, verification)


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
        0.0 - guess.value,  # no negative zero
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
