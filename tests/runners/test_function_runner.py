import logging
import math
import threading
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from luthier.runners.base import Runner
from luthier.runners.contract import RunnerContract, collect
from luthier.runners.function import FunctionRunner
from luthier.trial import Config, Failed, Job, Pruned, TimedOut


class FunctionStage:
    def __init__(self) -> None:
        self.gate = threading.Event()
        self.over = threading.Event()
        self.started: Counter[object] = Counter()

    def function(self, config: Config) -> float:
        self.started[config["number"]] += 1
        if config["behaviour"] == "fail":
            raise ValueError("as told")
        if config["behaviour"] == "wait":
            self.gate.wait()
        if config["behaviour"] == "hang":
            self.over.wait()
        return 1.5

    def runner(self, slots: int) -> Runner:
        return FunctionRunner(self.function, slots)

    def let_go(self) -> None:
        self.gate.set()

    def starts(self, number: int) -> int:
        return self.started[number]


class TestFunctionRunner(RunnerContract):
    @pytest.fixture
    def stage(self) -> Iterator[FunctionStage]:
        stage = FunctionStage()
        yield stage
        stage.gate.set()
        stage.over.set()


def result_of(returned: object) -> tuple[float | None, object]:
    runner = FunctionRunner(lambda config: returned)  # type: ignore[arg-type, return-value]  # users return anything
    runner.submit(Job("k", Config({})))
    execution = collect(runner, ["k"])["k"]
    return execution.value, execution.problem


@pytest.mark.parametrize("returned", [3, 3.0, np.float32(3), np.int64(3), Fraction(3)])
def test_any_real_number_is_a_value(returned: object) -> None:
    value, problem = result_of(returned)
    assert (value, problem) == (3.0, None)
    assert type(value) is float


@pytest.mark.parametrize("returned", [(1, 2.5), [1, Fraction(5, 2)], np.array([1.0, 2.5])])
def test_several_numbers_are_a_value_and_others(returned: object) -> None:
    runner = FunctionRunner(lambda config: returned)  # type: ignore[arg-type, return-value]  # users return anything
    runner.submit(Job("k", Config({})))
    execution = collect(runner, ["k"])["k"]
    assert (execution.value, execution.others, execution.problem) == (1.0, (2.5,), None)


def test_zero_is_a_value() -> None:
    assert result_of(0) == (0.0, None)


@pytest.mark.parametrize(
    "returned",
    [
        None,
        math.nan,
        math.inf,
        -math.inf,
        "3",
        True,
        np.True_,
        [1.0],
        [1.0, None],
        (1.0, math.nan),
        "12",
        1j,
        10**400,
        np.float64("nan"),
    ],
)
def test_what_is_no_finite_number_is_a_failure(returned: object) -> None:
    value, problem = result_of(returned)
    assert value is None
    assert isinstance(problem, Failed)
    assert "expected a" in problem.reason
    assert len(problem.reason) < 120


@pytest.mark.parametrize("error", [ValueError("too deep"), SystemExit(3)])
def test_whatever_is_raised_is_a_failure(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    def function(config: Config) -> float:
        raise error

    runner = FunctionRunner(function)
    with caplog.at_level(logging.DEBUG, logger="luthier.runners.function"):
        runner.submit(Job("k", Config({})))
        problem = collect(runner, ["k"])["k"].problem
    assert problem == Failed(f"{type(error).__name__}: {error}")
    assert any(record.exc_info for record in caplog.records)


def test_late_results_of_abandoned_calls_are_ignored() -> None:
    gate, ended = threading.Event(), threading.Event()

    def function(config: Config) -> float:
        gate.wait()
        ended.set()
        return 1.0

    runner = FunctionRunner(function, slots=2)
    runner.submit(Job("cancelled", Config({})))
    runner.submit(Job("late", Config({}), timeout_s=0.01))
    runner.cancel(["cancelled"])
    reported = collect(runner, ["cancelled", "late"])
    assert reported["cancelled"].problem == Pruned("cancelled")
    assert reported["late"].problem == TimedOut("took longer than 0.01 s")
    gate.set()
    assert ended.wait(30)
    for thread in threading.enumerate():
        if thread.name in ("luthier-cancelled", "luthier-late"):
            thread.join(30)
    assert not runner.poll(["cancelled", "late"], 0)


def test_a_call_past_its_limit_is_timed_out_even_if_nobody_looked_in_between() -> None:
    limit_passed = threading.Event()
    runner = FunctionRunner(lambda config: float(limit_passed.wait(30)) + 1.0)
    runner.submit(Job("late", Config({}), timeout_s=1e-6))
    limit_passed.set()
    for thread in threading.enumerate():
        if thread.name == "luthier-late":
            thread.join(30)
    assert isinstance(collect(runner, ["late"])["late"].problem, TimedOut)


def test_the_function_cannot_reach_our_configuration() -> None:
    def function(config: Config) -> float:
        config._values["x"] = 99
        return 1.0

    config = Config({"x": 1})
    runner = FunctionRunner(function)
    runner.submit(Job("k", config))
    collect(runner, ["k"])
    assert config == {"x": 1}


def test_the_clock_dates_the_start() -> None:
    runner = FunctionRunner(lambda config: 1.0, clock=lambda: 1234.5)
    runner.submit(Job("k", Config({})))
    execution = collect(runner, ["k"])["k"]
    assert execution.started_at == 1234.5
    assert execution.metrics == {"wall_s": execution.duration_s}
