"""The promises of a `Runner` as tests, for every runner of luthier's and of others.

Derive a class whose name starts with `Test` from `RunnerContract` and give it a pytest fixture `stage`.
"""

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from luthier.errors import InvalidInputError, UnavailableError
from luthier.runners.base import BatchRunner, Runner
from luthier.trial import Config, Execution, Failed, Job, Lost, Pruned, TimedOut

Behaviour: TypeAlias = Literal["finish", "fail", "wait", "hang"]
"""What a job does: end well immediately, fail immediately, end well when let go, never end."""


class Stage(Protocol):
    """What the tests need to know of the runner under test."""

    def runner(self, slots: int) -> Runner:
        """Make a runner whose jobs behave as the entry `behaviour` of their configuration tells."""
        ...

    def let_go(self) -> None:
        """Let the jobs that wait end; in virtual time they may end by themselves, long after the others."""
        ...

    def starts(self, number: int) -> int:
        """How often a job with this `number` in its configuration was really started."""
        ...


def job(key: str, behaviour: Behaviour, *, number: int = 0, timeout_s: float | None = None) -> Job:
    """Make a job that behaves as told."""
    return Job(key, Config({"behaviour": behaviour, "number": number}), timeout_s)


def collect(runner: Runner, keys: Sequence[str], *, wait_s: float = 10.0, polls: int = 20) -> dict[str, Execution]:
    """Poll until all the named jobs were reported, each once."""
    reported: dict[str, Execution] = {}
    for _ in range(polls):
        for execution in runner.poll(keys, wait_s):
            assert execution.key in keys, f"{execution.key} was not asked for"
            assert execution.key not in reported, f"{execution.key} was reported twice"
            reported[execution.key] = execution
        if len(reported) == len(set(keys)):
            return reported
    raise AssertionError(f"never reported: {set(keys) - reported.keys()}")


