"""What to run next, decided from what has happened: a state machine without clock, file or runner."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from luthier.analysis.machine_drift import Level, search_level
from luthier.analysis.recommendation import best_of, is_reliable, winner_of
from luthier.analysis.tie_break import contender
from luthier.analysis.trials import estimated, estimator_of, initial_draws, trials_of, turned
from luthier.analysis.verification import MOST_PAIRS, duel_of, goes_first, is_settled
from luthier.optimizers.base import Optimizer
from luthier.policies.base import Progress, Resample, Stop, completed_values
from luthier.spec.experiment import Experiment
from luthier.trial import Config, Lost, Purpose, Run, Trial

log = logging.getLogger(__name__)

HOPELESS = 10
"""So many configurations without a single number, and the search is given up: the mistake is elsewhere."""

MOST_LOSSES = 2
"""A configuration whose run was lost says nothing; it is tried again, but not for ever."""


@dataclass(frozen=True, slots=True)
class Order:
    """A run to make: why, of which configuration, for which trial."""

    purpose: Purpose
    config: Config
    trial: int


class Plan:
    """Takes an experiment from its default through the search to the verification.

    Feed it every event in order: `submitted` when an order was carried out, `finished` when a run ended. Because
    nothing else influences it, playing the stored events to a new plan (`replay`) leads to the same state and the
    same next order.
    """

    def __init__(self, experiment: Experiment, optimizer: Optimizer, *, stop: Stop, resample: Resample) -> None:
        self.experiment = experiment
        self.ending: str | None = None
        self._optimizer = optimizer
        self._stop = stop
        self._resample = resample
        self._runs: list[Run] = []
        self._steps: list[int] = []
        self._costs_s: list[float | None] = []
        self._repeats: dict[int, list[float]] = {}
        self._estimator = estimator_of(experiment, ())
        self._level = Level()
        self._trials: list[Trial] = []
        self._running: dict[int, Run] = {}
        self._again: list[int] = []
        self._events = 0
        self._best: int | None = None
        self._winner: int | None = None

    @property
    def runs(self) -> Sequence[Run]:
        """Every run so far, in order of submission."""
        return self._runs

    @property
    def running(self) -> Sequence[Run]:
        """The runs under way."""
        return list(self._running.values())

    @property
    def events(self) -> int:
        """How many submissions and endings there have been."""
        return self._events

    @property
    def trials(self) -> Sequence[Trial]:
        """Every configuration tried, with the value the optimizer sees (lower is better)."""
        return self._trials

    @property
    def best(self) -> int | None:
        """The number of the best trial of the search so far."""
        return self._best

    @property
    def phase(self) -> Purpose:
        """What the runs are for at the moment."""
        return "verify" if self.ending is not None else "search" if self._runs else "default"

    def progress(self, elapsed_s: float) -> Progress:
        """What rules may know of the search."""
        return Progress(
            trials=self._trials,
            best=self._best,
            repeats=list(self._repeats.values()),
            steps=self._steps,
            initial=initial_draws(self.experiment.budget),
            budget=self.experiment.budget - 2 * self.experiment.reserved_pairs,
            elapsed_s=elapsed_s,
            costs_s=self._costs_s,
            objectives=len(self.experiment.objectives),
        )

    def next(self, elapsed_s: float) -> Order | None:
        """The next run to make; None when there is nothing to start before something ends (or at all)."""
        if not self._runs:
            return Order("default", self.experiment.space.default, 0)
        if self.ending is None:
            order = self._next_of_search(elapsed_s)
            if order is not None or self.ending is None:
                return order
        return self._next_of_verification()

    def submitted(self, run: Run) -> None:
        """Note that an order is being carried out."""
        if run.purpose == "verify":
            self._end_search(self._budget_spent() or "the search had ended before")
            self._winner = run.trial or self._choose_winner()
        if run.trial == len(self._trials):
            self._trials.append(Trial(run.config, (), None))
        elif run.trial in self._again:
            self._again.remove(run.trial)
        self._runs.append(run)
        self._steps.append(run.trial)
        self._costs_s.append(None)
        self._running[run.number] = run
        self._events += 1

    def finished(self, run: Run) -> None:
        """Note how a run ended."""
        if run.outcome is None:
            raise ValueError(f"run {run.number} has not ended")
        del self._running[run.number]
        self._runs[run.number] = run
        self._costs_s[run.number] = run.duration_s
        self._events += 1
        if run.purpose != "verify":
            self._learn(run)

    def replay(self, runs: Sequence[Run]) -> None:
        """Live through a stored history again; what the optimizer suggested then, it suggests now."""
        events = [(run.submit_order, run) for run in runs]
        events += [(run.finish_order, run) for run in runs if run.finish_order is not None]
        for order, run in sorted(events, key=lambda event: event[0]):
            if order == run.finish_order:
                self.finished(run)
                continue
            if run.purpose == "search" and run.trial == len(self._trials):
                suggested = self._suggested()
                if suggested != run.config:
                    log.warning(
                        "run %d: the optimizer now suggests %s, the history has %s", run.number, suggested, run.config
                    )
            self.submitted(replace(run, finish_order=None, outcome=None))

    def _next_of_search(self, elapsed_s: float) -> Order | None:
        if reason := self._budget_spent() or self._hopeless() or self._stop(self.progress(elapsed_s)):
            self._end_search(reason)
            return None
        if self._sentinel_is_due():
            return Order("default", self.experiment.space.default, 0)
        if self._again:
            return self._repeat(self._again[0])
        suggested = self._suggested()
        if suggested is not None:
            return Order("search", suggested, len(self._trials))
        if self._resample.uses_spare_runs and not self.experiment.has_front:
            running = [run.trial for run in self._running.values()]
            if (number := contender(self.progress(elapsed_s), running)) is not None:
                return self._repeat(number)
        if not self._running:
            self._end_search("every configuration has been tried")
        return None

    def _repeat(self, number: int) -> Order:
        return Order("default" if number == 0 else "search", self._trials[number].config, number)

    def _suggested(self) -> Config | None:
        """A configuration that has not run: the next of those to try first, then what the optimizer asks for."""
        tried = len(self._trials) - 1  # without the default
        if tried < len(self.experiment.first):
            return self.experiment.first[tried]
        return next(iter(self._optimizer.ask(1, self._running_configs())), None)

    def _sentinel_is_due(self) -> bool:
        """Whether it is time to look at the default again."""
        every = self.experiment.sentinels
        return every > 0 and 0 not in self._steps[-every:]

    def _next_of_verification(self) -> Order | None:
        """One run at a time, so that the two do not disturb each other; a front has no winner to verify."""
        if self._running or self.experiment.has_front:
            return None
        winner = self._choose_winner()
        if not winner or self._trials[0].estimate is None:
            return None
        duel = duel_of(self._runs, self._trials[0].config, self._trials[winner].config)
        left = self.experiment.budget - len(self._runs)
        most = MOST_PAIRS if self.experiment.verify_pairs is None else self.experiment.verify_pairs
        defaults, winners = len(duel.default_values), len(duel.winner_values)
        if left < (2 if defaults == winners else 1) or is_settled(duel, self.experiment.objective.goal, most):
            return None
        first = goes_first(self.experiment.seed, defaults) == "default"
        number = 0 if defaults < winners or (defaults == winners and first) else winner
        return Order("verify", self._trials[number].config, number)

    def _choose_winner(self) -> int | None:
        """The best of the search by what it is expected to give, chosen once nothing of the search runs any more."""
        if self._winner is None:
            several = self.experiment.has_front
            trials, space = self._trials, self.experiment.space
            self._winner = self._best if several else winner_of(space, trials, self._estimator)
        return self._winner

    def _hopeless(self) -> str | None:
        ended = sum(bool(trial.outcomes) for trial in self._trials[: HOPELESS + len(self._running)])
        if self._best is not None or ended < HOPELESS:
            return None
        return f"none of the first {ended} configurations gave a number"

    def _budget_spent(self) -> str | None:
        budget, kept = self.experiment.budget, 2 * self.experiment.reserved_pairs
        if len(self._runs) < budget - kept:
            return None
        return f"the budget of {budget} runs is spent" + (f", {kept} of them kept for verification" if kept else "")

    def _end_search(self, reason: str) -> None:
        if self.ending is None:
            self.ending = reason
            self._again.clear()

    def _learn(self, run: Run) -> None:
        number, outcome = run.trial, self._level.take_out(run, self.experiment.objective.goal)
        if outcome is None:
            return
        outcomes = (*self._trials[number].outcomes, turned(outcome, self.experiment))
        trial = estimated(replace(self._trials[number], outcomes=outcomes), self._estimator)
        self._trials[number] = trial
        changed = [number]
        if trial.estimate is not None and trial.estimate.count > 1:
            self._repeats[number] = completed_values(trial)
            changed += self._estimated_anew(number)
        if number == 0 and self.experiment.sentinels:
            changed = self._levelled_anew() or changed
        self._best = self._best_after(changed)
        self._optimizer.tell([self._trials[each] for each in changed])
        if self.ending is not None:
            return
        if isinstance(outcome, Lost):
            losses = sum(isinstance(past, Lost) for past in trial.outcomes)
            self._again += [number] * (1 if losses <= MOST_LOSSES else 0)
        self._ask_for_repeats(number)

    def _ask_for_repeats(self, last: int) -> None:
        """Ask about what was measured last and about the best one; initial draws come first, and once each."""
        progress = self.progress(0.0)
        if len(self._trials) < progress.initial:
            return
        asked = [last] if last >= progress.initial else []
        for number in dict.fromkeys([*asked, *([] if self._best is None else [self._best])]):
            trial = self._trials[number]
            if trial.estimate is not None and is_reliable(trial):
                busy = sum(run.trial == number for run in self._running.values()) + self._again.count(number)
                missing = self._resample(number, progress) - busy
                self._again += [number] * max(0, min(missing, progress.budget - len(self._runs)))

    def _estimated_anew(self, last: int) -> list[int]:
        """Judge every configuration with repeats anew if they now ask for another estimator; return which, but `last`.

        `last` is judged anew as well.
        """
        estimator = estimator_of(self.experiment, list(self._repeats.values()))
        if estimator == self._estimator:
            return []
        self._estimator = estimator
        for number in self._repeats:
            self._trials[number] = estimated(self._trials[number], estimator)
        return [number for number in self._repeats if number != last]

    def _levelled_anew(self) -> list[int]:
        """Take the machine's level out of every run if it is now known to have been another; return what changed."""
        level = search_level(self._runs)
        if level == self._level:
            return []
        self._level = level
        self._trials = [estimated(trial, self._estimator) for trial in trials_of(self.experiment, self._runs, level)]
        known = enumerate(map(completed_values, self._trials))
        self._repeats = {number: values for number, values in known if len(values) > 1}
        return [number for number, trial in enumerate(self._trials) if trial.outcomes]

    def _best_after(self, changed: Sequence[int]) -> int | None:
        """The best trial, looking at all of them only if the one that led has changed."""
        if self._best in changed:
            return best_of(self._trials)
        candidates = [number for number in (self._best, *changed) if number is not None]
        best = best_of([self._trials[number] for number in candidates])
        return None if best is None else candidates[best]

    def _running_configs(self) -> list[Config]:
        return [run.config for run in self._running.values()]
