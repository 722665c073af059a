"""The loop: orders from the plan go to the runner, what ended goes to the store and back to the plan."""

import logging
import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from luthier.engine.interrupts import Interrupts
from luthier.engine.ledger import HEARTBEAT_S, Ledger
from luthier.engine.plan import Order, Plan
from luthier.measures.base import Measure
from luthier.policies.base import Prune
from luthier.result.activity import SUGGESTING
from luthier.runners.base import BatchRunner, Runner
from luthier.store.base import STOPS
from luthier.trial import NO_JOBS, BatchJob, Completed, Execution, Job, Lost, Outcome, Pruned, Run


class WorkTime:
    """The time an experiment has been worked on, without the time in which all of its active runs waited in a queue.

    All times are those of one monotonic clock. `spent_s` is how long earlier processes worked on it.
    """

    def __init__(self, now: float, spent_s: float) -> None:
        self._began = now - spent_s
        self._waiting_since: float | None = None

    def elapsed_s(self, now: float) -> float:
        """The time up to now."""
        return (now if self._waiting_since is None else self._waiting_since) - self._began

    def note(self, now: float, began: Sequence[float | None]) -> None:
        """Note when each of the active runs began; None for one that waits."""
        waits = bool(began) and all(one is None for one in began)
        if waits and self._waiting_since is None:
            self._waiting_since = now
        elif not waits and self._waiting_since is not None:
            until = min([now, *(one for one in began if one is not None)])  # runs are seen some time after they began
            self._began += max(until - self._waiting_since, 0.0)
            self._waiting_since = None


log = logging.getLogger(__name__)

WAIT_S = 0.2
"""How long to wait for a run at most before looking at interrupts, pruning and requests to stop."""

STOPPED = "stopped by request, then verified"
"""The reason that is stored for a search that was asked to stop and verify."""


@dataclass(frozen=True, slots=True)
class Machinery:
    """What carries out the plan's orders.

    `clock` returns seconds since the epoch and may jump when the system's clock is set; `timer` is monotonic. A
    simulation has its own.
    """

    runner: Runner
    measure: Measure
    prune: Prune
    clock: Callable[[], float] = time.time
    timer: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class Situation:
    """What there is to show beside the plan.

    `ending`: only the end of active runs is awaited. `elapsed_s` is the time that the time limit counts. `jobs` has the
    jobs of active runs in a batch system, by the number of the run.
    """

    ending: bool
    elapsed_s: float
    jobs: Mapping[int, BatchJob]


Watcher = Callable[[Plan, Situation], None]
"""Called after every change, to show progress."""