class RunnerContract:
    """Every runner passes these."""

    def test_reports_each_job_exactly_once(self, stage: Stage) -> None:
        """All jobs come back, and then nothing more does."""
        runner = stage.runner(slots=3)
        keys = ["a", "b", "c"]
        for number, key in enumerate(keys):
            runner.submit(job(key, "finish", number=number))
        reported = collect(runner, keys)
        assert all(execution.problem is None for execution in reported.values())
        assert all(execution.duration_s >= 0 for execution in reported.values())
        assert not runner.poll(keys, 0)

    def test_a_slot_is_free_after_the_report(self, stage: Stage) -> None:
        """One slot runs any number of jobs, one after the other."""
        runner = stage.runner(slots=1)
        for number, behaviour in enumerate(_AT_ONCE):
            runner.submit(job(f"job{number}", behaviour, number=number))
            collect(runner, [f"job{number}"])

    def test_refuses_more_jobs_than_slots(self, stage: Stage) -> None:
        """A job too many is refused, is not started, and can be submitted later."""
        runner = stage.runner(slots=1)
        runner.submit(job("first", "wait", number=1))
        try:
            runner.submit(job("second", "finish", number=2))
        except UnavailableError:
            pass
        else:
            raise AssertionError("two jobs in one slot")
        stage.let_go()
        collect(runner, ["first"])
        assert stage.starts(2) == 0
        runner.submit(job("second", "finish", number=2))
        collect(runner, ["second"])

    def test_refuses_less_than_one_slot(self, stage: Stage) -> None:
        """A runner without slots would never run anything."""
        for slots in (0, -1):
            try:
                stage.runner(slots=slots)
            except InvalidInputError:
                continue
            raise AssertionError(f"{slots} slots were accepted")

    def test_tells_failures(self, stage: Stage) -> None:
        """A failed job has a reason and no value, and leaves others alone."""
        runner = stage.runner(slots=2)
        runner.submit(job("bad", "fail", number=1))
        runner.submit(job("good", "finish", number=2))
        reported = collect(runner, ["bad", "good"])
        problem = reported["bad"].problem
        assert isinstance(problem, Failed)
        assert problem.reason
        assert reported["bad"].value is None
        assert reported["good"].problem is None

    def test_results_come_out_of_order(self, stage: Stage) -> None:
        """A long job does not hold up the report of a short one submitted after it."""
        runner = stage.runner(slots=2)
        runner.submit(job("long", "wait", number=1))
        runner.submit(job("short", "finish", number=2))
        assert [execution.key for execution in _first_report(runner, ["long", "short"])] == ["short"]
        stage.let_go()
        assert collect(runner, ["long"])["long"].problem is None

    def test_reports_only_what_was_asked_for(self, stage: Stage) -> None:
        """A job that ended is kept until it is asked for."""
        runner = stage.runner(slots=2)
        runner.submit(job("asked", "finish", number=1))
        runner.submit(job("kept", "finish", number=2))
        collect(runner, ["asked"])
        collect(runner, ["kept"])

    def test_unknown_keys_are_ignored(self, stage: Stage) -> None:
        """A poll does not wait for a job that was not submitted."""
        runner = stage.runner(slots=1)
        assert not runner.poll(["nobody"], 1.0)
        assert not runner.poll([], 0)
        runner.cancel(["nobody"])

    def test_a_name_given_twice_is_reported_once(self, stage: Stage) -> None:
        """A name may stand twice in a poll."""
        runner = stage.runner(slots=1)
        runner.submit(job("twin", "finish"))
        assert [execution.key for execution in _first_report(runner, ["twin", "twin"])] == ["twin"]

    def test_poll_without_waiting_returns(self, stage: Stage) -> None:
        """A running job is not reported, and not waited for."""
        runner = stage.runner(slots=1)
        runner.submit(job("hanging", "hang"))
        assert not runner.poll(["hanging"], 0)
        runner.cancel(["hanging"])
        collect(runner, ["hanging"])

    def test_cancelled_jobs_are_pruned(self, stage: Stage) -> None:
        """A cancelled job is reported once, as pruned, however often it is cancelled; others go on."""
        runner = stage.runner(slots=2)
        runner.submit(job("cancelled", "hang", number=1))
        runner.submit(job("other", "wait", number=2))
        runner.cancel(["cancelled"])
        runner.cancel(["cancelled"])
        assert isinstance(collect(runner, ["cancelled"])["cancelled"].problem, Pruned)
        assert not runner.poll(["cancelled"], 0)
        stage.let_go()
        assert collect(runner, ["other"])["other"].problem is None

    def test_to_cancel_what_has_ended_is_harmless(self, stage: Stage) -> None:
        """A cancel that comes too late changes nothing."""
        runner = stage.runner(slots=1)
        runner.submit(job("ended", "finish"))
        assert collect(runner, ["ended"])["ended"].problem is None
        runner.cancel(["ended"])
        assert not runner.poll(["ended"], 0)

    def test_time_limits_hold(self, stage: Stage) -> None:
        """A job that never ends is stopped at its time limit; one that ends in time is not affected."""
        runner = stage.runner(slots=2)
        runner.submit(job("late", "hang", number=1, timeout_s=0.2))
        runner.submit(job("early", "finish", number=2, timeout_s=3600.0))
        reported = collect(runner, ["late", "early"])
        assert isinstance(reported["late"].problem, TimedOut)
        assert reported["late"].duration_s >= 0.2
        assert reported["early"].problem is None

    def test_tells_when_a_running_job_began(self, stage: Stage) -> None:
        """The start of a running job is known, that of others is not."""
        runner = stage.runner(slots=1)
        assert runner.started_at("running") is None
        runner.submit(job("running", "wait", number=1))
        for _ in range(300):
            assert not runner.poll(["running"], 0.1)
            began_at = runner.started_at("running")
            if began_at is not None:
                break
        else:
            raise AssertionError("a running job has no start")
        assert runner.started_at("nobody") is None
        stage.let_go()
        execution = collect(runner, ["running"])["running"]
        assert began_at <= execution.started_at + execution.duration_s
        assert runner.started_at("running") is None

    def test_a_batch_runner_knows_the_job_of_a_run_until_it_is_reported(self, stage: Stage) -> None:
        """Its number, which the report has too; a runner without a queue has no numbers."""
        runner = stage.runner(slots=1)
        runner.submit(job("k", "wait", number=1))
        numbers: set[str | None] = set()
        if isinstance(runner, BatchRunner):
            assert runner.batch_job("nobody") is None
            for _ in range(300):
                assert not runner.poll(["k"], 0.1)
                under_way = runner.batch_job("k")
                assert under_way is not None
                if under_way.began_at is not None and under_way.number:
                    numbers.add(under_way.number)
                    break
        stage.let_go()
        numbers.add(collect(runner, ["k"])["k"].batch_job)
        assert len(numbers) == 1
        assert (numbers == {None}) != isinstance(runner, BatchRunner)
        if isinstance(runner, BatchRunner):
            assert runner.batch_job("k") is None

    def test_a_key_runs_at_most_once(self, stage: Stage) -> None:
        """A key submitted again is the same run, under way or reported."""
        runner = stage.runner(slots=1)
        for _ in range(2):
            runner.submit(job("same", "wait", number=7))
        stage.let_go()
        first = collect(runner, ["same"])
        runner.submit(job("same", "wait", number=7))
        assert collect(runner, ["same"]) == first
        assert stage.starts(7) == 1

    def test_a_key_of_another_configuration_is_not_adopted(self, stage: Stage) -> None:
        """A result is never reported for another configuration than the one that gave it."""
        runner = stage.runner(slots=1)
        runner.submit(job("same", "finish", number=1))
        first = collect(runner, ["same"])
        runner.submit(job("same", "finish", number=2))
        runner.cancel(["same"])
        lost = collect(runner, ["same"])["same"]
        assert isinstance(lost.problem, Lost)
        assert "another configuration" in lost.problem.reason
        assert lost.value is None
        assert not lost.metrics
        assert stage.starts(2) == 0
        runner.submit(job("same", "finish", number=1))
        assert collect(runner, ["same"]) == first

    def test_a_later_runner_adopts_nothing_of_another_configuration(self, stage: Stage) -> None:
        """Where runs outlive their parent, one that is under way or over is adopted for its own configuration only."""
        parent = stage.runner(slots=2)
        parent.submit(job("over", "finish", number=1))
        collect(parent, ["over"])
        parent.submit(job("going", "wait", number=2))
        child = stage.runner(slots=2)
        child.submit(job("over", "finish", number=3))
        child.submit(job("going", "finish", number=4))
        reported = collect(child, ["over", "going"])
        for number, execution in ((3, reported["over"]), (4, reported["going"])):
            if isinstance(execution.problem, Lost):
                assert stage.starts(number) == 0
            else:
                assert stage.starts(number) == 1, "the result is another configuration's"
        stage.let_go()
        assert collect(parent, ["going"])["going"].problem is None, "a run that is not its own was disturbed"


_AT_ONCE: tuple[Behaviour, ...] = ("finish", "fail", "finish")


def _first_report(runner: Runner, keys: Sequence[str]) -> Sequence[Execution]:
    for _ in range(20):
        ended = runner.poll(keys, 10.0)
        if ended:
            return ended
    raise AssertionError(f"none was reported: {keys}")
