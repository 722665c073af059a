from collections.abc import Callable, Sequence

import pytest

from luthier.optimizers import Optimizer, make_optimizer
from luthier.optimizers.contract import measured, unmeasured
from luthier.optimizers.rank_ordering import parallel_rank_ordering, sequential_rank_ordering
from luthier.space import Choice, Integer, Space
from luthier.trial import Config, Failed

SPACE = Space(Integer("a", 0, 40), Integer("b", 0, 40))
Point = tuple[int, int]


def asked(search: Optimizer, count: int) -> list[Point]:
    return [(int(config["a"]), int(config["b"])) for config in search.ask(count, [])]


def tell(search: Optimizer, points: Sequence[Point], height: Callable[[int, int], float]) -> None:
    search.tell([measured(Config({"a": a, "b": b}), height(a, b)) for a, b in points])


FIRST = [(24, 20), (16, 20), (20, 24), (20, 16)]  # the middle, and a tenth of each range either way


def test_the_first_generation() -> None:
    assert asked(parallel_rank_ordering(SPACE, seed=1), 4) == FIRST
    assert asked(parallel_rank_ordering(SPACE, seed=1, size=0.5), 4) == [(30, 20), (10, 20), (20, 30), (20, 10)]


def test_a_generation_may_be_handed_out_piecemeal() -> None:
    search, height = parallel_rank_ordering(SPACE, seed=1), lambda a, b: float(a + b)
    for point in FIRST:
        assert asked(search, 1) == [point]
        tell(search, [point], height)
    assert asked(search, 3) == [(12, 24), (8, 20), (12, 16)]


def test_reflections_expansion_check_and_expansions() -> None:
    search, height = parallel_rank_ordering(SPACE, seed=1), lambda a, b: float(a)
    tell(search, FIRST, height)
    # Around v0 = (16, 20): all reflections 2 v0 - vj, in order of the values of vj.
    reflections = [(12, 16), (12, 24), (8, 20)]
    assert asked(search, 3) == reflections
    tell(search, reflections, height)
    assert asked(search, 1) == [(0, 20)]  # 3 v0 - 2 vl, with vl = (24, 20)
    tell(search, [(0, 20)], height)
    assert asked(search, 2) == [(8, 12), (8, 28)]


def test_reflections_are_kept_where_the_expansion_is_no_better() -> None:
    search = parallel_rank_ordering(SPACE, seed=1)

    def height(a: int, b: int) -> float:
        return float(abs(a - 8)) + 0.1 * abs(b - 20)

    tell(search, FIRST, height)
    tell(search, asked(search, 3), height)
    assert asked(search, 1) == [(0, 20)]
    tell(search, [(0, 20)], height)
    # Around (8, 20) now: its reflections of (16, 20), (12, 16) and (12, 24); the first is known already.
    assert asked(search, 2) == [(4, 24), (4, 16)]


def test_shrinking_rounds_towards_the_best() -> None:
    search = parallel_rank_ordering(Space(Integer("a", 0, 30), Integer("b", 0, 30)), seed=1)
    first = [(18, 15), (12, 15), (15, 18), (15, 12)]
    tell(search, first, lambda a, b: float(a != 12))
    reflections = asked(search, 3)
    assert set(reflections) == {(6, 15), (9, 12), (9, 18)}
    tell(search, reflections, lambda a, b: 5.0)
    assert set(asked(search, 3)) == {(15, 15), (13, 16), (13, 14)}  # 13.5 and 16.5, 13.5: towards (12, 15)


def test_sequential_tries_the_reflection_of_the_worst_first() -> None:
    search, height = sequential_rank_ordering(SPACE, seed=1), lambda a, b: float(a)
    tell(search, FIRST, height)
    assert asked(search, 1) == [(8, 20)]
    tell(search, [(8, 20)], height)
    assert asked(search, 1) == [(0, 20)]
    tell(search, [(0, 20)], height)
    assert asked(search, 2) == [(8, 12), (8, 28)]
    worse = sequential_rank_ordering(SPACE, seed=1)
    tell(worse, FIRST, height)
    tell(worse, [(8, 20)], lambda a, b: 99.0)
    assert set(asked(worse, 3)) == {(18, 18), (18, 22), (20, 20)}


@pytest.mark.parametrize("name", ["parallel-rank-ordering", "sequential-rank-ordering"])
def test_convergence_is_checked_with_the_neighbours_then_it_starts_elsewhere(name: str) -> None:
    search, seen = make_optimizer(name, SPACE, seed=1), list[Point]()

    def height(a: int, b: int) -> float:
        return float(abs(a - 16) + abs(b - 20))

    while not {(15, 20), (17, 20), (16, 19), (16, 21)} <= set(seen):
        assert len(seen) < 40
        (point,) = asked(search, 1)
        seen.append(point)
        tell(search, [point], height)
    (start,) = asked(search, 1)
    assert abs(start[0] - 16) + abs(start[1] - 20) > 3
    tell(search, [start], height)
    around = asked(search, 4)
    assert all(a == start[0] or b == start[1] for a, b in around)


def test_values_told_before_are_not_asked_for_again() -> None:
    search, height = parallel_rank_ordering(SPACE, seed=1), lambda a, b: float(a)
    tell(search, [(8, 20), (16, 20), (0, 20)], height)
    assert asked(search, 3) == [FIRST[0], *FIRST[2:]]
    tell(search, [FIRST[0], *FIRST[2:]], height)
    assert asked(search, 2) == [(12, 16), (12, 24)]


def test_a_simplex_without_a_number_is_left() -> None:
    search = parallel_rank_ordering(SPACE, seed=1)
    search.tell([unmeasured(config, Failed("exit 1")) for config in search.ask(4, [])])
    (start,) = asked(search, 1)
    assert start not in FIRST
    assert abs(start[0] - 20) + abs(start[1] - 20) > 4


def test_categories_are_never_ordered() -> None:
    """The values between two categories of a list are no way from one to the other."""
    space = Space(Choice("c", ["u", "v", "w", "x", "y"], default="x"), Integer("a", 0, 40), Choice("on", [False, True]))
    first = parallel_rank_ordering(space, seed=1).ask(2, [])
    assert first == [{"c": "x", "a": 24, "on": False}, {"c": "x", "a": 16, "on": False}]
    search, seen = parallel_rank_ordering(space, seed=1), dict[Config, float]()
    while Config({"c": "v", "a": 11, "on": True}) not in seen:
        assert len(seen) < 80
        (config,) = search.ask(1, [])
        seen[config] = abs(int(config["a"]) - 11) + 50.0 * (config["c"] != "v") + 50.0 * (config["on"] is False)
        search.tell([measured(config, seen[config])])


def test_vertices_stay_within_the_constraints() -> None:
    space = Space(Integer("a", 0, 40), Integer("b", 0, 40), constraints=["a + b <= 44"])
    search, best = parallel_rank_ordering(space, seed=1), 0
    for _ in range(60):
        for config in search.ask(4, []):
            assert space.contains(config)
            best = max(best, int(config["a"]) + int(config["b"]))
            search.tell([measured(config, -float(config["a"]) - float(config["b"]))])
    assert best == 44
