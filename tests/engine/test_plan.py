"""The plan alone: orders, budget, resampling, losses, verification, replay."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from luthier.engine.plan import Order, Plan
from luthier.engine.result import Result, conclude
from luthier.optimizers import make_optimizer
from luthier.policies import any_of, no_improvement, static
from luthier.space import Choice, Integer, Space
from luthier.spec import Experiment
from luthier.trial import Completed, Config, Failed, Lost, Outcome, Pruned, Run

SPACE = Space(Integer("x", 0, 30, default=30), Choice("mode", ["slow", "fast"]))

Answer = Callable[[Config, int], Outcome]


def bowl(config: Config, number: int) -> Outcome:
    return Completed(float((int(config["x"]) - 7) ** 2 + (config["mode"] == "slow") * 5 + 1))


def plan_of(experiment: Experiment) -> Plan:
    optimizer = make_optimizer(experiment.optimizer, experiment.space, seed=experiment.seed, budget=experiment.budget)
    stop = any_of(*([no_improvement(experiment.patience)] if experiment.patience else []))
    return Plan(experiment, optimizer, stop=stop, resample=static(experiment.repeats))


def submit(plan: Plan, order: Order) -> Run:
    run = Run(len(plan.runs), order.trial, order.purpose, order.config, 0.0, plan.events)
    plan.submitted(run)
    return run


def finish(plan: Plan, run: Run, outcome: Outcome) -> Run:
    ended = replace(run, outcome=outcome, finish_order=plan.events, duration_s=1.0)
    plan.finished(ended)
    return ended


def play(plan: Plan, answer: Answer, most: int = 1000) -> Result:
    """Run one at a time until the plan ends or `most` more runs were made."""
    for _ in range(most):
        order = plan.next(0.0)
        if order is None:
            break
        run = submit(plan, order)
        finish(plan, run, answer(run.config, run.number))
    return conclude(plan.experiment, plan.runs)


def test_the_default_runs_first_and_the_optimum_wins() -> None:
    result = play(plan_of(Experiment(space=SPACE, budget=50)), bowl)
    assert result.runs[0].purpose == "default"
    assert result.runs[0].config == SPACE.default
    assert result.best.config == {"x": 7, "mode": "fast"}
    assert result.improved
    assert result.speedup == pytest.approx((23**2 + 6) / 1)


@pytest.mark.parametrize("budget", [1, 2, 6, 7, 12, 33])
@pytest.mark.parametrize("repeats", [1, 3])
def test_the_budget_counts_every_run_and_is_never_passed(budget: int, repeats: int) -> None:
    noisy = lambda config, number: Completed(100.0 + number % 7)
    result = play(plan_of(Experiment(space=SPACE, budget=budget, repeats=repeats)), noisy)
    assert 1 <= len(result.runs) <= budget
    if budget <= 6:
        assert len(result.runs) == budget


def test_workers_share_one_budget() -> None:
    plan = plan_of(Experiment(space=SPACE, budget=20, workers=4, verify_pairs=0))
    running: list[Run] = []
    while True:
        while len(running) < 4 and (order := plan.next(0.0)) is not None:
            running.append(submit(plan, order))
        if not running:
            break
        run = running.pop()
        finish(plan, run, bowl(run.config, run.number))
    assert len(plan.runs) == 20
    assert len({run.config for run in plan.runs}) == 20


def test_repeats_run_each_configuration_exactly_so_often() -> None:
    result = play(plan_of(Experiment(space=SPACE, budget=30, repeats=3, verify_pairs=0)), bowl)
    assert {len(trial.outcomes) for trial in result.trials} == {3}


def test_a_failed_configuration_is_not_run_again() -> None:
    def answer(config: Config, number: int) -> Outcome:
        return Failed("no") if config["mode"] == "fast" else bowl(config, number)

    result = play(plan_of(Experiment(space=SPACE, budget=30, repeats=3, verify_pairs=0)), answer)
    assert all(len(trial.outcomes) == 1 for trial in result.trials if trial.config["mode"] == "fast")
    assert result.best.config["mode"] == "slow"


def test_a_lost_run_is_made_again_but_not_for_ever() -> None:
    def answer(config: Config, number: int) -> Outcome:
        return Lost("node died")

    result = play(plan_of(Experiment(space=SPACE, budget=12, verify_pairs=0)), answer)
    assert [run.trial for run in result.runs] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert result.winner is None
    assert "node died" in result.verdict


def test_pruned_and_failed_runs_never_win() -> None:
    def answer(config: Config, number: int) -> Outcome:
        if config["x"] == 7:
            return Pruned("too slow", at_least=0.0)
        return bowl(config, number)

    result = play(plan_of(Experiment(space=SPACE, budget=40)), answer)
    assert result.best.config["x"] in (6, 8)


def test_maximize_turns_everything_round() -> None:
    def answer(config: Config, number: int) -> Outcome:
        return Completed(1000.0 - (int(config["x"]) - 7) ** 2)

    result = play(plan_of(Experiment(space=SPACE, budget=40, goal="maximize")), answer)
    assert result.best.config["x"] == 7
    assert result.best.estimate is not None
    assert result.best.estimate.value == 1000.0
    assert result.speedup is not None
    assert result.speedup == pytest.approx(1000.0 / (1000.0 - 23**2))


def test_no_difference_is_said_so() -> None:
    import random

    luck = random.Random(5)
    result = play(plan_of(Experiment(space=SPACE, budget=60)), lambda *_: Completed(luck.gauss(10.0, 1.0)))
    assert not result.improved
    assert result.verdict.startswith("no improvement found")
    assert result.recommended == SPACE.default


def test_the_default_as_the_best_needs_no_verification() -> None:
    best_first = Space(Integer("x", 0, 30))
    result = play(plan_of(Experiment(space=best_first, budget=40)), lambda config, _: Completed(1.0 + int(config["x"])))
    assert result.best.config == {"x": 0}
    assert not any(run.purpose == "verify" for run in result.runs)
    assert result.recommended == best_first.default


def test_a_winner_that_fails_again_is_not_recommended() -> None:
    def answer(config: Config, number: int) -> Outcome:
        return Failed("flaky") if number > 30 and config != SPACE.default else bowl(config, number)

    result = play(plan_of(Experiment(space=SPACE, budget=40)), answer)
    assert not result.improved
    assert result.recommended == SPACE.default
    assert "failed when it was run again" in result.verdict


def test_a_default_that_fails_leaves_nothing_to_compare() -> None:
    def answer(config: Config, number: int) -> Outcome:
        return Failed("no license") if number == 0 else bowl(config, number)

    result = play(plan_of(Experiment(space=SPACE, budget=30)), answer)
    assert result.best.config["mode"] == "fast"
    assert result.recommended == result.best.config
    assert "no license" in result.verdict


def test_a_hopeless_search_is_given_up() -> None:
    plan = plan_of(Experiment(space=SPACE, budget=60))
    result = play(plan, lambda *_: Failed("typo"))
    assert len(result.runs) == 10
    assert plan.ending == "none of the first 10 configurations gave a number"


def test_patience_ends_the_search() -> None:
    plan = plan_of(Experiment(space=SPACE, budget=60, patience=5))
    result = play(plan, lambda *_: Completed(1.0))
    assert len(result.runs) < 12
    assert plan.ending == "no improvement over 5 trials"


def test_verification_interleaves_default_and_winner_one_at_a_time() -> None:
    import random

    luck = random.Random(1)

    def answer(config: Config, number: int) -> Outcome:
        return Completed(10.0 + (config["mode"] == "slow") * 0.5 + luck.gauss(0.0, 1.0))

    plan = plan_of(Experiment(space=SPACE, budget=80, workers=4))
    result = play(plan, answer)
    verified = [run.trial for run in result.runs if run.purpose == "verify"]
    pairs = list(zip(verified[::2], verified[1::2], strict=True))
    assert len(pairs) >= 3
    assert all(0 in pair and pair[0] != pair[1] for pair in pairs)
    assert len({pair[0] for pair in pairs}) == 2, "who goes first is by lot"


@pytest.mark.parametrize("cut", [0, 1, 6, 17, 30, 37])
@pytest.mark.parametrize("optimizer", ["auto", "random", "gp"])
def test_a_replayed_history_goes_on_the_same(cut: int, optimizer: str) -> None:
    experiment = Experiment(space=SPACE, budget=40, optimizer=optimizer, repeats=2, seed=3)
    whole = play(plan_of(experiment), bowl)
    first = plan_of(experiment)
    play(first, bowl, most=cut)
    second = plan_of(experiment)
    second.replay(first.runs)
    assert play(second, bowl).runs == whole.runs


def test_a_replay_keeps_what_was_under_way() -> None:
    experiment = Experiment(space=SPACE, budget=40, workers=3)
    plan = plan_of(experiment)
    runs = [submit(plan, order) for order in _orders(plan, 3)]
    finish(plan, runs[1], bowl(runs[1].config, 1))
    again = plan_of(experiment)
    again.replay(plan.runs)
    assert again.running == plan.running
    assert again.next(0.0) == plan.next(0.0)


def _orders(plan: Plan, count: int) -> Iterator[Order]:
    for _ in range(count):
        order = plan.next(0.0)
        assert order is not None
        yield order
