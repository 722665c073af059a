"""What to run next, decided from what has happened: a state machine without clock, file or runner."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from luthier.engine.verification import MOST_PAIRS, duel_of, goes_first, is_settled
from luthier.measures.estimate import estimate
from luthier.optimizers.base import Optimizer
from luthier.policies.base import Progress, Resample, Stop
from luthier.spec import Experiment
from luthier.trial import Completed, Config, Failed, Lost, Outcome, Pruned, Purpose, Run, TimedOut, Trial

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
        default = self._trials[0] if self._trials else None
        return Progress(self._trials, default, len(self._runs), elapsed_s)

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
            self._choose_winner()
        if run.trial == len(self._trials):
            self._trials.append(Trial(run.config, (), None))
        elif run.trial in self._again:
            self._again.remove(run.trial)
        self._runs.append(run)
        self._running[run.number] = run
        self._events += 1

    def finished(self, run: Run) -> None:
        """Note how a run ended."""
        if run.outcome is None:
            raise ValueError(f"run {run.number} has not ended")
        del self._running[run.number]
        self._runs[run.number] = run
        self._events += 1
        if run.purpose != "verify":
            self._learn(run.trial, run.outcome)

    def replay(self, runs: Sequence[Run]) -> None:
        """Live through a stored history again; what the optimizer suggested then, it suggests now."""
        events = [(run.submit_order, run) for run in runs]
        events += [(run.finish_order, run) for run in runs if run.finish_order is not None]
        for order, run in sorted(events, key=lambda event: event[0]):
            if order == run.finish_order:
                self.finished(run)
                continue
            if run.purpose == "search" and run.trial == len(self._trials):
                suggested = list(self._optimizer.ask(1, self._running_configs()))
                if suggested != [run.config]:
                    log.warning(
                        "run %d: the optimizer now suggests %s, the history has %s", run.number, suggested, run.config
                    )
            self.submitted(replace(run, finish_order=None, outcome=None))

    def _next_of_search(self, elapsed_s: float) -> Order | None:
        if reason := self._budget_spent() or self._hopeless() or self._stop(self.progress(elapsed_s)):
            self._end_search(reason)
            return None
        if self._again:
            number = self._again[0]
            return Order("default" if number == 0 else "search", self._trials[number].config, number)
        suggested = self._optimizer.ask(1, self._running_configs())
        if suggested:
            return Order("search", suggested[0], len(self._trials))
        if not self._running:
            self._end_search("every configuration has been tried")
        return None

    def _next_of_verification(self) -> Order | None:
        """One run at a time, so that the two do not disturb each other; a front has no winner to verify."""
        if self._running or self.experiment.further:
            return None
        winner = self._choose_winner()
        if not winner or self._trials[0].estimate is None:
            return None
        duel = duel_of(self._runs, self._trials[0].config, self._trials[winner].config)
        left = self.experiment.budget - len(self._runs)
        most = MOST_PAIRS if self.experiment.verify_pairs is None else self.experiment.verify_pairs
        defaults, winners = len(duel.default_values), len(duel.winner_values)
        if left < (2 if defaults == winners else 1) or is_settled(duel, self.experiment.goal, most):
            return None
        first = goes_first(self.experiment.seed, defaults) == "default"
        number = 0 if defaults < winners or (defaults == winners and first) else winner
        return Order("verify", self._trials[number].config, number)

    def _choose_winner(self) -> int | None:
        """The best of the search, chosen once nothing of the search runs any more."""
        if self._winner is None:
            self._winner = self._best
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

    def _learn(self, number: int, outcome: Outcome) -> None:
        before = self._trials[number]
        trial = with_outcome(before, outcome, self.experiment)
        self._trials[number] = trial
        self._best = self._best_after(number)
        self._optimizer.tell([trial])
        if self.ending is not None:
            return
        busy = sum(run.trial == number for run in self._running.values()) + self._again.count(number)
        if isinstance(outcome, Lost):
            losses = sum(isinstance(past, Lost) for past in trial.outcomes)
            self._again += [number] * (1 if losses <= MOST_LOSSES else 0)
        elif not any(isinstance(past, Failed | TimedOut | Pruned) for past in trial.outcomes):
            self._again += [number] * max(0, self._resample(trial, self.progress(0.0)) - busy)

    def _best_after(self, changed: int) -> int | None:
        """The best trial, looking at all of them only if the one that led has changed."""
        if self._best == changed:
            return best_of(self._trials)
        candidates = [number for number in (self._best, changed) if number is not None]
        best = best_of([self._trials[number] for number in candidates])
        return None if best is None else candidates[best]

    def _running_configs(self) -> list[Config]:
        return [run.config for run in self._running.values()]


def with_outcome(trial: Trial, outcome: Outcome, experiment: Experiment) -> Trial:
    """The trial after one more run; values turned so that lower is better."""
    outcomes = (*trial.outcomes, turned(outcome, experiment))
    completed = [(past.value, *past.others) for past in outcomes if isinstance(past, Completed)]
    guesses = [estimate(values, experiment.estimator) for values in zip(*completed, strict=True)]
    return Trial(trial.config, outcomes, guesses[0] if guesses else None, tuple(guesses[1:]))


def turned(outcome: Outcome, experiment: Experiment) -> Outcome:
    """The outcome with lower-is-better values, and back; a lower bound is no bound once it is turned round."""
    signs = [-1.0 if objective.goal == "maximize" else 1.0 for objective in experiment.objectives]
    if isinstance(outcome, Completed):
        value, *others = (s * v for s, v in zip(signs, (outcome.value, *outcome.others), strict=True))
        return Completed(value, tuple(others))
    if isinstance(outcome, TimedOut | Pruned) and experiment.goal == "maximize":
        return replace(outcome, at_least=None)
    return outcome


def best_of(trials: Sequence[Trial]) -> int | None:
    """The position of the trial with the lowest estimate among those that never failed; the earliest of equals."""
    best: int | None = None
    lowest = float("inf")
    for position, trial in enumerate(trials):
        if trial.estimate is None or not is_reliable(trial) or not (best is None or trial.estimate.value < lowest):
            continue
        best, lowest = position, trial.estimate.value
    return best


def is_reliable(trial: Trial) -> bool:
    """Whether every run that told anything ended well."""
    return all(isinstance(outcome, Completed | Lost) for outcome in trial.outcomes)
