import math
from collections import Counter

import pytest

from luthier.errors import InvalidInputError
from luthier.runners.base import Runner
from luthier.runners.contract import RunnerContract
from luthier.runners.replay import ReplayedRun, ReplayRunner
from luthier.trial import Config, Failed, Job, Lost, Pruned, TimedOut


class ReplayStage:
    def __init__(self) -> None:
        self.started: Counter[object] = Counter()

    def answer(self, config: Config, repeat: int, now_s: float) -> ReplayedRun:
        self.started[config["number"]] += 1
        return {
            "finish": ReplayedRun(1.0, 1.5),
            "fail": ReplayedRun(1.0, Failed("as told")),
            "wait": ReplayedRun(50.0, 1.5),
            "hang": ReplayedRun(math.inf, 1.5),
        }[str(config["behaviour"])]

    def runner(self, slots: int) -> Runner:
        return ReplayRunner(self.answer, slots)

    def let_go(self) -> None:
        pass

    def starts(self, number: int) -> int:
        return self.started[number]


class TestReplayRunner(RunnerContract):
    @pytest.fixture
    def stage(self) -> ReplayStage:
        return ReplayStage()


A, B = Config({"x": 1}), Config({"x": 2})


def seconds(config: Config, repeat: int, now_s: float) -> ReplayedRun:
    return ReplayedRun(float(config["x"]), now_s)


def test_time_passes_to_the_next_end_or_by_the_wait() -> None:
    runner = ReplayRunner(seconds, slots=2)
    runner.submit(Job("b", B))
    runner.submit(Job("a", A))
    assert runner.poll(["a", "b"], 0.25) == []
    assert runner.now == runner.clock() == 0.25
    assert [execution.key for execution in runner.poll(["a", "b"], 100)] == ["a"]
    assert runner.now == 1.0
    runner.submit(Job("a2", A))
    both = runner.poll(["a2", "b"], 100)
    assert [(run.key, run.started_at, run.duration_s, run.value) for run in both] == [
        ("b", 0.0, 2.0, 0.0),
        ("a2", 1.0, 1.0, 1.0),
    ]
    assert runner.now == 2.0


def test_what_ended_while_another_was_awaited_is_reported_without_waiting() -> None:
    runner = ReplayRunner(seconds, slots=2)
    runner.submit(Job("a", A))
    runner.submit(Job("b", B))
    assert [execution.key for execution in runner.poll(["b"], 100)] == ["b"]
    assert [execution.key for execution in runner.poll(["a"], 100)] == ["a"]
    assert runner.now == 2.0


def test_time_limits_and_cancels_are_virtual() -> None:
    runner = ReplayRunner(seconds, slots=2)
    runner.submit(Job("late", B, timeout_s=1.5))
    runner.submit(Job("cancelled", B))
    runner.poll([], 0.5)
    runner.cancel(["cancelled"])
    cancelled, late = [*runner.poll(["cancelled", "late"], 9), *runner.poll(["late"], 9)]
    assert (cancelled.problem, cancelled.duration_s) == (Pruned("cancelled"), 0.5)
    assert (late.problem, late.duration_s) == (TimedOut("took longer than 1.5 s"), 1.5)
    assert late.metrics == {"wall_s": 1.5}
    assert late.value is None


def test_exactly_at_the_limit_is_in_time() -> None:
    runner = ReplayRunner(seconds)
    runner.submit(Job("k", B, timeout_s=2.0))
    assert runner.poll(["k"], 9)[0].problem is None


def test_a_job_that_never_ends_stops_no_clock() -> None:
    runner = ReplayRunner(lambda config, repeat, now_s: ReplayedRun(math.inf, 1.0))
    runner.submit(Job("k", A))
    assert runner.poll(["k"], math.inf) == []
    assert runner.now == 0.0


def test_problems_are_answers() -> None:
    runner = ReplayRunner(lambda config, repeat, now_s: ReplayedRun(1, Lost("node down")))
    runner.submit(Job("k", A))
    assert runner.poll(["k"], 9)[0].problem == Lost("node down")


@pytest.mark.parametrize("duration_s", [-1.0, math.nan])
def test_durations_are_checked(duration_s: float) -> None:
    with pytest.raises(InvalidInputError):
        ReplayedRun(duration_s, 1.0)
