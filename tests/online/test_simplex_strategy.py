"""Rank ordering for many processes at once, as Tabatabaee et al. 2005 describe it."""

from collections.abc import Callable

import pytest

from luthier.errors import InvalidInputError
from luthier.online.base import Strategy
from luthier.online.registry import STRATEGIES, make_strategy
from luthier.online.strategies.sampling import FixedSampling
from luthier.space import Choice, Integer, Space
from luthier.trial import Config

PLANE = Space(Integer("x", 0, 100), Integer("y", 0, 100))


def strategy_for(text: str, space: Space = PLANE, samples: int = 1, centre: Config | None = None) -> Strategy:
    return make_strategy(text, space, seed=0, sampling=FixedSampling(samples), centre=centre)


def step(strategy: Strategy, clients: int, measure: Callable[[Config], float]) -> list[tuple[int, int]]:
    """One step of a program; what its clients ran."""
    ran = [(f"c{i}", strategy.next(f"c{i}")) for i in range(clients)]
    for client, config in ran:
        strategy.report(client, config, measure(config))
    return [(int(config["x"]), int(config["y"])) for _, config in ran]


def slope(config: Config) -> float:
    """Falls in both directions; its minimum is the corner (100, 100)."""
    return 400.0 - float(config["x"]) - 2.0 * float(config["y"])


def test_the_first_simplex_has_2n_vertices_around_the_middle() -> None:
    assert step(strategy_for("pro"), 4, slope) == [(60, 50), (40, 50), (50, 60), (50, 40)]


def test_a_minimal_simplex_has_the_middle_and_n_vertices() -> None:
    assert step(strategy_for("pro:vertices=N+1,size=0.4"), 3, slope) == [(50, 50), (70, 50), (50, 70)]


def test_all_reflections_are_measured_in_one_step_and_one_expansion_is_checked() -> None:
    strategy = strategy_for("pro")
    step(strategy, 4, slope)  # v0 = (50, 60)
    assert set(step(strategy, 3, slope)) == {(40, 70), (60, 70), (50, 80)}  # 2 v0 - vj
    best = (50, 80)  # the best reflection; vj = (50, 40), so the expansion 3 v0 - 2 vj is (50, 100)
    assert step(strategy, 3, slope) == [(50, 100), best, best]
    # The expansion is better: all expansions are accepted, and those not yet known are measured.
    assert set(step(strategy, 2, slope)) == {(30, 80), (70, 80)}


def test_a_failed_expansion_keeps_the_reflections_that_are_known() -> None:
    def ridge(config: Config) -> float:
        return slope(config) if float(config["y"]) <= 80 else 1000.0

    strategy = strategy_for("pro")
    for _ in range(3):
        step(strategy, 4, ridge)
    # v0 is now (50, 80) in the simplex of the reflections; of the next ones 2 v0 - vj, (50, 100) is known.
    assert set(step(strategy, 3, ridge)) == {(60, 90), (40, 90), (50, 80)}


def test_the_simplex_shrinks_towards_its_best_vertex_and_rounds_towards_it() -> None:
    def pit(config: Config) -> float:
        return abs(float(config["x"]) - 50) + abs(float(config["y"]) - 60)

    strategy = strategy_for("pro")
    step(strategy, 4, pit)  # v0 = (50, 60) is the minimum
    step(strategy, 3, pit)  # no reflection is better
    assert set(step(strategy, 3, pit)) == {(55, 55), (45, 55), (50, 50)}  # 0.5 v0 + 0.5 vj
    step(strategy, 3, pit)
    assert set(step(strategy, 3, pit)) == {(52, 58), (48, 58), (50, 55)}  # 52.5 and 57.5 are rounded towards v0


def test_it_has_converged_when_none_of_the_neighbours_is_better() -> None:
    def pit(config: Config) -> float:
        return abs(float(config["x"]) - 50) + abs(float(config["y"]) - 60)

    strategy, steps = strategy_for("pro"), list[list[tuple[int, int]]]()
    while not strategy.standing.converged and len(steps) < 100:
        steps.append(step(strategy, 4, pit))
    assert strategy.standing.best == {"x": 50, "y": 60}
    assert {point for ran in steps for point in ran} >= {(49, 60), (51, 60), (50, 59), (50, 61)}
    assert set(steps[-1]) == {(49, 60), (51, 60), (50, 60)}  # the other two were known


