"""The progress of an experiment: a live panel on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from luthier.cli.terminal import cell, say
from luthier.engine.loop import Situation, Watcher
from luthier.engine.plan import Plan
from luthier.optimizers.front import front_of
from luthier.result.recommendation import is_reliable
from luthier.result.text import config_text, duration_text, outcome_text, sparkline, value_text
from luthier.result.tuned_parameters import tuned_text
from luthier.spec.experiment import Experiment
from luthier.trial import Completed, Lost

if TYPE_CHECKING:
    from rich.live import Live

WIDTH = 60
SHOWN = 4
"""How many of the configurations that are running are shown."""
_WAIT_SHOWN_S = 5.0  # plain lines say nothing of runs that wait less
_MOST_JOBS = 3
ENDING = "stopping: waiting for the current runs; press Ctrl-C again to kill them"


@contextmanager
def progress_view(
    title: str, experiment: Experiment, *, quiet: bool = False, stream: TextIO | None = None
) -> Iterator[Watcher]:
    """Show progress in the form that suits the stream; call the view with the plan after each event."""
    stream = stream or sys.stderr
    if quiet:
        yield lambda *_: None
    elif stream.isatty():
        from rich.console import Console
        from rich.live import Live

        console = Console(file=stream, highlight=False)
        with Live(console=console, refresh_per_second=8, transient=True) as live:
            yield LivePanel(title, experiment, live)
    else:
        say(f"{title}, up to {experiment.budget} runs", stream)
        yield PlainLines(experiment, stream)


class PlainLines:
    """One line for each run that ended, and now and then one about the runs that wait in a queue."""

    def __init__(self, experiment: Experiment, stream: TextIO) -> None:
        self._experiment = experiment
        self._stream = stream
        self._measures = [objective.measure for objective in experiment.objectives]
        self._running: set[int] = set()
        self._ended = 0
        self._said_ending = False
        self._said_tuned = ""
        self._said_waiting: set[tuple[str, str]] = set()
        self._say_waiting_after_s = _WAIT_SHOWN_S

    def __call__(self, plan: Plan, now: Situation) -> None:
        """Print a line for each run that ended since the last call."""
        for number in sorted(self._running):
            run = plan.runs[number]
            if run.outcome is not None:
                self._running.remove(number)
                what = f"{run.purpose:7}  {outcome_text(run.outcome, *self._measures)}"
                self._ended += not isinstance(run.outcome, Lost)
                count = f"run {number:>3}  ({self._ended}/{self._experiment.budget})"
                line = f"{count}  {what}  {config_text(run.config, self._experiment.space)}"
                say(f"{line}  [best: {best_text(plan)}]", self._stream)
        self._running.update(run.number for run in plan.running)
        self._ended = counted_runs(plan)
        if now.ending and plan.running and not self._said_ending:
            self._said_ending = True
            say(ENDING, self._stream)
        self._say_tuned(plan)
        self._say_waiting(plan, now)

    def _say_tuned(self, plan: Plan) -> None:
        """Say which parameters are tuned now, where that has changed."""
        text = tuned_line(plan)
        if text and text != self._said_tuned:
            self._said_tuned = text
            say(f"tuned now: {text}", self._stream)

    def _say_waiting(self, plan: Plan, now: Situation) -> None:
        """Say which runs wait in a queue: when a state or reason is new, and when the wait has doubled."""
        waits = queue_waits(plan, now)
        if not waits:
            self._said_waiting, self._say_waiting_after_s = set(), _WAIT_SHOWN_S
            return
        longest_s = max(waits.values())
        states = {(now.jobs[number].state, now.jobs[number].reason) for number in waits}
        if longest_s < _WAIT_SHOWN_S or (longest_s < self._say_waiting_after_s and states <= self._said_waiting):
            return
        self._said_waiting |= states
        self._say_waiting_after_s = max(2.0 * longest_s, self._say_waiting_after_s)
        say(f"waiting: {jobs_text(plan, now, waiting_only=True)}", self._stream)


class LivePanel:
    """A panel that is redrawn in place: progress bar, best value so far, time left, latest values."""

    def __init__(self, title: str, experiment: Experiment, live: "Live") -> None:
        self._experiment = experiment
        self._title = title
        self._live = live
        self._began = time.monotonic()
        self._before: int | None = None

    def __call__(self, plan: Plan, now: Situation) -> None:
        """Redraw the panel."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        ended = counted_runs(plan)
        if self._before is None:
            self._before = ended
        budget = self._experiment.budget
        rows = Table.grid(padding=(0, 2))
        rows.add_row("", ProgressBar(total=budget, completed=ended, width=WIDTH))
        rows.add_row("runs", cell(f"{ended} of {budget}, {plan.phase}"))
        rows.add_row("best", cell(best_text(plan), style="bold"))
        if plan.best is not None:
            rows.add_row("", cell(config_text(plan.trials[plan.best].config, self._experiment.space)))
        rows.add_row("now", cell(running_text(plan)))
        if text := tuned_line(plan):
            rows.add_row("tuned now", cell(text))
        if now.jobs:
            rows.add_row("jobs", cell(jobs_text(plan, now)))
        values = [run.outcome.value for run in plan.runs[-WIDTH:] if isinstance(run.outcome, Completed)]
        rows.add_row("values", cell(sparkline(values), style="cyan"))
        rows.add_row("time", cell(self._time_text(ended, now.elapsed_s)))
        hint = ENDING if now.ending else "Ctrl-C stops it cleanly"
        self._live.update(Group(cell(f"{self._title}  ({hint})", style="dim"), rows))

    def _time_text(self, ended: int, elapsed_s: float) -> str:
        spent = time.monotonic() - self._began
        done = ended - (self._before or 0)
        if not done:
            return duration_text(spent)
        left = spent / done * (self._experiment.budget - ended)
        if self._experiment.time_limit_s is not None:
            left = min(left, max(0.0, self._experiment.time_limit_s - elapsed_s))
        return f"{duration_text(spent)}, at most {duration_text(left)} left"


