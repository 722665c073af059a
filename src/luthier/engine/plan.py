"""What to run next, decided from what has happened: a state machine without clock, file or runner."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from luthier.engine.contest import contender
from luthier.engine.levels import Level, search_level
from luthier.engine.recommendation import best_of, is_reliable, winner_of
from luthier.engine.verification import MOST_PAIRS, duel_of, goes_first, is_settled
from luthier.measures.estimate import AUTO, estimate, estimator_for
from luthier.optimizers.base import Optimizer
from luthier.policies.base import Progress, Resample, Stop, completed_values
from luthier.policies.resample import Auto
from luthier.spec import Experiment
from luthier.trial import Completed, Config, Lost, Outcome, Pruned, Purpose, Run, TimedOut, Trial

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
    same next orders. The optimizer is told what happened and asked nothing again.
    """

    def __init__(self, experiment: Experiment, optimizer: Optimizer, *, stop: Stop, resample: Resample) -> None:
        self.experiment = experiment
        self.ending: str | None = None
        self._optimizer = optimizer
        self._stop = stop
        self._resample = resample
        self._runs: list[Run] = []
        self._steps: list[int] = []
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

    def progress(self, elapsed_s: float, planned: Sequence[Order] = ()) -> Progress:
        """What rules may know of the search; with `planned`, as if these orders were submitted."""
        new = [Trial(order.config, (), None) for order in planned if order.trial >= len(self._trials)]
        return Progress(
            trials=[*self._trials, *new] if new else self._trials,
            best=self._best,
            repeats=list(self._repeats.values()),
            steps=[*self._steps, *(order.trial for order in planned)] if planned else self._steps,
            initial=initial_draws(self.experiment.budget),
            budget=self.experiment.budget - 2 * self.experiment.reserved_pairs,
            elapsed_s=elapsed_s,
        )

    def orders(self, free: int, elapsed_s: float) -> list[Order]:
        """The runs to start now in up to `free` slots, to be submitted in this order.

        There are fewer when something has to end first. None at all while nothing runs means that all is done.
        """
        orders = self._search_orders(free, elapsed_s) if self.ending is None else []
        if orders or self.ending is None or free < 1:
            return orders
        order = self._next_of_verification()
        return [] if order is None else [order]

    def submitted(self, run: Run) -> None:
        """Note that an order is being carried out."""
        if run.purpose == "verify":
            self._end_search(self._budget_spent(len(self._runs)) or "the search had ended before")
            self._winner = run.trial or self._choose_winner()
        if run.trial == len(self._trials):
            self._trials.append(Trial(run.config, (), None))
        elif run.trial in self._again:
            self._again.remove(run.trial)
        self._runs.append(run)
        self._steps.append(run.trial)
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
            self._learn(run)

    def replay(self, runs: Sequence[Run]) -> None:
        """Take in a stored history, event by event; the optimizer is told, and not asked."""
        events = [(run.submit_order, run) for run in runs]
        events += [(run.finish_order, run) for run in runs if run.finish_order is not None]
        for order, run in sorted(events, key=lambda event: event[0]):
            if order == run.finish_order:
                self.finished(run)
            else:
                self.submitted(replace(run, finish_order=None, outcome=None))

    def _search_orders(self, free: int, elapsed_s: float) -> list[Order]:
        orders: list[Order] = []
        repeats, suggested = list(self._again), None
        while len(orders) < free:
            progress = self.progress(elapsed_s, orders)
            if progress.steps and (reason := self._reason_to_end(progress)):
                if not orders:
                    self._end_search(reason)
                break
            if not progress.steps or self._sentinel_is_due(progress.steps):
                orders.append(Order("default", self.experiment.space.default, 0))
            elif repeats:
                orders.append(self._repeat(repeats.pop(0)))
            else:
                if suggested is None:  # one question for all slots; what a rule leaves unused is asked for again
                    suggested = self._suggestions(free - len(orders), orders)
                if suggested:
                    orders.append(Order("search", suggested.pop(0), len(progress.trials)))
                elif (number := self._contender(progress, orders)) is not None:
                    orders.append(self._repeat(number))
                else:
                    break
        if not orders and not self._running and free > 0:
            self._end_search("every configuration has been tried")
        return orders

    def _reason_to_end(self, progress: Progress) -> str | None:
        return self._budget_spent(len(progress.steps)) or self._hopeless() or self._stop(progress)

    def _contender(self, progress: Progress, planned: Sequence[Order]) -> int | None:
        if not isinstance(self._resample, Auto):
            return None
        running = [run.trial for run in self._running.values()]
        return contender(progress, [*running, *(order.trial for order in planned)])

    def _repeat(self, number: int) -> Order:
        return Order("default" if number == 0 else "search", self._trials[number].config, number)

    def _suggestions(self, count: int, planned: Sequence[Order]) -> list[Config]:
        """Configurations that have not run: those to try first, then what the optimizer suggests."""
        trials = len(self.progress(0.0, planned).trials)
        first = list(self.experiment.first[trials - 1 : trials - 1 + count])  # the default is a trial, too
        if len(first) < count:
            running = [run.config for run in self._running.values()]
            running = list(dict.fromkeys([*running, *(order.config for order in planned), *first]))
            first += self._optimizer.ask(count - len(first), running)
        return first

    def _sentinel_is_due(self, steps: Sequence[int]) -> bool:
        """Whether it is time to look at the default again."""
        every = self.experiment.sentinels
        return every > 0 and 0 not in steps[-every:]

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
        """The best of the search by what it is expected to give, chosen once nothing of the search runs any more."""
        if self._winner is None:
            several = self.experiment.further
            trials, space = self._trials, self.experiment.space
            self._winner = self._best if several else winner_of(space, trials, self._estimator)
        return self._winner

    def _hopeless(self) -> str | None:
        ended = sum(bool(trial.outcomes) for trial in self._trials[: HOPELESS + len(self._running)])
        if self._best is not None or ended < HOPELESS:
            return None
        return f"none of the first {ended} configurations gave a number"

    def _budget_spent(self, runs: int) -> str | None:
        budget, kept = self.experiment.budget, 2 * self.experiment.reserved_pairs
        if runs < budget - kept:
            return None
        return f"the budget of {budget} runs is spent" + (f", {kept} of them kept for verification" if kept else "")

    def _end_search(self, reason: str) -> None:
        if self.ending is None:
            self.ending = reason
            self._again.clear()

    def _learn(self, run: Run) -> None:
        number, outcome = run.trial, self._level.take_out(run, self.experiment.goal)
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