def test_a_better_neighbour_continues_the_search() -> None:
    def path(config: Config) -> float:
        """(50, 60), then a narrow path of single steps up to (50, 64)."""
        x, y = int(config["x"]), int(config["y"])
        return 10.0 - (y - 60) if x == 50 and 60 <= y <= 64 else 100.0 + abs(x - 50) + abs(y - 60)

    strategy = strategy_for("pro")
    for _ in range(100):
        step(strategy, 4, path)
    assert strategy.standing.best == {"x": 50, "y": 64}


def test_sequential_rank_ordering_checks_the_worst_vertex_first() -> None:
    strategy = strategy_for("sequential")
    step(strategy, 4, slope)  # v0 = (50, 60); the worst is (50, 40)
    best = (50, 60)
    assert step(strategy, 3, slope) == [(50, 80), best, best]
    assert step(strategy, 3, slope) == [(50, 100), (50, 80), (50, 80)]


def test_nelder_mead_moves_one_vertex_at_a_time() -> None:
    strategy = strategy_for("nelder-mead")
    assert len(set(step(strategy, 3, slope))) == 3
    ran = step(strategy, 5, slope)
    assert len(set(ran)) == 2
    assert ran.count(ran[-1]) == 4  # all others run the best known


def test_spare_clients_take_the_samples_in_the_same_step() -> None:
    strategy = strategy_for("pro", samples=3)
    ran = step(strategy, 12, slope)
    assert {point: ran.count(point) for point in set(ran)} == dict.fromkeys([(60, 50), (40, 50), (50, 60), (50, 40)], 3)
    assert (60, 70) in step(strategy, 12, slope)


def test_few_clients_take_the_samples_one_after_another() -> None:
    strategy = strategy_for("pro", samples=2)
    ran = [step(strategy, 1, slope)[0] for _ in range(8)]
    assert {point: ran.count(point) for point in set(ran)} == dict.fromkeys([(60, 50), (40, 50), (50, 60), (50, 40)], 2)


def test_the_minimum_of_the_samples_counts() -> None:
    values = iter([9.0, 5.0, 7.0] + [8.0] * 9)
    strategy = strategy_for("pro", samples=3)
    for _ in range(12):
        config = strategy.next("c")
        strategy.report("c", config, next(values))
    assert strategy.standing.value == 5.0
    assert strategy.standing.samples == 3


def test_categories_are_compared_and_never_interpolated() -> None:
    space = Space(Integer("x", 0, 20), Choice("kind", ["far", "good", "bad"]))

    def measure(config: Config) -> float:
        return abs(float(config["x"]) - 12) + {"far": 5.0, "good": 0.0, "bad": 9.0}[str(config["kind"])]

    strategy, seen = strategy_for("pro", space), set[tuple[int, str]]()
    while not strategy.standing.converged and len(seen) < 100:
        for client in "abc":
            config = strategy.next(client)
            seen.add((int(config["x"]), str(config["kind"])))
            strategy.report(client, config, measure(config))
    assert strategy.standing.best == {"x": 12, "kind": "good"}
    assert (12, "bad") in seen  # every other category of the point where the simplex had collapsed was tried


def test_constraints_hold_for_every_point() -> None:
    space = Space(Integer("x", 0, 100), Integer("y", 0, 100), constraints=["x + y <= 90"])
    strategy = strategy_for("pro", space)
    for _ in range(60):
        for x, y in step(strategy, 4, slope):
            assert x + y <= 90
    best = strategy.standing.best
    assert int(best["x"]) + int(best["y"]) == 90


def test_a_search_with_a_centre_measures_it_too() -> None:
    strategy = strategy_for("pro", centre=Config({"x": 20, "y": 30}))
    assert step(strategy, 5, slope) == [(20, 30), (30, 30), (10, 30), (20, 40), (20, 20)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prose", "unknown strategy"),
        ("pro:reach=1", "unknown option 'reach'"),
        ("pro:size", "is not NAME=VALUE"),
        ("pro:size=0", "above 0"),
        ("pro:size=much", "from 0 to 1"),
        ("pro:vertices=3N", r"write 2N or N\+1"),
        ("nelder-mead:vertices=2N", "unknown option"),
    ],
)
def test_a_wrong_strategy_is_one_line(text: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said) as caught:
        strategy_for(text)
    assert "\n" not in str(caught.value)


def test_the_documented_strategies_are_registered() -> None:
    assert set(STRATEGIES.names()) >= {"auto", "pro", "sequential", "nelder-mead"}
