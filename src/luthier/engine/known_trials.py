"""What the runs of a search have shown so far, kept up to date run by run."""

from collections.abc import Sequence
from dataclasses import replace

from luthier.analysis.machine_drift import Level, search_level
from luthier.analysis.recommendation import best_of
from luthier.analysis.trials import estimated, estimator_of, trials_of, turned
from luthier.policies.base import completed_values
from luthier.spec import Experiment
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
        """Take in a run that has ended, the latest of `runs`; return the numbers of the trials that changed."""
        number, outcome = run.trial, self._level.take_out(run, self._experiment.goal)
        if outcome is None:
            return []
        outcomes = (*self.trials[number].outcomes, turned(outcome, self._experiment))
        trial = estimated(replace(self.trials[number], outcomes=outcomes), self.estimator)
        self.trials[number] = trial
        changed = [number]
        if trial.estimate is not None and trial.estimate.count > 1:
            self.repeats[number] = completed_values(trial)
            changed += self._estimated_anew(number)
        if number == 0 and self._experiment.sentinels:
            changed = self._levelled_anew(runs) or changed
        self.best = self._best_after(changed)
        return changed

    def _estimated_anew(self, last: int) -> list[int]:
        """Judge every configuration with repeats anew if they now ask for another estimator; return which, but `last`.

        `last` is judged anew as well.
        """
        estimator = estimator_of(self._experiment, list(self.repeats.values()))
        if estimator == self.estimator:
            return []
        self.estimator = estimator
        for number in self.repeats:
            self.trials[number] = estimated(self.trials[number], estimator)
        return [number for number in self.repeats if number != last]

    def _levelled_anew(self, runs: Sequence[Run]) -> list[int]:
        """Take the machine's level out of every run if it is now known to have been another; return what changed."""
        level = search_level(runs)
        if level == self._level:
            return []
        self._level = level
        self.trials = [estimated(trial, self.estimator) for trial in trials_of(self._experiment, runs, level)]
        known = enumerate(map(completed_values, self.trials))
        self.repeats = {number: values for number, values in known if len(values) > 1}
        return [number for number, trial in enumerate(self.trials) if trial.outcomes]

    def _best_after(self, changed: Sequence[int]) -> int | None:
        """The best trial, looking at all of them only if the one that led has changed."""
        if self.best in changed:
            return best_of(self.trials)
        candidates = [number for number in (self.best, *changed) if number is not None]
        best = best_of([self.trials[number] for number in candidates])
        return None if best is None else candidates[best]
