"""The trials of a search with their estimates, updated run by run."""

from collections.abc import Sequence
from dataclasses import replace

from luthier.policies.base import completed_values
from luthier.result.machine_drift import Level, search_level
from luthier.result.recommendation import best_of
from luthier.result.trials import estimated, estimator_of, trials_of, turned
from luthier.spec.experiment import Experiment
from luthier.trial import Config, Run, Trial


class KnownTrials:
    """Every configuration tried, with the value the optimizer sees (lower is better).

    `repeats` holds the values of each configuration that completed more than once, by its number; `best` is the number
    of the best one, if any gave a number.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.trials: list[Trial] = []
        self.repeats: dict[int, list[float]] = {}
        self.best: int | None = None
        self.estimator = estimator_of(experiment, ())
        self._experiment = experiment
        self._level = Level()

    def add(self, config: Config) -> None:
        """Add a configuration that is about to run for the first time."""
        self.trials.append(Trial(config, (), None))

    def learn(self, run: Run, runs: Sequence[Run]) -> Sequence[int]:
        """Learn from a run that has ended, the latest of `runs`; return the numbers of the trials that changed."""
        number, outcome = run.trial, self._level.take_out(run, self._experiment.objective.goal)
        if outcome is None:
            return []
        outcomes = (*self.trials[number].outcomes, turned(outcome, self._experiment))
        trial = estimated(replace(self.trials[number], outcomes=outcomes), self.estimator)
        self.trials[number] = trial
        changed = [number]
        if trial.estimate is not None and trial.estimate.count > 1:
            self.repeats[number] = completed_values(trial)
            changed += self._update_estimator(number)
        if number == 0 and self._experiment.sentinels:
            changed = self._update_level(runs) or changed
        self.best = self._best_after(changed)
        return changed

    def _update_estimator(self, last: int) -> list[int]:
        """Estimate all configurations with repeats again if another estimator suits them now; return which, but `last`.

        `last` is estimated again as well.
        """
        estimator = estimator_of(self._experiment, list(self.repeats.values()))
        if estimator == self.estimator:
            return []
        self.estimator = estimator
        for number in self.repeats:
            self.trials[number] = estimated(self.trials[number], estimator)
        return [number for number in self.repeats if number != last]

    def _update_level(self, runs: Sequence[Run]) -> list[int]:
        """Correct every run by the machine's level if the estimate of that has changed; return which trials changed."""
        level = search_level(runs)
        if level == self._level:
            return []
        self._level = level
        self.trials = [estimated(trial, self.estimator) for trial in trials_of(self._experiment, runs, level)]
        known = enumerate(map(completed_values, self.trials))
        self.repeats = {number: values for number, values in known if len(values) > 1}
        return [number for number, trial in enumerate(self.trials) if trial.outcomes]

    def _best_after(self, changed: Sequence[int]) -> int | None:
        """The best trial; all of them are compared only if the best one has changed."""
        if self.best in changed:
            return best_of(self.trials)
        candidates = [number for number in (self.best, *changed) if number is not None]
        best = best_of([self.trials[number] for number in candidates])
        return None if best is None else candidates[best]


def events_of(runs: Sequence[Run]) -> list[Run]:
    """Every submission (a run without an outcome) and every end of stored runs, in the order in which they happened."""
    begun = [(run.submit_order, replace(run, finish_order=None, outcome=None)) for run in runs]
    ended = [(run.finish_order, run) for run in runs if run.finish_order is not None]
    return [run for _, run in sorted([*begun, *ended], key=lambda event: event[0])]
