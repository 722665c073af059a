"""The strategy `auto`: what it tries, what it does not try, and when it ends."""

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest

import luthier as lt
from benchmarks import online_surfaces
from luthier.errors import InvalidInputError
from luthier.online.contract import bowl
from luthier.online.strategies.adaptive_sampling import AdaptiveSampling
from luthier.online.strategies.auto import ModelThenSimplex, automatic_strategy
from luthier.online.strategies.handouts import Handouts
from luthier.online.strategies.rounds import Rounds
from luthier.online.strategies.sample_noise import SampleNoise
from luthier.online.strategies.sampling import FixedSampling
from luthier.trial import Config

GRID = lt.Space(lt.Integer("x", 1, 32, default=16), lt.Integer("y", 1, 32, default=16))


def valley(config: Config) -> float:
    x, y = int(config["x"]), int(config["y"])
    return 1.0 + 0.004 * (x - 9) ** 2 + 0.002 * (y - 24) ** 2


def noisy_valley(factors: Iterator[float], config: Config) -> float:
    return valley(config) * next(factors)


def shifted_valley(shift: float, config: Config) -> float:
    return valley(config) + shift


def started(space: lt.Space, *, samples: int | None = None, seed: int = 1) -> ModelThenSimplex:
    sampling = AdaptiveSampling() if samples is None else FixedSampling(samples)
    return automatic_strategy(space, seed=seed, sampling=sampling)


def run(strategy: ModelThenSimplex, measure: Callable[[Config], float | None], clients: int, steps: int) -> list[float]:
    """The slowest value of each step."""
    names, slowest = [f"client {number}" for number in range(clients)], []
    for _ in range(steps):
        running = [strategy.next(name) for name in names]
        values = [measure(config) for config in running]
        for name, config, value in zip(names, running, values, strict=True):
            strategy.report(name, config, value)
        slowest.append(max((value for value in values if value is not None), default=math.inf))
    return slowest


@pytest.mark.parametrize("clients", [1, 6, 64])
def test_finds_the_valley_of_a_smooth_function(clients: int) -> None:
    strategy = started(GRID)
    slowest = run(strategy, valley, clients, 60)
    assert strategy.standing.converged
    assert valley(strategy.standing.best) < 1.02
    assert slowest[-1] == valley(strategy.standing.best)


def test_the_search_costs_less_than_staying_at_the_default() -> None:
    slowest = run(started(GRID), valley, 6, 40)
    assert sum(slowest) < 40 * valley(GRID.default)


def test_nothing_wild_is_tried() -> None:
    def cliff(config: Config) -> float:
        return valley(config) + (50.0 if int(config["x"]) > 25 else 0.0)

    slowest = run(started(GRID), cliff, 6, 40)
    assert sum(value > 10.0 for value in slowest) <= 1


def test_heavy_tailed_noise_does_not_mislead_it() -> None:
    for seed in range(5):
        factors = iter(1.0 + 0.1 * (1.0 + np.random.default_rng(seed).pareto(1.7, 1000)))
        strategy = started(GRID, seed=seed)
        run(strategy, partial(noisy_valley, factors), 8, 80)
        assert valley(strategy.standing.best) < valley(GRID.default) / 1.15


def test_the_first_step_starts_at_the_default_and_stays_near_it() -> None:
    strategy = started(GRID)
    first = [strategy.next(f"client {number}") for number in range(8)]
    assert first[:2] == [GRID.default] * 2
    assert len(set(first[2:])) == 6
    assert all(abs(int(one[name]) - 16) <= 7 for one in first for name in ("x", "y"))


def test_many_clients_are_used_from_the_second_step_on() -> None:
    strategy, names = started(GRID), [f"client {number}" for number in range(64)]
    run(strategy, valley, 64, 1)
    assert len({strategy.next(name) for name in names}) > 40