def initial_draws(budget: int) -> int:
    """How many of the first trials count as initial draws: the default and a tenth of the budget, at most ten."""
    return 1 + min(budget // 10, 10)


def estimator_of(experiment: Experiment, repeats: Sequence[Sequence[float]]) -> str:
    """The estimator that was asked for, or the one that suits the repeats so far; with several objectives, the mean."""
    if experiment.estimator != AUTO:
        return experiment.estimator
    return "mean" if experiment.further else estimator_for(repeats)


def trials_of(experiment: Experiment, runs: Sequence[Run], level: Level) -> list[Trial]:
    """Every configuration tried, with the outcomes of the search's runs; lower is better, and nothing is judged yet."""
    configs: list[Config] = []
    outcomes: list[list[Outcome]] = []
    for run in runs:
        if run.trial == len(configs):
            configs.append(run.config)
            outcomes.append([])
        outcome = None if run.purpose == "verify" else level.take_out(run, experiment.goal)
        if outcome is not None:
            outcomes[run.trial].append(turned(outcome, experiment))
    return [Trial(config, tuple(ended), None) for config, ended in zip(configs, outcomes, strict=True)]


def estimated(trial: Trial, estimator: str) -> Trial:
    """The trial with estimates of all its objectives from its completed runs."""
    completed = [(past.value, *past.others) for past in trial.outcomes if isinstance(past, Completed)]
    guesses = [estimate(values, estimator) for values in zip(*completed, strict=True)]
    return Trial(trial.config, trial.outcomes, guesses[0] if guesses else None, tuple(guesses[1:]))


def turned(outcome: Outcome, experiment: Experiment) -> Outcome:
    """The outcome with lower-is-better values, and back; a lower bound is no bound once it is turned round."""
    if experiment.goal == "minimize" and not experiment.further:
        return outcome
    signs = [-1.0 if objective.goal == "maximize" else 1.0 for objective in experiment.objectives]
    if isinstance(outcome, Completed):
        value, *others = (s * v for s, v in zip(signs, (outcome.value, *outcome.others), strict=True))
        return Completed(value, tuple(others))
    if isinstance(outcome, TimedOut | Pruned) and experiment.goal == "maximize":
        return replace(outcome, at_least=None)
    return outcome
