"""The loop with a scripted runner and a virtual clock."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
from tests.replayed import replayed

from luthier.engine.interrupts import Interrupts
from luthier.engine.ledger import Ledger
from luthier.engine.loop import Loop, Machinery, Situation, WorkTime
from luthier.engine.plan import Plan
from luthier.engine.session import plan_of
from luthier.errors import InUseError, UnavailableError
from luthier.measures.registry import measures_from
from luthier.result.result import Result
from luthier.runners.replay import ReplayedRun, ReplayRunner
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.spec.rules import prune_from
from luthier.store import open_store
from luthier.store.base import Record, Store
from luthier.store.ownership import claim, this_process
from luthier.trial import BatchJob, Completed, Config, Execution, Failed, Job, Lost, Pruned, TimedOut

SPACE = Space(Integer("x", 1, 40, default=40))
Answers = Callable[[Config, int, float], ReplayedRun]


def steady(config: Config, repeat: int, now_s: float) -> ReplayedRun:
    return ReplayedRun(float(config["x"]), float(config["x"]))


def work(experiment: Experiment, answers: Answers = steady, store: Store | None = None) -> tuple[Store, Record, Result]:
    store = store or open_store("memory:")
    record = store.create("test", experiment.to_json(), 0.0)
    runner = ReplayRunner(answers, slots=experiment.slots)
    record, result = replayed(store, record, experiment, runner)
    return store, record, result


def test_an_experiment_ends_with_everything_in_the_store() -> None:
    store, record, result = work(Experiment(space=SPACE, budget=30, objectives=(Objective("returned"),)))
    assert record.status == "finished"
    assert record.owner is None
    assert tuple(store.runs(record.id)) == result.runs
    assert result.best.config == {"x": 1}
    assert record.result is not None
    assert record.result["best"] == {"x": 1}
    orders = [run.submit_order for run in result.runs] + [run.finish_order for run in result.runs]
    assert sorted(order for order in orders if order is not None) == list(range(2 * len(result.runs)))


def test_slots_overlap_and_the_time_is_shared() -> None:
    longest = {}
    for slots in (1, 4):
        experiment = Experiment(
            space=SPACE, budget=24, objectives=(Objective("returned"),), slots=slots, verify_pairs=0
        )
        _, _, result = work(experiment)
        longest[slots] = max((run.started_at or 0.0) + (run.duration_s or 0.0) for run in result.runs)
    assert longest[4] < longest[1] / 2


def test_rules_know_what_each_run_cost() -> None:
    """Seconds of runs that have ended, failed ones too; None while a run is under way."""
    experiment = Experiment(
        space=SPACE, budget=12, objectives=(Objective("returned"),), slots=3, verify_pairs=0, resample="once"
    )
    store = open_store("memory:")
    record = store.create("test", experiment.to_json(), 0.0)
    seen: list[tuple[list[float | None], list[float | None], float]] = []

    def watch(plan: Plan, now: Situation) -> None:
        progress = plan.progress(0.0)
        assert len(progress.costs_s) == len(progress.steps)
        seen.append((list(progress.costs_s), [run.duration_s for run in plan.runs], progress.cost_s))

    def answers(config: Config, repeat: int, now_s: float) -> ReplayedRun:
        answer = steady(config, repeat, now_s)
        return ReplayedRun(answer.duration_s, Failed("odd")) if int(config["x"]) % 2 else answer

    _, result = replayed(store, record, experiment, ReplayRunner(answers, slots=3), watch)
    assert all(costs == durations for costs, durations, _ in seen)
    assert any(None in costs for costs, _, _ in seen)
    assert any(isinstance(run.outcome, Failed) for run in result.runs)
    assert seen[-1][2] == pytest.approx(result.cost_s)


def test_a_run_beyond_the_default_is_pruned_with_its_bound() -> None:
    def answers(config: Config, repeat: int, now_s: float) -> ReplayedRun:
        time_s = 10.0 + 5.0 * abs(int(config["x"]) - 40)
        return ReplayedRun(time_s, time_s)

    space = Space(Integer("x", 38, 42, default=40))
    _, _, result = work(Experiment(space=space, budget=5, verify_pairs=0, prune="default"), answers)
    outcomes = [run.outcome for run in result.runs[1:]]
    assert all(isinstance(outcome, Pruned) for outcome in outcomes)
    bounds = [outcome.at_least for outcome in outcomes if isinstance(outcome, Pruned)]
    assert all(bound is not None and 10.0 < bound < 10.5 for bound in bounds)
    assert result.best.config == {"x": 40}


def slow_when_far(config: Config, repeat: int, now_s: float) -> ReplayedRun:
    """From 10 s in the middle, 2 s more for every step away; every fourth run takes a tenth longer."""
    time_s = (10.0 + 2.0 * abs(int(config["x"]) - 20)) * (1.1 if int(now_s) % 4 == 0 else 1.0)
    return ReplayedRun(time_s, time_s)


@pytest.mark.parametrize("prune", ["median", "mean", "q75", "chance", 20.0])
def test_no_rule_prunes_the_default_the_best_or_a_repeat(prune: str | float) -> None:
    experiment = Experiment(space=SPACE, budget=60, prune=prune, optimizer="random", seed=1)
    _, record, result = work(experiment, slow_when_far)
    pruned = [run for run in result.runs if isinstance(run.outcome, Pruned)]
    assert pruned, "or the test shows nothing"
    assert {run.purpose for run in pruned} == {"search"}
    assert all(len(result.trials[run.trial].outcomes) == 1 for run in pruned)
    if prune != 20.0:
        assert min(run.trial for run in pruned) > 6, "initial draws finish"
    for run in pruned:
        assert isinstance(run.outcome, Pruned)
        assert run.outcome.at_least is not None
        assert run.outcome.at_least <= (run.duration_s or 0.0) < 1.1 * (10.0 + 2.0 * abs(int(run.config["x"]) - 20))
    assert abs(int(result.best.config["x"]) - 20) <= 1
    assert record.status == "finished"


def test_pruning_saves_time_and_finds_the_same() -> None:
    spent = {}
    for prune in (None, "chance"):
        experiment = Experiment(space=SPACE, budget=60, prune=prune, optimizer="random", seed=1, verify_pairs=0)
        _, _, result = work(experiment, slow_when_far)
        spent[prune] = result.cost_s
        assert result.best.config == {"x": 20}
    assert spent["chance"] < 0.8 * spent[None]


class Queue(ReplayRunner):
    """A cluster where every job waits for 100 s before it starts."""

    wait_s = 100.0

    def __init__(self, answers: Answers, slots: int = 1) -> None:
        super().__init__(lambda config, repeat, now_s: self._later(answers(config, repeat, now_s)), slots=slots)
        self._submitted: dict[str, float] = {}

    def submit(self, job: Job) -> None:
        self._submitted.setdefault(job.key, self.now)
        super().submit(job)

    def started_at(self, key: str) -> float | None:
        starts = self._submitted[key] + self.wait_s
        return starts if self.now >= starts else None

    def _later(self, answer: ReplayedRun) -> ReplayedRun:
        return ReplayedRun(answer.duration_s + self.wait_s, answer.result)


def test_time_in_the_queue_is_no_run_time() -> None:
    store = open_store("memory:")
    experiment = Experiment(
        space=SPACE, budget=20, objectives=(Objective("returned"),), prune=30.0, optimizer="random", verify_pairs=0
    )
    record = store.create("test", experiment.to_json(), 0.0)
    _, result = replayed(store, record, experiment, Queue(steady))
    assert {type(run.outcome) for run in result.runs} == {Completed, Pruned}
    for run in result.runs[1:]:
        assert isinstance(run.outcome, Pruned) == (int(run.config["x"]) > 30)
        assert getattr(run.outcome, "at_least", None) is None, "seconds are no bound of what the function returns"


class BatchQueue(Queue):
    """A cluster that says what its jobs wait for."""

    def batch_job(self, key: str) -> BatchJob | None:
        began_at = self.started_at(key)
        number = str(list(self._submitted).index(key))
        return (
            BatchJob(number, "PENDING", "Resources") if began_at is None else BatchJob(number, "RUNNING", "", began_at)
        )

    def poll(self, many: Sequence[str], wait_s: float) -> Sequence[Execution]:
        return [
            replace(
                execution,
                started_at=execution.started_at + self.wait_s,
                duration_s=execution.duration_s - self.wait_s,
                batch_job=str(list(self._submitted).index(execution.key)),
            )
            for execution in super().poll(many, wait_s)
        ]


LIMITED = Experiment(
    space=SPACE,
    budget=100,
    objectives=(Objective("returned"),),
    optimizer="random",
    resample="once",
    verify_pairs=0,
    time_limit_s=200.0,
)


def test_the_time_limit_does_not_count_the_queue() -> None:
    """It ends the search after as much run time as without a queue; in between nothing is forgotten."""
    store = open_store("memory:")
    record = store.create("test", LIMITED.to_json(), 0.0)
    seen: list[Situation] = []
    _, result = replayed(store, record, LIMITED, BatchQueue(steady), lambda plan, now: seen.append(now))
    spent = [run.duration_s or 0.0 for run in result.runs]
    assert sum(spent) >= 200.0 > sum(spent[:-1]) - len(spent) * 0.5, "half a second of doubt for each wait"
    assert len(spent) > 5
    _, _, without_queue = work(LIMITED)
    assert [run.config for run in result.runs] == [run.config for run in without_queue.runs]
    assert {now.jobs[0].text for now in seen if 0 in now.jobs} == {"job 0 PENDING (Resources)", "job 0 RUNNING"}
    elapsed = [now.elapsed_s for now in seen]
    assert elapsed == sorted(elapsed)
    assert [run.batch_job for run in result.runs] == [str(number) for number in range(len(spent))]


def test_runs_beside_a_waiting_one_count() -> None:
    """With two slots the clock stands still only while both runs wait."""
    store = open_store("memory:")
    experiment = replace(LIMITED, slots=2)
    record = store.create("test", experiment.to_json(), 0.0)
    _, result = replayed(store, record, experiment, BatchQueue(steady, slots=2))
    spans = sorted((run.started_at or 0.0, (run.started_at or 0.0) + (run.duration_s or 0.0)) for run in result.runs)
    busy_s, until = 0.0, 0.0
    for begin, end in spans:
        busy_s += max(end - max(begin, until), 0.0)
        until = max(until, end)
    longest_s = 40.0  # one more run may begin just before the limit, in each slot
    assert 200.0 - 0.5 * len(spans) <= busy_s <= 200.0 + 2 * longest_s + 0.5 * len(spans)


def test_work_time_stands_still_while_all_runs_wait() -> None:
    time = WorkTime(100.0, 5.0)
    time.note(110.0, [None, None])
    assert time.elapsed_s(130.0) == 15.0
    time.note(130.0, [None])
    time.note(150.0, [140.0, None])  # seen ten seconds after it began
    assert time.elapsed_s(150.0) == 25.0
    time.note(160.0, [140.0])
    time.note(170.0, [])
    assert time.elapsed_s(170.0) == 45.0
    time.note(170.0, [None])
    time.note(180.0, [90.0])  # a clock that was set back
    assert time.elapsed_s(180.0) == 55.0


def test_what_jobs_wait_for_is_in_the_store_while_they_do() -> None:
    store = open_store("memory:")
    record = store.create("test", LIMITED.to_json(), 0.0)
    seen: set[str] = set()

    def look(plan: Plan, now: Situation) -> None:
        seen.update(job.text for job in store.experiment(record.id).jobs.values())

    ended, _ = replayed(store, record, LIMITED, BatchQueue(steady), look)
    assert {"job 0 PENDING (Resources)", "job 0 RUNNING", "job 1 PENDING (Resources)"} <= seen
    assert ended.jobs == {}


def test_the_time_a_run_takes_to_die_is_no_bound() -> None:
    class Stubborn(ReplayRunner):
        """Jobs that go on for 100 s after they were cancelled."""

        def poll(self, many: Sequence[str], wait_s: float) -> Sequence[Execution]:
            ended = super().poll(many, wait_s)
            return [
                replace(execution, duration_s=execution.duration_s + 100.0, metrics={"wall_s": 120.0})
                if isinstance(execution.problem, Pruned)
                else execution
                for execution in ended
            ]

    store = open_store("memory:")
    experiment = Experiment(space=SPACE, budget=20, prune=30.0, optimizer="random", verify_pairs=0)
    record = store.create("test", experiment.to_json(), 0.0)
    _, result = replayed(store, record, experiment, Stubborn(steady))
    bounds = [run.outcome.at_least for run in result.runs if isinstance(run.outcome, Pruned)]
    assert bounds
    assert all(bound is not None and 30.0 < bound < 31.0 for bound in bounds)


def test_a_search_ends_when_going_on_does_not_pay() -> None:
    ran = {}
    for production_runs in (1, 10**9):
        stop = (f"gain < cost for {production_runs} runs",)
        _, record, result = work(Experiment(space=SPACE, budget=39, stop=stop, optimizer="random"))
        assert record.result is not None
        ran[production_runs] = (len(result.trials), str(record.result["ending"]))
    assert ran[1][0] < ran[10**9][0]
    assert "costs" in ran[1][1]
    assert "budget" in ran[10**9][1]


def test_a_run_that_hangs_is_timed_out() -> None:
    def answers(config: Config, repeat: int, now_s: float) -> ReplayedRun:
        return ReplayedRun(math.inf if int(config["x"]) % 2 else 1.0, 1.0)

    _, _, result = work(Experiment(space=SPACE, budget=20, timeout_s=30.0), answers)
    kinds = {type(run.outcome) for run in result.runs}
    assert kinds == {Completed, TimedOut}


def test_the_time_limit_ends_the_search() -> None:
    _, record, result = work(
        Experiment(space=SPACE, budget=1000, time_limit_s=100.0, verify_pairs=0, objectives=(Objective("returned"),))
    )
    spent = sum(run.duration_s or 0.0 for run in result.runs[:-1])
    assert spent < 100.0
    assert record.status == "finished"


def test_a_request_to_stop_lets_running_ones_finish_and_resume_goes_on() -> None:
    store = open_store("memory:")
    experiment = Experiment(space=SPACE, budget=30, objectives=(Objective("returned"),), slots=2, seed=4)
    record = store.create("test", experiment.to_json(), 0.0)

    def answers(config: Config, repeat: int, now_s: float) -> ReplayedRun:
        if now_s > 100.0 and not store.experiment(record.id).result:
            store.request_stop(record.id)
        return steady(config, repeat, now_s)

    runner = ReplayRunner(answers, slots=2)
    stopped, before = replayed(store, record, experiment, runner)
    assert stopped.status == "stopped"
    assert not stopped.stop_requested
    assert all(run.outcome is not None for run in before.runs)
    assert len(before.runs) < 30
    finished, after = replayed(store, stopped, experiment, runner)
    assert finished.status == "finished"
    assert after.runs[: len(before.runs)] == before.runs


def test_a_request_to_stop_takes_waiting_jobs_out_of_the_queue() -> None:
    store = open_store("memory:")
    experiment = Experiment(
        space=SPACE, budget=12, objectives=(Objective("returned"),), optimizer="random", verify_pairs=0
    )
    record = store.create("test", experiment.to_json(), 0.0)

    def answers(config: Config, repeat: int, now_s: float) -> ReplayedRun:
        if now_s > 300.0 and not store.experiment(record.id).result:
            store.request_stop(record.id)
        return steady(config, repeat, now_s)

    queue = Queue(answers)
    stopped, before = replayed(store, record, experiment, queue)
    assert stopped.status == "stopped"
    last = before.runs[-1]
    assert last.outcome == Lost("stopped before it began")
    assert last.duration_s is not None
    assert last.duration_s < Queue.wait_s
    finished, after = replayed(store, stopped, experiment, queue)
    assert finished.status == "finished"
    assert any(run.config == last.config and isinstance(run.outcome, Completed) for run in after.runs)


@dataclass
class CrashError(Exception):
    pass


@pytest.mark.parametrize("at", range(1, 60, 4))
def test_whatever_kills_the_process_resume_makes_the_same_history(at: int) -> None:
    experiment = Experiment(space=SPACE, budget=30, objectives=(Objective("returned"),), seed=2)
    _, _, undisturbed = work(experiment)
    store = open_store("memory:")
    record = store.create("test", experiment.to_json(), 0.0)
    runner = ReplayRunner(steady)
    calls = 0

    def watch(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise CrashError

    with pytest.raises(CrashError):
        replayed(store, record, experiment, runner, watch=watch)
    _, result = replayed(store, store.experiment(record.id), experiment, runner)
    assert [(run.config, run.outcome, run.purpose) for run in result.runs] == [
        (run.config, run.outcome, run.purpose) for run in undisturbed.runs
    ]


def test_a_second_worker_is_turned_away() -> None:
    store = open_store("memory:")
    record = store.create("test", Experiment(space=SPACE).to_json(), 0.0)
    claim(store, record)
    with pytest.raises(InUseError, match="is in use by process"):
        claim(store, store.experiment(record.id))
    with pytest.raises(InUseError, match="was just claimed"):
        claim(store, record)


def test_a_dead_owner_is_replaced() -> None:
    store = open_store("memory:")
    record = store.create("test", Experiment(space=SPACE).to_json(), 0.0)
    dead = replace(this_process(), started="long ago")
    assert store.claim(record.id, dead, 0.0, None)
    assert replace(claim(store, store.experiment(record.id)), claim="") == this_process()


def test_a_runner_that_cannot_start_ends_the_experiment_but_loses_nothing() -> None:
    class FullDisk(ReplayRunner):
        full = True

        def submit(self, job: Job) -> None:
            if self.full and job.key.split("-")[1] == "5":
                raise UnavailableError("no space left on device")
            super().submit(job)

    store = open_store("memory:")
    experiment = Experiment(space=SPACE, budget=30, objectives=(Objective("returned"),))
    record = store.create("test", experiment.to_json(), 0.0)
    runner = FullDisk(steady)
    with pytest.raises(UnavailableError):
        replayed(store, record, experiment, runner)
    failed = store.experiment(record.id)
    assert failed.status == "failed"
    runner.full = False
    _, result = replayed(store, failed, experiment, runner)
    assert [run.number for run in result.runs] == list(range(len(result.runs)))
    assert all(isinstance(run.outcome, Completed) for run in result.runs)


def test_a_lost_run_is_tried_again() -> None:
    seen: dict[Config, int] = {}

    def answers(config: Config, repeat: int, now_s: float) -> ReplayedRun:
        seen[config] = seen.get(config, 0) + 1
        return (
            ReplayedRun(1.0, Lost("gone")) if seen[config] == 1 and config["x"] == 40 else steady(config, repeat, now_s)
        )

    _, _, result = work(Experiment(space=SPACE, budget=20, objectives=(Objective("returned"),)), answers)
    assert [run.trial for run in result.runs[:2]] == [0, 0]
    assert isinstance(result.runs[1].outcome, Completed)


def test_values_of_extreme_ratio_can_be_stored() -> None:
    def answers(config: Config, repeat: int, now_s: float) -> ReplayedRun:
        return ReplayedRun(1.0, 1e300 if config["x"] == 40 else 1e-300 * (1 + repeat))

    _, record, result = work(Experiment(space=SPACE, budget=20, objectives=(Objective("returned"),)), answers)
    assert record.status == "finished"
    assert result.best.config != SPACE.default


def test_a_request_to_kill_ends_what_is_running() -> None:
    store = open_store("memory:")
    experiment = Experiment(space=SPACE, budget=30, objectives=(Objective("returned"),), slots=2, seed=4)
    record = store.create("test", experiment.to_json(), 0.0)

    def answers(config: Config, repeat: int, now_s: float) -> ReplayedRun:
        if now_s > 100.0 and not store.experiment(record.id).result:
            store.request_stop(record.id, "kill")
            return ReplayedRun(1e9, 1.0)  # it hangs
        return steady(config, repeat, now_s)

    runner = ReplayRunner(answers, slots=2)
    stopped, before = replayed(store, record, experiment, runner)
    assert stopped.status == "stopped"
    assert stopped.stop_requested is None
    killed = [run for run in before.runs if isinstance(run.outcome, Lost)]
    assert 1 <= len(killed) <= 2
    assert all((run.duration_s or 0.0) < 60.0 for run in killed)


@dataclass
class SteppedClock:
    """A wall clock that somebody sets forward or back by an hour while runs are under way."""

    runner: ReplayRunner
    step_s: float

    def __call__(self) -> float:
        now = self.runner.clock()
        return now + (self.step_s if now > 45.0 else 0.0)


@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_a_clock_that_is_set_changes_nothing(step_s: float) -> None:
    """Neither pruning nor the time limit nor a request to stop goes by it."""
    experiment = Experiment(
        space=SPACE, budget=12, prune="default", time_limit_s=1000.0, optimizer="random", verify_pairs=0
    )
    histories = []
    for step in (0.0, step_s):
        store = open_store("memory:")
        record = store.create("test", experiment.to_json(), 0.0)
        runner = ReplayRunner(steady)
        plan = plan_of(experiment)
        prune = prune_from(experiment.prune)
        machinery = Machinery(runner, measures_from(["wall"]), prune, SteppedClock(runner, step), runner.clock)
        with Ledger(store, record, claim(store, record)) as ledger:
            assert Loop(plan, machinery, ledger).run(Interrupts())
        histories.append([(run.config, run.outcome) for run in plan.runs])
    assert histories[0] == histories[1]
    assert len(histories[0]) == 12
