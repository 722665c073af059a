"""What is shown while an experiment runs."""

import io
import time
from collections.abc import Mapping

from luthier.cli.progress import progress_view, running_text
from luthier.engine.loop import Situation
from luthier.engine.plan import Plan
from luthier.engine.session import plan_of
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.trial import BatchJob, Config, Purpose, Run

EXPERIMENT = Experiment(space=Space(Integer("x", 1, 40)), budget=20, slots=8)


def plan_with(*waited_s: float) -> Plan:
    """A plan whose runs were submitted so long ago."""
    plan = plan_of(EXPERIMENT)
    for number, ago_s in enumerate(waited_s):
        purpose: Purpose = "search" if number else "default"
        plan.submitted(Run(number, number, purpose, Config({"x": number + 1}), time.time() - ago_s, number))
    return plan


def plain(plan: Plan, *seen: Mapping[int, BatchJob]) -> list[str]:
    """The lines without a terminal, after the first, when the jobs are seen so one after another."""
    stream = io.StringIO()
    with progress_view("experiment 1", EXPERIMENT, stream=stream) as view:
        for jobs in seen:
            view(plan, Situation(ending=False, elapsed_s=0.0, jobs=jobs))
    return stream.getvalue().splitlines()[1:]


LONG_S = 7210.0  # the text stays the same for a while
RUNS = BatchJob("70", "RUNNING", began_at=1.0)
WAITS = BatchJob("71", "PENDING", "Resources")


def test_lines_about_waiting_are_few() -> None:
    said = "waiting: run 1: job 71 PENDING (Resources), 2 h 00 min in the queue"
    plan = plan_with(LONG_S, LONG_S)
    assert plain(plan, *[{0: RUNS, 1: WAITS}] * 50) == [said]
    assert plain(plan, {0: RUNS}, {}) == []
    held = BatchJob("71", "PENDING", "JobHeldAdmin")
    lines = plain(plan, {1: WAITS}, {1: held}, {1: WAITS}, {1: held})
    assert lines == [said, said.replace("Resources", "JobHeldAdmin")]
    assert plain(plan, {1: WAITS}, {0: RUNS}, {1: WAITS}) == [said, said], "another wait"
    assert plain(plan_with(LONG_S, 0.0), {1: WAITS}) == [], "a short wait is not worth a line"


def test_one_line_names_a_few_of_many_jobs() -> None:
    (line,) = plain(plan_with(*[LONG_S] * 8), {number: BatchJob(str(70 + number), "PENDING") for number in range(8)})
    assert line.count("in the queue") == 3
    assert line.endswith("; and 5 more")


def test_the_panel_shows_jobs_and_those_that_wait_first() -> None:
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]  # for this test
    with progress_view("experiment 1", EXPERIMENT, stream=stream) as view:
        view(plan_with(LONG_S, LONG_S), Situation(ending=False, elapsed_s=0.0, jobs={0: RUNS, 1: WAITS}))
    words = " ".join(stream.getvalue().split())
    first, _, then = words.partition("run 1: job 71 PENDING (Resources), 2 h 00 min in the queue; ")
    assert "jobs" in first
    assert then.startswith("run 0: job 70 RUNNING")


def test_only_a_few_of_many_running_configurations_are_shown() -> None:
    plan = plan_of(Experiment(space=Space(Integer("x", 0, 999)), budget=200, optimizer="random", slots=100))
    for order in plan.orders(3, 0.0):
        plan.submitted(Run(len(plan.runs), order.trial, order.purpose, order.config, 0.0, plan.events))
    assert running_text(plan).count("x=") == 3
    assert "more" not in running_text(plan)
    for order in plan.orders(97, 0.0):
        plan.submitted(Run(len(plan.runs), order.trial, order.purpose, order.config, 0.0, plan.events))
    assert running_text(plan).count("x=") == 4
    assert running_text(plan).endswith("; and 96 more")