def running_text(plan: Plan) -> str:
    """The configurations of the first few runs that are going on, and how many more there are."""
    running = plan.running
    texts = [config_text(run.config, plan.experiment.space) for run in running[:SHOWN]]
    return "; ".join([*texts, f"and {len(running) - SHOWN} more"] if len(running) > SHOWN else texts)


def tuned_line(plan: Plan) -> str:
    """Which parameters the search tunes now, and why; empty if it tunes all of them all the time, or is over."""
    if plan.tuned is None or plan.phase != "search":
        return ""
    return tuned_text(plan.tuned, len(plan.experiment.space.names))


def queue_waits(plan: Plan, now: Situation) -> dict[int, float]:
    """For how long the runs that wait in a queue have done so, by their numbers."""
    waiting = [number for number, job in now.jobs.items() if job.began_at is None and plan.runs[number].outcome is None]
    return {number: max(time.time() - plan.runs[number].submitted_at, 0.0) for number in waiting}


def jobs_text(plan: Plan, now: Situation, *, waiting_only: bool = False) -> str:
    """The batch jobs of active runs, those that wait first: number, state, reason, time in the queue."""
    waits = queue_waits(plan, now)
    shown = sorted(waits if waiting_only else now.jobs, key=lambda number: (number not in waits, number))
    texts = [
        f"run {number}: {now.jobs[number].text}"
        + (f", {duration_text(waits[number])} in the queue" if number in waits else "")
        for number in shown[:_MOST_JOBS]
    ]
    more = len(shown) - len(texts)
    return "; ".join(texts) + (f"; and {more} more" if more else "")


def counted_runs(plan: Plan) -> int:
    """How many runs have ended; lost ones do not count."""
    return plan.counted - sum(run.outcome is None for run in plan.running)


def best_text(plan: Plan) -> str:
    """The best value so far and that of the default, or the size of the Pareto front.

    A ratio of the two is not shown: both may be single runs, and the very first run of a program is often slow.
    """
    if plan.best is None:
        return "none yet"
    if plan.experiment.has_front:
        return f"{len(front_of([trial for trial in plan.trials if is_reliable(trial)]))} on the Pareto front"
    sign = plan.experiment.objective.sign
    best, default = plan.trials[plan.best].estimate, plan.trials[0].estimate
    if best is None:
        return "none yet"
    text = value_text(sign * best.value, plan.experiment.objective.measure)
    if default is None or plan.best == 0:
        return text
    before = value_text(sign * default.value, plan.experiment.objective.measure)
    return f"{text}, default {before}"