def test_categories_are_tried_without_an_order() -> None:
    space = lt.Space(lt.Choice("engine", ["a", "b", "c", "d", "e"]), lt.Integer("n", 1, 8))
    value = {"a": 3.0, "b": 2.9, "c": 3.1, "d": 1.0, "e": 3.2}
    strategy = started(space)
    run(strategy, lambda config: value[str(config["engine"])] + 0.01 * int(config["n"]), 4, 40)
    assert strategy.standing.best["engine"] == "d"


def test_every_category_is_tried_before_the_end() -> None:
    names = [f"kind {number}" for number in range(30)]
    space = lt.Space(lt.Choice("kind", names), lt.Integer("n", 1, 4))
    strategy, seen = started(space), set[object]()

    def flat(config: Config) -> float:
        seen.add(config["kind"])
        return 1.0 if config["kind"] == names[-1] else 2.0

    run(strategy, flat, 3, 60)
    assert strategy.standing.converged
    assert seen == set(names)
    assert strategy.standing.value == 1.0


def test_constraints_and_failures_are_respected() -> None:
    space = lt.Space(lt.Integer("a", 1, 20, default=3), lt.Integer("b", 1, 20, default=9), constraints=["a <= b"])

    def measure(config: Config) -> float | None:
        a, b = int(config["a"]), int(config["b"])
        assert a <= b
        return None if b > 15 else 40.0 - a - b

    strategy = started(space)
    run(strategy, measure, 5, 60)
    assert strategy.standing.converged
    assert strategy.standing.value is not None
    assert strategy.standing.value < 20.0


def test_a_fixed_number_of_samples_is_taken_of_everything_new() -> None:
    strategy = started(GRID, samples=3)
    taken: dict[Config, int] = {}

    def counted(config: Config) -> float:
        taken[config] = taken.get(config, 0) + 1
        return valley(config)

    run(strategy, counted, 9, 4)
    assert sum(count >= 3 for count in taken.values()) >= len(taken) - 3


def test_thirty_parameters_with_one_client() -> None:
    space = lt.Space(*(lt.Real(f"p{number}", 0.0, 1.0, default=0.5) for number in range(30)))
    strategy = started(space)
    run(strategy, bowl(space), 1, 60)
    assert bowl(space)(strategy.standing.best) < bowl(space)(space.default)


def test_negative_values_and_values_of_both_signs() -> None:
    for shift in (-10.0, -1.5):
        strategy = started(GRID)
        run(strategy, partial(shifted_valley, shift), 6, 60)
        assert strategy.standing.converged
        assert valley(strategy.standing.best) < 1.1


def test_a_horizon_that_is_no_number_of_steps_is_refused() -> None:
    for horizon in (0, math.nan, "long"):
        with pytest.raises(InvalidInputError, match="horizon"):
            automatic_strategy(GRID, seed=1, sampling=FixedSampling(1), horizon=horizon)  # type: ignore[arg-type]  # what a user may write


def test_a_short_horizon_ends_the_search_early() -> None:
    rough, steps = online_surfaces.rough(4), []
    for horizon in (1.0, 1000.0):
        strategy = automatic_strategy(rough.space, seed=1, sampling=FixedSampling(1), horizon=horizon)
        steps.append(
            next(step for step in range(200) if run(strategy, rough.time, 3, 1) and strategy.standing.converged)
        )
    assert steps[0] < steps[1]


def test_rounds_are_recognised_from_the_reports() -> None:
    rounds = Rounds()
    assert [rounds.add(client) for client in "abc"] == [False, False, False]
    assert rounds.clients is None
    assert [rounds.add(client) for client in "abc"] == [False, False, True]
    assert [rounds.add(client) for client in "bca"] == [False, False, True]
    assert [rounds.add(client) for client in "ab"] == [False, False]  # c is gone
    assert [rounds.add(client) for client in "ab"] == [False, True]
    assert rounds.clients == 2


