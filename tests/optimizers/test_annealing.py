import math

import pytest

from luthier.optimizers.annealing import SCHEDULES, Annealing, acceptance
from luthier.optimizers.contract import measured, unmeasured
from luthier.space import Integer, Space
from luthier.trial import Config, Failed, Lost

SPACE = Space(Integer("a", 0, 15), Integer("b", 0, 15))


def height(config: Config) -> float:
    return 3.0 + (float(config["a"]) - 4.0) ** 2 + (float(config["b"]) - 9.0) ** 2


def begun(**options: float | str | None) -> Annealing:
    search = Annealing(SPACE, seed=1, initial=4, **options)  # type: ignore[arg-type]  # options of every type
    search.tell([measured(config, height(config)) for config in search.ask(4, [])])
    return search


def near(config: Config, other: Config) -> bool:
    return config != other and all(abs(int(config[name]) - int(other[name])) <= 1 for name in SPACE.names)


def test_the_chance_of_a_worse_value() -> None:
    assert acceptance(3.0, 2.0, 0.5) == pytest.approx(math.exp(-2.0))
    assert acceptance(2.0, 3.0, 0.5) == acceptance(2.0, 2.0, 0.0) == 1.0
    assert acceptance(2.1, 2.0, 0.0) == acceptance(math.inf, 2.0, 9.0) == acceptance(1e308, -1e308, 1e-300) == 0.0
    assert acceptance(5.0, math.inf, 1.0) == 1.0


def test_the_schedules() -> None:
    assert SCHEDULES["exponential"](0.9, 3) == pytest.approx(0.729)
    assert SCHEDULES["linear"](0.5, 4) == pytest.approx(1.0 / 3.0)
    assert SCHEDULES["logarithmic"](2.0, 6) == pytest.approx(1.0 / (1.0 + 2.0 * math.log(7.0)))
    assert all(schedule(0.7, 0) == 1.0 for schedule in SCHEDULES.values())


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_it_cools_with_every_step(schedule: str) -> None:
    search = begun(schedule=schedule, temperature=8.0, cooling=0.5)
    for steps in range(6):
        assert search.temperature == pytest.approx(8.0 * SCHEDULES[schedule](0.5, steps))
        (config,) = search.ask(1, [])
        search.tell([measured(config, height(config))])


def test_it_begins_at_the_best_with_a_tenth_of_the_interquartile_range() -> None:
    search = Annealing(SPACE, seed=1, initial=5)
    assert search.temperature == 0.0
    for a, value in enumerate((50.0, 20.0, 40.0, 10.0, 30.0)):
        search.tell([measured(Config({"a": 3 * a, "b": 7}), value)])
    assert search._current == Config({"a": 9, "b": 7})
    assert search.temperature == pytest.approx(2.0)


def test_after_a_rejection_another_neighbour_of_the_same_point() -> None:
    search = begun(temperature=1e-9)
    here, tried = search._current, set[Config]()
    assert here is not None
    for _ in range(5):
        (config,) = search.ask(1, [])
        assert near(config, here)
        tried.add(config)
        search.tell([measured(config, 1e6)])
        assert search._current == here
    assert len(tried) == 5


def test_a_better_one_is_where_it_goes_on() -> None:
    search = begun()
    (config,) = search.ask(1, [])
    search.tell([measured(config, 0.0)])
    assert search._current == config
    assert near(search.ask(1, [])[0], config)


def test_a_hot_walk_goes_uphill_and_a_cold_one_does_not() -> None:
    hot, cold = begun(temperature=1e9), begun(temperature=1e-9)
    for search, moves in ((hot, True), (cold, False)):
        (config,) = search.ask(1, [])
        search.tell([measured(config, 1e4)])
        assert (search._current == config) is moves


def test_units_of_the_values_do_not_matter() -> None:
    asked = []
    for scale in (1.0, 1024.0, 1.0 / 1024.0):
        search, answers = Annealing(SPACE, seed=6), []
        for _ in range(40):
            (config,) = search.ask(1, [])
            answers.append(config)
            search.tell([measured(config, scale * height(config))])
        asked.append(answers)
    assert asked[0] == asked[1] == asked[2]


def test_failures_are_rejected_and_lost_runs_are_no_steps() -> None:
    search = begun(temperature=8.0, cooling=0.5)
    here = search._current
    for outcome, temperature in ((Failed("exit 1"), 4.0), (Lost("node"), 4.0)):
        (config,) = search.ask(1, [])
        search.tell([unmeasured(config, outcome)])
        assert search._current == here
        assert search.temperature == temperature


def test_a_restart_reheats_and_begins_elsewhere_within_the_budget() -> None:
    search = begun(temperature=8.0, cooling=0.5, restart="threshold", restart_at=0.2, restarts=2)
    temperatures, starts = [], 0
    for _ in range(25):
        (config,) = search.ask(1, [])
        starts += search._current is None
        search.tell([measured(config, 1.0)])
        temperatures.append(search.temperature)
    # Three steps to go below a fifth, then one for the start of the new walk.
    assert temperatures[:8] == [4.0, 2.0, 8.0, 8.0, 4.0, 2.0, 8.0, 8.0]
    assert starts == 2
    assert temperatures[-1] < 0.01


def test_a_random_restart_comes_by_chance() -> None:
    for chance, restarts in ((1.0, 3), (0.0, 0)):
        search, starts = begun(restart="random", restart_at=chance), 0
        for _ in range(12):
            (config,) = search.ask(1, [])
            starts += search._current is None
            search.tell([measured(config, height(config))])
        assert starts == restarts


def test_results_from_before_a_restart_do_not_call_it_back() -> None:
    search = begun(temperature=8.0, cooling=0.5, restart="random", restart_at=1.0)
    first, late = search.ask(2, [])
    search.tell([measured(first, 100.0)])
    (start,) = search.ask(1, [late])
    search.tell([measured(start, 50.0), measured(late, 1.0)])
    assert search._current == start


def test_an_updated_value_counts_for_the_next_step() -> None:
    search = begun(temperature=1e-9)
    here = search._current
    assert here is not None
    search.tell([measured(here, 500.0, 700.0)])
    (config,) = search.ask(1, [])
    search.tell([measured(config, 400.0)])
    assert search._current == config
