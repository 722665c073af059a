"""What to run next, decided from what has happened: a state machine without clock, file or runner."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from luthier.optimizers.base import Optimizer
from luthier.optimizers.impact_first import ImpactFirst
from luthier.policies.base import Progress, Resample, Stop, TunedStep
from luthier.result.known_trials import KnownTrials, events_of
from luthier.result.recommendation import challenger_of, is_reliable
from luthier.result.second_look import second_look
from luthier.result.tie_break import contender
from luthier.result.trials import initial_draws
from luthier.result.verification import (
    FEWEST_PAIRS,
    MOST_PAIRS,
    Duel,
    duel_of,
    goes_first,
    is_settled,
    with_verification,
)
from luthier.spec.experiment import Experiment
from luthier.trial import Config, Lost, Purpose, Run, Trial

HOPELESS = 10
"""The search ends after this many configurations without a single number: something else is wrong."""

MOST_LOSSES = 2
"""How often a configuration is tried again after its run was lost."""

FEWEST_LOST = 20
"""Lost runs do not use up the budget; the search ends when as many were lost as the budget allows, at least this
many."""

ENDED_BEFORE = "the search had ended before"
"""The reason given in a replay, which does not know the original one."""

_RUNS_FOR_A_LOOK = 20  # of the budget, for each second look at a configuration


@dataclass(frozen=True, slots=True)
class Order:
    """A run to make: why, of which configuration, for which trial."""

    purpose: Purpose
    config: Config
    trial: int


class Plan:
    """Takes an experiment from its default through the search to the verification.

    Call `submitted` when an order was carried out and `finished` when a run ended, in the order of these events.
    Nothing else influences the plan, so replaying the stored events in a new one (`replay`) leads to the same state
    and the same next orders. A replay tells the optimizer what happened and does not ask it.
    """

    def __init__(self, experiment: Experiment, optimizer: Optimizer, *, stop: Stop, resample: Resample) -> None:
        self.experiment = experiment
        self.ending: str | None = None
        self._optimizer = optimizer
        self._stop = stop
        self._resample = resample
        self._runs: list[Run] = []
        self._counted: list[int] = []  # the numbers of the runs that were not lost, in rising order
        self._steps: list[int] = []  # the trial of each of them
        self._costs_s: list[float | None] = []
        self._known = KnownTrials(experiment)
        self._running: dict[int, Run] = {}
        self._again: list[int] = []
        self._challenger: int | None = None
        self._reason_to_end: str | None = None
        self._looks = 0
        self._asked_to_end: str | None = None
        self._round = 0
        self._begun = 0  # how many trials there were when the search of this round began

    @property
    def runs(self) -> Sequence[Run]:
        """Every run so far, in order of submission."""
        return self._runs

    @property
    def running(self) -> Sequence[Run]:
        """The runs that have not ended."""
        return list(self._running.values())

    @property
    def counted(self) -> int:
        """How many runs use up the budget: all but the lost ones."""
        return len(self._counted)

    @property
    def lost(self) -> int:
        """How many runs were lost."""
        return len(self._runs) - len(self._counted)

    @property
    def events(self) -> int:
        """How many submissions and endings there have been."""
        return 2 * len(self._runs) - len(self._running)

    @property
    def trials(self) -> Sequence[Trial]:
        """Every configuration tried, with the value the optimizer sees (lower is better)."""
        return self._known.trials

    @property
    def best(self) -> int | None:
        """The number of the best trial of the search so far."""
        return self._known.best

    @property
    def tuned(self) -> TunedStep | None:
        """Which parameters are tuned now, and why; None if all are tuned all the time."""
        return self._optimizer.tuned.steps[-1] if isinstance(self._optimizer, ImpactFirst) else None

    @property
    def phase(self) -> Purpose:
        """What the runs are for at the moment."""
        return "verify" if self.ending is not None else "search" if self._runs else "default"

    def progress(self, elapsed_s: float) -> Progress:
        """What rules may know of the search: no copy, so it is out of date after the next event."""
        return Progress(
            trials=self._known.trials,
            best=self._known.best,
            repeats=list(self._known.repeats.values()),
            steps=self._steps,
            initial=initial_draws(self.experiment.budget),
            budget=self.experiment.budget - 2 * self.experiment.reserved_pairs,
            elapsed_s=elapsed_s,
            costs_s=self._costs_s,
            objectives=len(self.experiment.objectives),
        )

    @contextmanager
    def _drafting(self) -> Iterator[Callable[[Order], None]]:
        """A function that lets an order count as submitted, until the end."""
        trials, steps = len(self._known.trials), len(self._steps)

        def draft(order: Order) -> None:
            if order.trial == len(self._known.trials):
                self._known.add(order.config)
            self._steps.append(order.trial)
            self._costs_s.append(None)

        try:
            yield draft
        finally:
            # The orders may be carried out or not; only `submitted` counts.
            del self._known.trials[trials:], self._steps[steps:], self._costs_s[steps:]

    def orders(self, free: int, elapsed_s: float) -> list[Order]:
        """The runs to start now in up to `free` slots, to be submitted in this order.

        There are fewer when a run has to end first. An empty list while nothing runs means that the experiment is done.
        """
        self._continue_search(self.events)
        orders = self._search_orders(free, elapsed_s) if self.ending is None else []
        if not orders and self.ending is not None and free > 0:
            return self._verification_orders()
        return orders

    def submitted(self, run: Run) -> None:
        """Note that an order is being carried out."""
        self._continue_search(run.submit_order)
        if run.purpose == "verify":
            self._end_search(_budget_spent(self.experiment, self.progress(0.0)) or ENDED_BEFORE)
            # In a replay, the run itself says who was compared with the default, unless it is of the default (trial 0).
            self._challenger = run.trial or self._choose_challenger()
        if run.trial == len(self._known.trials):
            self._known.add(run.config)
        elif run.trial in self._again:
            self._again.remove(run.trial)
        self._runs.append(run)
        self._counted.append(run.number)
        self._steps.append(run.trial)
        self._costs_s.append(None)
        self._running[run.number] = run

    def finished(self, run: Run) -> None:
        """Note how a run ended."""
        if run.outcome is None:
            raise ValueError(f"run {run.number} has not ended")
        del self._running[run.number]
        self._runs[run.number] = run
        # Entries of runs that were lost before are gone, so the place is searched for.
        at = bisect_left(self._counted, run.number)
        self._costs_s[at] = run.duration_s
        if isinstance(run.outcome, Lost):
            del self._counted[at], self._steps[at], self._costs_s[at]
        if run.purpose != "verify":
            self._learn(run)

    def _continue_search(self, event: int) -> None:
        """Search again if the budget was raised before this event although the search had ended.

        The user asked for more runs, so what ended the search before does not end it again; a default that never gave a
        number is measured again.
        """
        if self._round == self.experiment.round_of(event):
            return
        self._round = self.experiment.round_of(event)
        self._begun = len(self._known.trials)
        self.ending = self._challenger = self._reason_to_end = self._asked_to_end = None
        self._again = [0] if self._known.trials and self._known.trials[0].estimate is None else []

    @property
    def is_stopped(self) -> bool:
        """Whether the search was asked to end."""
        return self._asked_to_end is not None

    def stop_search(self, reason: str) -> None:
        """End the search when the active runs have ended, but not before the default was measured; then verify."""
        self._asked_to_end = reason
        if self.ending == ENDED_BEFORE:
            self.ending = reason

    def replay(self, runs: Sequence[Run]) -> None:
        """Learn a stored history, event by event; the optimizer is told, and not asked."""
        for run in events_of(runs):
            if run.outcome is None:
                self.submitted(run)
            else:
                self.finished(run)

    def _search_orders(self, free: int, elapsed_s: float) -> list[Order]:
        orders: list[Order] = []
        repeats, suggested, reason = list(self._again), None, None
        with self._drafting() as draft:
            progress = self.progress(elapsed_s)
            while len(orders) < free:
                if reason := self._reason_to_end or self._why_to_end(progress):
                    break
                if not progress.trials or _sentinel_is_due(self.experiment.sentinels, progress.steps):
                    order = Order("default", self.experiment.space.default, 0)
                elif repeats:
                    order = _repeat(progress.trials, repeats.pop(0))
                else:
                    if suggested is None:  # one ask for all slots; unused suggestions are asked for again later
                        suggested = self._suggestions(free - len(orders), orders, len(progress.trials) - 1)
                    if suggested:
                        order = Order("search", suggested.pop(0), len(progress.trials))
                    # Every configuration has been tried: what is left of the budget goes to the best ones.
                    elif (number := self._contender(progress, orders)) is not None:
                        order = _repeat(progress.trials, number)
                    else:
                        break
                orders.append(order)
                draft(order)
        if orders or free < 1:
            return orders
        if reason is None and not self._running:
            reason = "every configuration has been tried"
        return self._last_orders(reason) if reason else []

    def _why_to_end(self, progress: Progress) -> str | None:
        if not progress.trials:
            return None
        return (
            self._asked_to_end
            or _budget_spent(self.experiment, progress)
            or _too_many_lost(self.experiment, self.lost)
            or _hopeless(progress, self._begun, len(self._running))
            # Whoever raised the budget after the end wants more runs than the stop rule.
            or (None if self._round else self._stop(progress))
        )

    def _last_orders(self, reason: str) -> list[Order]:
        """The last runs of the search, one at a time: configurations whose only run may have been an outlier."""
        self._reason_to_end = reason
        if self._running:
            return []
        if self.is_stopped and 0 in self._again and self._known.trials[0].estimate is None:
            return [_repeat(self._known.trials, 0)]  # without a default there is nothing to compare with
        left = self.experiment.budget - self.counted
        # A best configuration with a single run may be an outlier: docs/research/2026-11-16-accidental-runs.md.
        may_look = self._resample.uses_spare_runs and not self.experiment.has_front and not self.is_stopped
        if may_look and self._looks * _RUNS_FOR_A_LOOK < self.experiment.budget and left > 2 * FEWEST_PAIRS:
            number = second_look(self.experiment.space, self._known.trials, self._known.best)
            if number is not None:
                self._looks += 1
                return [_repeat(self._known.trials, number)]
        self._end_search(reason)
        return []

    def _contender(self, progress: Progress, planned: Sequence[Order]) -> int | None:
        if not self._resample.uses_spare_runs or self.experiment.has_front:
            return None
        running = [run.trial for run in self._running.values()]
        return contender(progress, [*running, *(order.trial for order in planned)])

    def _suggestions(self, count: int, planned: Sequence[Order], tried: int) -> list[Config]:
        """Configurations that have not run: those to try first, then what the optimizer suggests."""
        first = list(self.experiment.first[tried : tried + count])
        busy = dict.fromkeys([*(run.config for run in self._running.values()), *(order.config for order in planned)])
        return first + list(self._optimizer.ask(count - len(first), [*busy, *first]) if len(first) < count else [])

    def _verification_orders(self) -> list[Order]:
        """One run at a time, so that the two do not disturb each other; a Pareto front has no winner to verify."""
        if self._running or self.experiment.has_front:
            return []
        challenger, trials = self._choose_challenger(), self._known.trials
        if not challenger or trials[0].estimate is None or _too_many_lost(self.experiment, self.lost):
            return []
        runs = with_verification(self.experiment, self._runs, self._round)
        duel = duel_of(runs, trials[0].config, trials[challenger].config, self._known.estimator)
        number = _next_to_verify(self.experiment, duel, self.experiment.budget - self.counted, challenger)
        return [] if number is None else [Order("verify", trials[number].config, number)]

    def _choose_challenger(self) -> int | None:
        """The trial to compare with the default, chosen when no run of the search is left."""
        if self._challenger is None:
            known, several = self._known, self.experiment.has_front
            self._challenger = (
                known.best if several else challenger_of(self.experiment.space, known.trials, known.estimator)
            )
        return self._challenger

    def _end_search(self, reason: str) -> None:
        if self.ending is None:
            self.ending = reason
            self._again.clear()

    def _learn(self, run: Run) -> None:
        changed = self._known.learn(run, self._runs)
        if not changed:
            return
        self._optimizer.tell([self._known.trials[number] for number in changed])
        if self.ending is not None:
            return
        if isinstance(run.outcome, Lost):
            losses = sum(isinstance(past, Lost) for past in self._known.trials[run.trial].outcomes)
            self._again += [run.trial] * (1 if losses <= MOST_LOSSES else 0)
        self._ask_for_repeats(run.trial)

    def _ask_for_repeats(self, last: int) -> None:
        """Ask the rule about the last trial and the best one; initial draws come first, with one run each."""
        progress = self.progress(0.0)
        if len(self._known.trials) < progress.initial:
            return
        # Robert 2022, chapter 5: initial draws run once; they are repeated only if they lead.
        asked = [last] if last >= progress.initial else []
        for number in dict.fromkeys([*asked, *([] if self._known.best is None else [self._known.best])]):
            trial = self._known.trials[number]
            if trial.estimate is not None and is_reliable(trial):
                busy = sum(run.trial == number for run in self._running.values()) + self._again.count(number)
                missing = self._resample(number, progress) - busy
                self._again += [number] * max(0, min(missing, progress.budget - self.counted))


def _repeat(trials: Sequence[Trial], number: int) -> Order:
    return Order("default" if number == 0 else "search", trials[number].config, number)


def _sentinel_is_due(every: int, steps: Sequence[int]) -> bool:
    """Whether the default should be measured again."""
    return every > 0 and 0 not in steps[-every:]


def _hopeless(progress: Progress, begun: int, running: int) -> str | None:
    if progress.best is not None:
        return None
    ended = sum(bool(trial.outcomes) for trial in progress.trials[begun : begun + HOPELESS + running])
    return None if ended < HOPELESS else f"none of the first {ended} configurations gave a number"


def _too_many_lost(experiment: Experiment, lost: int) -> str | None:
    return f"{lost} runs were lost" if lost >= max(experiment.budget, FEWEST_LOST) else None


def _budget_spent(experiment: Experiment, progress: Progress) -> str | None:
    """Runs are kept for the verification; while the default leads, for the fewest pairs; if it failed, none."""
    # Two runs for each pair; docs/decisions/0002-verification.md says how many pairs are reserved.
    budget, pairs = experiment.budget, experiment.reserved_pairs
    default = progress.default
    if progress.best is None or (default is not None and default.outcomes and default.estimate is None):
        pairs = 0
    elif progress.best == 0 and experiment.verify_pairs is None:
        pairs = min(pairs, FEWEST_PAIRS)
    if progress.runs < budget - 2 * pairs:
        return None
    kept = max(budget - progress.runs, 0)
    return f"the budget of {budget} runs is spent" + (f", {kept} of them kept for verification" if kept else "")


def _next_to_verify(experiment: Experiment, duel: Duel, left: int, winner: int) -> int | None:
    """The trial to run next, 0 for the default or the winner; None when enough is known or no runs are left."""
    most = MOST_PAIRS if experiment.verify_pairs is None else experiment.verify_pairs
    defaults, winners = len(duel.default_values), len(duel.winner_values)
    if left < (2 if defaults == winners else 1) or is_settled(duel, experiment.objective.goal, most):
        return None
    first = goes_first(experiment.seed, defaults) == "default"
    return 0 if defaults < winners or (defaults == winners and first) else winner