def test_what_a_client_has_is_handed_to_another_one() -> None:
    handouts, here, there = Handouts(), Config({"x": 1}), Config({"x": 2})
    handouts.plan({there: 1})
    assert [handouts.next(client, here) for client in "aab"] == [there, there, here]
    handouts.leave("a")
    assert handouts.next("c", here) == there
    handouts.taken("c", there)
    assert handouts.next("d", here) == here


def test_noise_is_learned_from_repeated_samples_only() -> None:
    silent = SampleNoise.of([np.array([1.0]), np.array([2.0, 2.0])], min)
    assert silent.of_estimates(np.array([1, 3]))[1].tolist() == [0.0, 0.0]
    assert silent.cost(np.array([1.0, 1.5]), 6).tolist() == pytest.approx([0.0, 0.5])
    rng = np.random.default_rng(1)
    noisy = SampleNoise.of([rng.exponential(0.2, 4) for _ in range(50)], min)
    above, deviation = noisy.of_estimates(np.array([1, 2, 8]))
    assert above[0] == pytest.approx(0.2 * math.log(2.0), rel=0.4)
    assert deviation[0] > deviation[1] > deviation[2] > 0.0
    assert noisy.cost(np.array([1.5]), 64)[0] < 0.5  # another client is often as slow


def test_a_slow_first_iteration_does_not_end_the_search_at_the_default() -> None:
    for seed in range(4):
        rng, tuner = np.random.default_rng(seed), lt.OnlineTuner(GRID, seed=seed)
        for factor in (10.0, *(1.0 + 0.03 * rng.random(99))):
            tuner.report(valley(tuner.fetch()) * factor)
        assert tuner.converged
        assert valley(tuner.best.best) < valley(GRID.default) / 1.15


def test_a_search_ends_even_under_noise_that_hides_everything() -> None:
    space = lt.Space(*(lt.Integer(name, 0, 20, default=3) for name in "abcd"))
    rng, tuner = np.random.default_rng(0), lt.OnlineTuner(space, strategy="auto:horizon=20")
    names = [f"client {number}" for number in range(32)]
    for _ in range(44):  # 10 for every parameter, and the default
        running = [tuner.fetch(name) for name in names]
        for name, config in zip(names, running, strict=True):
            value = 1.0 + 0.01 * sum((int(config[key]) - 12) ** 2 for key in "abcd")
            tuner.report(value * (1.0 + rng.pareto(1.1)), name)
    assert tuner.converged


@pytest.mark.parametrize("together", [1, 4])
def test_clients_that_run_one_iteration_each_find_the_valley(together: int) -> None:
    tuner = lt.OnlineTuner(GRID)
    for step in range(400):
        running = {name: tuner.fetch(name) for name in (f"{step}/{number}" for number in range(together))}
        for name, config in running.items():
            tuner.report(valley(config), name)
            tuner.leave(name)
    assert tuner.converged
    assert valley(tuner.best.best) < 1.02


def test_values_of_all_magnitudes_cause_no_warning() -> None:
    rng, tuner = np.random.default_rng(1), lt.OnlineTuner(GRID)
    with np.errstate(all="raise", under="ignore"):
        for _ in range(40):
            tuner.fetch()
            tuner.report(10.0 ** rng.uniform(-300, 300))


@pytest.mark.parametrize("clients", [1, 6])
def test_samples_that_take_ten_times_as_long_do_not_mislead_it(clients: int) -> None:
    found = []
    for seed in range(6):
        is_slow = np.random.default_rng(seed).random(200 * clients) < 0.1
        factors = iter(np.where(is_slow, 10.0, 1.0).tolist())
        strategy = started(GRID, seed=seed)
        run(strategy, partial(noisy_valley, factors), clients, 200)
        found.append(valley(strategy.standing.best))
    assert max(found) < 1.05, found


def test_a_search_ends_where_no_neighbour_is_better() -> None:
    strategy = started(GRID)
    run(strategy, valley, 4, 200)
    best = strategy.standing.best
    assert strategy.standing.converged
    assert valley(best) <= min(valley(near) for near in GRID.neighbours(best))