class Loop:
    """Carries one plan through to its end.

    Every run is in the store before it starts and again when it has ended, before the next is asked for: whatever
    kills this process, the store and the runner together know what was done.
    """

    def __init__(self, plan: Plan, machinery: Machinery, ledger: Ledger, *, watch: Watcher = lambda *_: None) -> None:
        self._plan = plan
        self._machinery = machinery
        self._ledger = ledger
        self._watch = watch
        self._time = WorkTime(machinery.timer(), _time_spent(plan))
        self._batch = machinery.runner if isinstance(machinery.runner, BatchRunner) else None
        self._jobs = NO_JOBS
        self._beat = -math.inf
        self._keys: dict[str, int] = {}  # of the runs that were submitted to the runner and have not ended
        self._suggest_s: dict[int, float] = {}
        self._submitted: dict[int, float] = {}
        self._started: dict[int, float] = {}
        self._cancelled: dict[int, Pruned | Lost] = {}
        self._pruned_s: dict[int, float] = {}
        self._draining = False

    def run(self, interrupts: Interrupts) -> bool:
        """Work until the plan has no more orders; return False if the experiment was stopped before.

        A first interrupt, or a request to stop, lets active runs finish and removes waiting ones from their queue; a
        second one kills all runs. After a request to verify, the search ends in the same way and the plan goes on.
        """
        self._show()
        for run in self._plan.running:
            self._start(run, from_elsewhere=self._ledger.comes_from_elsewhere)
        while True:
            self._listen(interrupts)
            self._fill_slots()
            if not self._plan.running:
                return not self._draining
            self._prune()
            ended = self._machinery.runner.poll(list(self._keys), WAIT_S)
            self._look_at_jobs(ended)
            for execution in ended:
                self._finish(self._plan.runs[self._keys.pop(execution.key)], execution)
            self._show()

    def _fill_slots(self) -> None:
        """Submit until every slot is taken or the plan has no more orders."""
        while not self._draining:
            began = self._machinery.timer()
            orders = self._plan.orders(self._plan.experiment.slots - len(self._plan.running), self.elapsed_s)
            if not orders:
                return
            each_s = (self._machinery.timer() - began) / len(orders)
            for order in orders:
                self._suggest_s[len(self._plan.runs)] = each_s
                self._submit(order)

    @property
    def elapsed_s(self) -> float:
        """Seconds this experiment has been worked on, including the time of earlier processes.

        The time in which all active runs wait in the queue of a batch system does not count.
        """
        return self._time.elapsed_s(self._machinery.timer())

    def _show(self) -> None:
        self._watch(self._plan, Situation(self._draining, self.elapsed_s, self._jobs))

    def _look_at_jobs(self, ended: Sequence[Execution]) -> None:
        """Note what the batch system, if there is one, says about the active runs; `ended` are not active any more."""
        if self._batch is None:
            return
        over = {execution.key for execution in ended}
        active = {run.number: self._key(run) for run in self._plan.running if self._key(run) not in over}
        self._jobs = {number: job for number, key in active.items() if (job := self._batch.batch_job(key)) is not None}
        # A job that never began has no duration.
        began = [execution.started_at if execution.duration_s > 0 else None for execution in ended]
        began += [job.began_at for job in self._jobs.values()]
        now, clock = self._machinery.timer(), self._machinery.clock()
        self._time.note(now, [None if one is None else now - max(clock - one, 0.0) for one in began])

    def _listen(self, interrupts: Interrupts) -> None:
        now, request = self._machinery.timer(), None
        if now - self._beat >= HEARTBEAT_S:
            self._beat = now
            request = self._ledger.stop_request(self._jobs)
        if request == "verify":
            self._plan.stop_search(STOPPED)
        if interrupts.count >= 1 or request in STOPS:
            self._draining = True
        if interrupts.count >= 2 or request == "kill":
            self._cancel(self._plan.running, Lost("killed because the experiment was stopped"))
        if self._draining or self._plan.is_stopped:  # a job may wait in a queue for days
            stopped = [run for run in self._plan.running if self._draining or run.purpose == "search"]
            self._cancel([run for run in stopped if self._going_s(run) is None], Lost("stopped before it began"))

    def _submit(self, order: Order) -> None:
        run = Run(
            number=len(self._plan.runs),
            trial=order.trial,
            purpose=order.purpose,
            config=order.config,
            submitted_at=self._machinery.clock(),
            submit_order=self._plan.events,
            uid=secrets.token_hex(6),
        )
        self._ledger.append(run)
        self._plan.submitted(run)
        self._show()
        self._start(run)

    def _start(self, run: Run, *, from_elsewhere: bool = False) -> None:
        self._keys[self._key(run)] = run.number
        self._submitted[run.number] = self._machinery.timer()
        label = f"{self._ledger.number}-run{run.number}"
        job = Job(self._key(run), run.config, self._plan.experiment.timeout_s, label, from_elsewhere)
        self._machinery.runner.submit(job)

    def _finish(self, run: Run, execution: Execution) -> None:
        reason = self._cancelled.pop(run.number, None)
        if reason is not None and isinstance(execution.problem, Pruned):
            execution = replace(execution, problem=reason)
        ended = replace(
            run,
            finish_order=self._plan.events,
            started_at=execution.started_at,
            duration_s=execution.duration_s,
            outcome=self._bounded(self._machinery.measure(execution), run),
            metrics=self._with_suggestion(execution.metrics, run),
            logs=execution.logs,
            batch_job=execution.batch_job,
        )
        self._ledger.finish(ended)
        self._submitted.pop(run.number, None)
        self._started.pop(run.number, None)
        self._plan.finished(ended)

    def _with_suggestion(self, metrics: Mapping[str, float], run: Run) -> Mapping[str, float]:
        """The metrics of a run, and the time that its suggestion took; that is unknown after luthier was killed."""
        suggest_s = self._suggest_s.pop(run.number, None)
        return metrics if suggest_s is None or run.purpose == "verify" else {**metrics, SUGGESTING: suggest_s}

    def _prune(self) -> None:
        """Stop runs that are not worth finishing.

        Only the first run of a configuration: later ones are made because it is promising, and an estimate from those
        that happened to be fast would be too good.
        """
        if self._plan.experiment.prune is None:
            return
        progress = self._plan.progress(self.elapsed_s)
        for run in self._plan.running:
            repeated = any(isinstance(past, Completed) for past in self._plan.trials[run.trial].outcomes)
            if run.purpose != "search" or repeated or run.number in self._cancelled:
                continue
            going_s = self._going_s(run)
            if going_s is not None and (reason := self._machinery.prune(run.trial, going_s, progress)):
                self._pruned_s[run.number] = going_s
                self._cancel([run], Pruned(reason))

    def _going_s(self, run: Run) -> float | None:
        """How long a run has been going; None while it waits in a queue."""
        now, submitted = self._machinery.timer(), self._submitted[run.number]
        if run.number not in self._started:
            began = self._machinery.runner.started_at(self._key(run))
            if began is None:
                return None
            # How long ago by the clock, as far as that can be: the clock may have been set since.
            ago_s = min(max(self._machinery.clock() - began, 0.0), now - submitted)
            self._started[run.number] = now - ago_s
        return now - self._started[run.number]

    def _bounded(self, outcome: Outcome, run: Run) -> Outcome:
        """The outcome; of a run that was pruned with no higher bound than the time at which that was decided.

        The time until a killed run has ended says nothing about the configuration.
        """
        decided_s = self._pruned_s.pop(run.number, math.inf)
        if (
            isinstance(outcome, Pruned)
            and outcome.at_least is not None
            and self._plan.experiment.objective.measure == "wall"
        ):
            return replace(outcome, at_least=min(outcome.at_least, decided_s))
        return outcome

    def _cancel(self, runs: Sequence[Run], reason: Pruned | Lost) -> None:
        fresh = [run for run in runs if run.number not in self._cancelled]
        for run in fresh:
            self._cancelled[run.number] = reason
        if fresh:
            self._machinery.runner.cancel([self._key(run) for run in fresh])

    def _key(self, run: Run) -> str:
        return run.key(self._ledger.uid)


def _time_spent(plan: Plan) -> float:
    """The time that earlier processes worked on it: the time of all runs, divided by the slots."""
    return sum(run.duration_s or 0.0 for run in plan.runs) / plan.experiment.slots
