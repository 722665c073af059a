"""The plan alone: orders, budget, resampling, losses, verification, replay."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from luthier.engine.plan import Order, Plan
from luthier.engine.session import plan_of
from luthier.optimizers import Optimizer, make_optimizer
from luthier.optimizers.registry import optimizer_names
from luthier.policies.base import Progress
from luthier.policies.resample import Static
from luthier.policies.stop import any_of
from luthier.result.result import Result, conclude
from luthier.space import Choice, Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Goal, Objective
from luthier.trial import Completed, Config, Failed, Lost, Outcome, Pruned, Run, TimedOut, Trial

SPACE = Space(Integer("x", 0, 30, default=30), Choice("mode", ["slow", "fast"]))

Answer = Callable[[Config, int], Outcome]


def bowl(config: Config, number: int) -> Outcome:
    return Completed(float((int(config["x"]) - 7) ** 2 + (config["mode"] == "slow") * 5 + 1))


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
        orders = plan.orders(1, 0.0)
        if not orders:
            break
        run = submit(plan, orders[0])
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
@pytest.mark.parametrize("resample", ["once", "static:3", "sedr:1%", "evadyr", "auto"])
def test_the_budget_counts_every_run_and_is_never_passed(budget: int, resample: str) -> None:
    noisy = lambda config, number: Completed(100.0 + number % 7)
    result = play(plan_of(Experiment(space=SPACE, budget=budget, resample=resample)), noisy)
    assert 1 <= len(result.runs) <= budget
    if budget <= 6:
        assert len(result.runs) == budget


def test_workers_share_one_budget() -> None:
    plan = plan_of(Experiment(space=SPACE, budget=20, slots=4, verify_pairs=0, resample="once"))
    running: list[Run] = []
    while True:
        running += [submit(plan, order) for order in plan.orders(4 - len(running), 0.0)]
        if not running:
            break
        run = running.pop()
        finish(plan, run, bowl(run.config, run.number))
    assert len(plan.runs) == 20
    assert len({run.config for run in plan.runs}) == 20


def test_initial_draws_run_once_and_the_rest_as_often_as_was_asked_for() -> None:
    result = play(plan_of(Experiment(space=SPACE, budget=31, resample="static:3", verify_pairs=0)), bowl)
    assert [run.trial for run in result.runs[:4]] == [0, 1, 2, 3], "the default and a tenth of the budget"
    counts = [len(trial.outcomes) for trial in result.trials]
    assert sorted(counts[:4]) == [1, 1, 1, 3], "the best of them is revisited"
    assert set(counts[4:-1]) == {3}
    assert result.repeats == len(result.runs) - len(result.trials)


def test_the_constants_of_a_rule_are_those_that_were_named() -> None:
    result = play(plan_of(Experiment(space=SPACE, budget=31, resample="evadyr:least=4", verify_pairs=0)), bowl)
    assert {len(trial.outcomes) for trial in result.trials[4:-1]} == {4}


@pytest.mark.parametrize("resample", ["static:1000000000000", "evadyr:least=1e12"])
def test_more_repeats_than_anybody_could_make_spend_the_budget_and_no_more(resample: str) -> None:
    result = play(plan_of(Experiment(space=SPACE, budget=31, resample=resample, verify_pairs=0)), bowl)
    assert [run.trial for run in result.runs[:4]] == [0, 1, 2, 3]
    assert len(result.runs) == 31


@pytest.mark.parametrize("resample", ["auto", "auto:doubt=5%"])
def test_the_default_rule_has_nothing_to_repeat_where_there_are_two_objectives(resample: str) -> None:
    two = Experiment(space=SPACE, budget=30, objectives=(Objective("wall"), Objective("memory")), resample=resample)
    result = play(plan_of(two), lambda config, number: Completed(float(number % 7), (float(config["x"]),)))
    assert len({run.trial for run in result.runs}) == len(result.runs) == 30


@pytest.mark.parametrize("resample", ["auto", "auto:doubt=5%"])
def test_runs_that_are_left_go_to_the_best_and_its_rival(resample: str) -> None:
    small = Space(Integer("x", 0, 4))
    noisy = lambda config, number: Completed(10.0 + int(config["x"]) + number % 5)
    result = play(plan_of(Experiment(space=small, budget=30, resample=resample, verify_pairs=0)), noisy)
    assert len(result.runs) > 10


def test_a_failed_configuration_is_not_run_again() -> None:
    def answer(config: Config, number: int) -> Outcome:
        return Failed("no") if config["mode"] == "fast" else bowl(config, number)

    result = play(plan_of(Experiment(space=SPACE, budget=30, resample="static:3", verify_pairs=0)), answer)
    assert all(len(trial.outcomes) == 1 for trial in result.trials if trial.config["mode"] == "fast")
    assert result.best.config["mode"] == "slow"


def test_a_lost_run_is_made_again_but_not_for_ever() -> None:
    def answer(config: Config, number: int) -> Outcome:
        return Lost("node died")

    result = play(plan_of(Experiment(space=SPACE, budget=12, verify_pairs=0)), answer)
    assert [run.trial for run in result.runs] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6]
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

    result = play(plan_of(Experiment(space=SPACE, budget=40, objectives=(Objective("wall", "maximize"),))), answer)
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
    assert result.verdict.startswith("no improvement")
    assert result.recommended == SPACE.default


def test_while_the_default_leads_the_search_goes_on_and_then_its_strongest_rival_is_compared() -> None:
    best_first = Space(Integer("x", 0, 300))
    experiment = Experiment(space=best_first, budget=40)
    result = play(plan_of(experiment), lambda config, _: Completed(1.0 + int(config["x"])))
    assert result.best.config == {"x": 0}
    assert [run.purpose for run in result.runs].count("verify") == 6 < 2 * experiment.reserved_pairs
    assert len(result.runs) == 40
    assert result.recommended == best_first.default
    assert result.challenger is not None
    assert result.verdict.startswith(
        f"no improvement found: the default is 2x faster than x={result.challenger.config['x']}"
    )


def test_a_small_budget_is_not_forfeited_when_the_default_leads() -> None:
    result = play(
        plan_of(Experiment(space=Space(Integer("x", 1, 200)), budget=10)),
        lambda config, _: Completed(float(config["x"])),
    )
    assert len(result.runs) == 10


def test_a_default_that_led_by_luck_is_found_out() -> None:
    """The first run of the default was three times too fast: an accident that must not hide that half is possible."""

    def answer(config: Config, number: int) -> Outcome:
        value = 30.0 if config == SPACE.default else 15.0
        return Completed(10.0 if number == 0 else value * (1.0 + 0.01 * (number % 3)))

    result = play(plan_of(Experiment(space=SPACE, budget=40, resample="once")), answer)
    assert result.improved
    assert result.speedup == pytest.approx(2.0, rel=0.05)


def test_a_configuration_whose_only_run_was_an_accident_gets_a_second_look() -> None:
    levels = Space(Integer("level", 1, 19, default=3))
    seen: list[int] = []

    def answer(config: Config, number: int) -> Outcome:
        level = int(config["level"])
        seen.append(level)
        disturbed = 4.0 if level == 1 and seen.count(1) == 1 else 1.0
        return Completed((0.5 + 0.07 * level) * disturbed * (1.0 + 0.005 * (number % 3)))

    result = play(plan_of(Experiment(space=levels, budget=40)), answer)
    assert result.best.config == {"level": 1}
    assert result.improved


def test_lost_and_interrupted_runs_do_not_use_up_the_budget() -> None:
    def answer(config: Config, number: int) -> Outcome:
        return Lost("killed because the experiment was stopped") if number in (0, 3, 5, 8) else bowl(config, number)

    plan = plan_of(Experiment(space=SPACE, budget=20, resample="once", verify_pairs=0))
    result = play(plan, answer)
    assert (len(result.runs), result.lost, plan.counted) == (24, 4, 20)
    assert len(result.trials) == 20


def test_a_machine_that_loses_every_run_ends_the_experiment() -> None:
    plan = plan_of(Experiment(space=SPACE, budget=30))
    result = play(plan, lambda config, number: Lost("node failed") if number > 3 else bowl(config, number))
    assert result.lost == 30
    assert plan.ending == "30 runs were lost"


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
    assert len(result.runs) == 30, "nothing is kept for a verification"
    assert result.best.config["mode"] == "fast"
    assert result.recommended == result.best.config
    assert "no license" in result.verdict


def test_a_hopeless_search_is_given_up() -> None:
    plan = plan_of(Experiment(space=SPACE, budget=60))
    result = play(plan, lambda *_: Failed("typo"))
    assert len(result.runs) == 10
    assert plan.ending == "none of the first 10 configurations gave a number"


def test_a_criterion_ends_the_search() -> None:
    plan = plan_of(Experiment(space=SPACE, budget=60, stop=("no improvement over 5",), resample="once"))
    result = play(plan, lambda *_: Completed(1.0))
    assert sum(run.purpose != "verify" for run in result.runs) == 6
    assert plan.ending == "no improvement over 5 configurations"


def test_verification_interleaves_default_and_winner_one_at_a_time() -> None:
    import random

    luck = random.Random(1)

    def answer(config: Config, number: int) -> Outcome:
        return Completed(10.0 + (config["mode"] == "slow") * 0.5 + luck.gauss(0.0, 1.0))

    plan = plan_of(Experiment(space=SPACE, budget=80, slots=4))
    result = play(plan, answer)
    verified = [run.trial for run in result.runs if run.purpose == "verify"]
    pairs = list(zip(verified[::2], verified[1::2], strict=True))
    assert len(pairs) >= 3
    assert all(0 in pair and pair[0] != pair[1] for pair in pairs)
    assert len({pair[0] for pair in pairs}) == 2, "who goes first is by lot"


def shaky(config: Config, number: int) -> Outcome:
    """Noise that only ever adds, so that the estimator changes on the way."""
    clean = bowl(config, number)
    assert isinstance(clean, Completed)
    return Completed(clean.value * (3.0 if number % 4 == 0 else 1.0 + 0.01 * (number % 3)))


@pytest.mark.parametrize("cut", [0, 1, 6, 17, 30, 37])
@pytest.mark.parametrize(
    ("optimizer", "resample"),
    [("auto", "auto"), ("random", "static:2"), ("gp", "evadyr"), ("genetic", "sedr:20%"), ("random", "static:4")],
)
def test_a_replayed_history_goes_on_the_same(cut: int, optimizer: str, resample: str) -> None:
    experiment = Experiment(space=SPACE, budget=40, optimizer=optimizer, resample=resample, seed=3)
    whole = play(plan_of(experiment), shaky)
    first = plan_of(experiment)
    play(first, shaky, most=cut)
    second = plan_of(experiment)
    second.replay(first.runs)
    assert second.trials == first.trials
    assert play(second, shaky).runs == whole.runs


class Told:
    """An optimizer, the latest it was told of each configuration, and how many suggestions it was asked for."""

    def __init__(self, inner: Optimizer) -> None:
        self._inner = inner
        self.latest: dict[Config, Trial] = {}
        self.asked: list[int] = []

    def ask(self, count: int, running: Sequence[Config]) -> Sequence[Config]:
        self.asked.append(count)
        return self._inner.ask(count, running)

    def tell(self, finished: Sequence[Trial]) -> None:
        self.latest.update({trial.config: trial for trial in finished})
        self._inner.tell(finished)


def test_a_replay_tells_and_does_not_ask() -> None:
    experiment = Experiment(space=SPACE, budget=40, optimizer="random", resample="static:2", seed=3)
    first = plan_of(experiment)
    play(first, shaky, most=30)
    told = Told(make_optimizer("random", SPACE, seed=3, budget=40))
    second = Plan(experiment, told, stop=any_of(), resample=Static(2))
    second.replay(first.runs)
    assert told.asked == []
    assert list(told.latest.values()) == first.trials
    assert second.orders(1, 0.0) == first.orders(1, 0.0)
    assert len(told.asked) <= 1


def test_all_free_slots_are_filled_by_one_question() -> None:
    told = Told(make_optimizer("gp", SPACE, seed=3, budget=40))
    experiment = Experiment(space=SPACE, budget=40, slots=6, resample="once", verify_pairs=0)
    plan = Plan(experiment, told, stop=any_of(), resample=Static(1))
    orders = plan.orders(6, 0.0)
    assert told.asked == [5], "the default takes a slot"
    assert [order.trial for order in orders] == list(range(6))
    runs = [submit(plan, order) for order in orders]
    assert plan.orders(0, 0.0) == []
    for run in runs[1:5]:
        finish(plan, run, bowl(run.config, run.number))
    more = plan.orders(4, 0.0)
    assert told.asked == [5, 4]
    assert len({order.config for order in (*orders, *more)}) == 10


def test_a_batch_of_orders_is_what_one_after_the_other_would_be() -> None:
    """Sentinels, repeats, the budget and rules about the last steps count the orders of the batch."""
    options = {"budget": 14, "optimizer": "exhaustive", "sentinels": 3, "resample": "static:2", "verify_pairs": 0}
    together, alone = (plan_of(Experiment(space=SPACE, slots=5, **options)) for _ in range(2))  # type: ignore[arg-type]  # options of every type
    while orders := together.orders(5, 0.0):
        expected: list[Order] = []
        while len(expected) < 5 and (one := alone.orders(1, 0.0)):
            expected += one
            submit(alone, one[0])
        assert orders == expected
        for order in orders:
            submit(together, order)
        for plan in (together, alone):
            for run in plan.running:
                finish(plan, run, shaky(run.config, run.number))
    assert len(together.runs) == 14
    assert alone.orders(1, 0.0) == []
    assert together.ending == alone.ending


def test_what_the_plan_believes_is_what_is_concluded() -> None:
    experiment = Experiment(space=SPACE, budget=60, optimizer="random", resample="static:4", seed=3, verify_pairs=0)
    told = Told(make_optimizer("random", SPACE, seed=3))
    plan = Plan(experiment, told, stop=any_of(), resample=Static(4))
    result = play(plan, shaky)
    assert result.estimator == "minimum", "the noise only adds"
    assert result.trials == tuple(plan.trials)
    assert list(told.latest.values()) == plan.trials, "the optimizer hears of every estimate that changes"
    assert plan.best is not None
    assert result.best == plan.trials[plan.best]
    assert all(
        trial.estimate.value == min(past.value for past in trial.outcomes if isinstance(past, Completed))
        for trial in result.trials
        if trial.estimate is not None
    )


@pytest.mark.parametrize("goal", ["minimize", "maximize"])
def test_repeats_cost_next_to_nothing_where_there_is_no_noise(goal: Goal) -> None:
    def answer(config: Config, number: int) -> Outcome:
        clean = bowl(config, number)
        assert isinstance(clean, Completed)
        return Completed(1000.0 - clean.value) if goal == "maximize" else clean

    result = play(
        plan_of(Experiment(space=SPACE, budget=60, objectives=(Objective("wall", goal),), verify_pairs=0)), answer
    )
    assert result.repeats == 2
    assert result.noise.deviation == 0.0
    assert result.best.config == {"x": 7, "mode": "fast"}


def test_a_leader_by_luck_is_run_again_and_loses_its_place() -> None:
    """The first new configuration after run 30 is far too good to be true; all other runs deviate by 2 %."""
    seen: set[Config] = set()
    lucky: list[Config] = []

    def answer(config: Config, number: int) -> Outcome:
        if number > 30 and not lucky and config not in seen:
            lucky.append(config)
            return Completed(5.0)
        seen.add(config)
        return Completed(10.0 + 0.2 * (number % 3) + 0.1 * int(config["x"]))

    result = play(plan_of(Experiment(space=SPACE, budget=60, optimizer="random", verify_pairs=0, seed=5)), answer)
    (trial,) = (trial for trial in result.trials if trial.config in lucky)
    assert len(trial.outcomes) > 1
    assert result.best.config != trial.config


def test_a_winner_that_hangs_when_it_is_run_again_is_told_so() -> None:
    def answer(config: Config, number: int) -> Outcome:
        return TimedOut("60 s") if number > 33 and config != SPACE.default else bowl(config, number)

    result = play(plan_of(Experiment(space=SPACE, budget=40)), answer)
    assert result.recommended == SPACE.default
    assert result.verdict == "no improvement found: the best configuration failed when it was run again"


def test_a_replay_keeps_what_was_under_way() -> None:
    experiment = Experiment(space=SPACE, budget=40, slots=3)
    plan = plan_of(experiment)
    runs = [submit(plan, order) for order in plan.orders(3, 0.0)]
    finish(plan, runs[1], bowl(runs[1].config, 1))
    again = plan_of(experiment)
    again.replay(plan.runs)
    assert again.running == plan.running
    assert again.orders(2, 0.0) == plan.orders(2, 0.0)


FEW = Space(Choice("mode", ["a", "b", "c", "d", "e"]))
MEANS = {"a": 14.0, "b": 13.0, "c": 10.0, "d": 10.5, "e": 16.0}


def scattered(config: Config, number: int) -> Outcome:
    """Runs of 8 % noise, in which d and c cannot be told apart by one run each."""
    rng = np.random.default_rng([3, number])
    return Completed(MEANS[str(config["mode"])] * float(np.exp(rng.normal(0.0, 0.08))))


def test_runs_that_are_left_when_everything_was_tried_go_to_the_best_and_its_rival() -> None:
    result = play(plan_of(Experiment(space=FEW, budget=60, verify_pairs=0)), scattered)
    counts = {str(trial.config["mode"]): len(trial.outcomes) for trial in result.trials}
    assert set(counts) == set(MEANS)
    assert counts["c"] + counts["d"] > 2 * (counts["a"] + counts["b"] + counts["e"])
    assert abs(counts["c"] - counts["d"]) <= 2, "in turns"
    assert result.best.config == {"mode": "c"}


@pytest.mark.parametrize(("resample", "noisy", "runs"), [("auto", False, 7), ("once", True, 5), ("static:2", True, 5)])
def test_a_search_that_tried_everything_ends_where_repeats_tell_nothing_or_are_not_wanted(
    resample: str, noisy: bool, runs: int
) -> None:
    plan = plan_of(Experiment(space=FEW, budget=60, verify_pairs=0, resample=resample, slots=4))
    work(plan, scattered if noisy else lambda config, _: Completed(MEANS[str(config["mode"])]))
    assert len(plan.runs) == runs
    assert plan.ending == "every configuration has been tried"


def test_one_that_is_best_beyond_doubt_is_not_run_for_ever() -> None:
    plan = plan_of(Experiment(space=FEW, budget=200, verify_pairs=0))
    play(plan, lambda config, number: Completed(MEANS[str(config["mode"])] ** 4 * (1.0 + 0.01 * (number % 3))))
    assert len(plan.runs) < 20
    assert plan.ending == "every configuration has been tried"


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("cut", [6, 9, 20])
def test_a_contest_goes_on_the_same_after_a_crash(cut: int, workers: int) -> None:
    experiment = Experiment(space=FEW, budget=40, slots=workers, seed=3)
    whole, first, second = plan_of(experiment), plan_of(experiment), plan_of(experiment)
    work(whole, scattered)
    work(first, scattered, most=cut)
    second.replay(first.runs)
    work(second, scattered)
    assert second.runs == whole.runs
    assert len(whole.runs) > 20


def work(plan: Plan, answer: Answer, most: int = 1000) -> None:
    """Like `play` with as many runs at a time as there are workers, which end in another order than they began."""
    for _ in range(most):
        while orders := plan.orders(plan.experiment.slots - len(plan.running), 0.0):
            for order in orders:
                submit(plan, order)
        if not plan.running:
            break
        run = plan.running[len(plan.runs) % len(plan.running)]
        finish(plan, run, answer(run.config, run.number))


FIRST = tuple(Config({"x": x, "mode": mode}) for x, mode in ((9, "fast"), (8, "slow"), (0, "fast")))


@pytest.mark.parametrize("optimizer", optimizer_names())
def test_configurations_to_try_first_follow_the_default_and_are_not_suggested_again(optimizer: str) -> None:
    told = Told(make_optimizer(optimizer, SPACE, seed=3, budget=30))
    experiment = Experiment(space=SPACE, budget=30, first=FIRST, resample="once", verify_pairs=0)
    plan = Plan(experiment, told, stop=any_of(), resample=Static(1))
    runs = play(plan, bowl).runs
    assert [run.config for run in runs[:4]] == [SPACE.default, *FIRST]
    assert [run.purpose for run in runs[:5]] == ["default", *["search"] * 4]
    assert len(runs) == len({run.config for run in runs}) == 30
    assert list(told.latest)[:4] == [SPACE.default, *FIRST], "the optimizer hears of them"


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("cut", [0, 1, 2, 3, 5, 12])
def test_configurations_to_try_first_survive_a_crash(cut: int, workers: int, caplog: pytest.LogCaptureFixture) -> None:
    experiment = Experiment(space=SPACE, budget=30, slots=workers, first=FIRST, seed=3)

    def answer(config: Config, number: int) -> Outcome:
        return Lost("node died") if number == 2 else shaky(config, number)

    whole, first, second = plan_of(experiment), plan_of(experiment), plan_of(experiment)
    work(whole, answer)
    work(first, answer, most=cut)
    second.replay(first.runs)
    work(second, answer)
    assert second.runs == whole.runs
    assert [trial.config for trial in whole.trials[:4]] == [SPACE.default, *FIRST]
    assert sum(run.trial == 2 for run in whole.runs) >= 2, "what was lost runs again"
    assert caplog.text == ""


def test_a_budget_may_end_among_the_configurations_to_try_first() -> None:
    result = play(plan_of(Experiment(space=SPACE, budget=3, first=FIRST)), bowl)
    assert [run.config for run in result.runs] == [SPACE.default, *FIRST[:2]]
    few = Space(Integer("x", 0, 2))
    whole = Experiment(space=few, budget=9, verify_pairs=0, first=(Config({"x": 2}), Config({"x": 1})))
    every = play(plan_of(whole), lambda config, _: Completed(1.0 + int(config["x"])))
    assert [run.config["x"] for run in every.runs[:3]] == [0, 2, 1]
    assert {run.trial for run in every.runs[3:]} == {0}, "the best one again: is there any noise?"


def _calls_of_one_turn(past: int) -> int:
    """How many functions Python calls for a submission, an end and the next order, after so many runs."""
    plan = plan_of(Experiment(space=WIDE, budget=10 * past, optimizer="random", resample="once", slots=4))
    for _ in range(past):
        run = submit(plan, plan.orders(1, 0.0)[0])
        finish(plan, run, Completed(1.0 + run.number % 7))
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    for _ in range(2):  # the first turn may find caches empty
        calls = 0
        sys.setprofile(count)
        try:
            orders = plan.orders(1, 0.0)
            finish(plan, submit(plan, orders[0]), Completed(8.0))
        finally:
            sys.setprofile(None)
    return calls


WIDE = Space(Integer("x", 0, 100_000, default=30), Choice("mode", ["slow", "fast"]))


def test_the_work_of_a_turn_does_not_grow_with_the_history() -> None:
    assert _calls_of_one_turn(1000) <= 1.2 * _calls_of_one_turn(50)


def test_rules_see_the_history_without_a_copy_of_it() -> None:
    plan = plan_of(Experiment(space=WIDE, budget=50, optimizer="random"))
    play(plan, bowl, most=5)
    before, after = plan.progress(0.0), plan.progress(1.0)
    assert before.steps is after.steps
    assert before.costs_s is after.costs_s
    assert before.trials is after.trials


def test_planned_orders_count_only_while_orders_are_made() -> None:
    plan = plan_of(Experiment(space=WIDE, budget=60, optimizer="random", verify_pairs=0, slots=100))
    submit(plan, plan.orders(1, 0.0)[0])
    assert len(plan.orders(100, 0.0)) == 59, "the rest of the budget"
    assert (len(plan.trials), plan.counted, plan.progress(0.0).runs) == (1, 1, 1)


def test_a_rule_knows_the_cost_of_every_run() -> None:
    """Also while several runs are ordered at once: none is known of those that are under way."""
    seen: list[Progress] = []

    def note(progress: Progress) -> None:
        seen.append(replace(progress, steps=tuple(progress.steps), costs_s=tuple(progress.costs_s)))

    experiment = Experiment(space=SPACE, budget=12, slots=3, resample="once", verify_pairs=0)
    plan = Plan(experiment, make_optimizer("random", SPACE, seed=3), stop=note, resample=Static(1))
    for _ in range(3):
        for run in [submit(plan, order) for order in plan.orders(3, 0.0)][:2]:
            finish(plan, run, bowl(run.config, run.number))
    assert all(len(progress.steps) == len(progress.costs_s) for progress in seen)
    assert seen[-1].costs_s == (1.0, 1.0, None, 1.0, 1.0, None, None, None)
    assert seen[-1].cost_s == 4.0


def test_a_search_that_was_ended_is_not_begun_again_by_what_is_running() -> None:
    reasons = ["enough"]

    def once(progress: Progress) -> str | None:
        return reasons.pop() if len(progress.steps) == 4 and reasons else None

    experiment = Experiment(space=SPACE, budget=12, slots=2, resample="once", verify_pairs=0)
    plan = Plan(experiment, make_optimizer("random", SPACE, seed=3), stop=once, resample=Static(1))
    running: list[Run] = []
    while len(plan.runs) < 4:
        running += [submit(plan, order) for order in plan.orders(2 - len(running), 0.0)]
        if len(plan.runs) < 4:
            run = running.pop(0)
            finish(plan, run, bowl(run.config, run.number))
    while running:
        run = running.pop(0)
        finish(plan, run, bowl(run.config, run.number))
        assert plan.orders(2 - len(running), 0.0) == []
    assert (plan.ending, len(plan.runs)) == ("enough", 4)
