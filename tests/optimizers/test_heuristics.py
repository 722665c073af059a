"""What the classical heuristics have in common."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.arrays import FloatArray
from luthier.errors import InvalidInputError
from luthier.optimizers import Optimizer, make_optimizer
from luthier.optimizers.contract import measured, unmeasured
from luthier.optimizers.simplex import Landscape
from luthier.optimizers.vicinity import nearest_free, step, walk
from luthier.space import Choice, Integer, Real, Space
from luthier.trial import Config, Failed

HEURISTICS = ("annealing", "genetic", "nelder-mead", "parallel-rank-ordering", "sequential-rank-ordering")

CASES: dict[str, tuple[Space, Callable[[FloatArray], float]]] = {
    "bowl": (Space(*(Integer(name, 0, 12) for name in "abc")), lambda u: float(np.sum((u - 0.3) ** 2))),
    "corner": (Space(*(Integer(name, 0, 6) for name in "abcd")), lambda u: -float(np.sum(u))),
    "flags": (
        Space(*(Choice(f"f{i}", [False, True]) for i in range(11))),
        lambda u: float(np.arange(1.0, 12.0) @ (u - 0.25)),
    ),
    "runtime": (
        Space(*(Integer(name, 0, 8) for name in "ab"), Choice("c", list("uvwxyz")), Real("x", 0.0, 1.0, step=0.25)),
        lambda u: math.exp(3.0 * float(np.sum((u[[0, 1, 3]] - 0.7) ** 2)) + [2, 1, 0, 1, 3, 2][int(6 * u[2])]),
    ),
    "wedge": (
        Space(Integer("a", 1, 60), Integer("b", 1, 60), constraints=["a <= b"]),
        lambda u: float((u[0] - 0.45) ** 2 + (u[1] - 0.4) ** 2),
    ),
}


def play(search: Optimizer, space: Space, objective: Callable[[FloatArray], float], steps: int) -> dict[Config, float]:
    seen: dict[Config, float] = {}
    for _ in range(steps):
        for config in search.ask(1, []):
            assert config not in seen
            seen[config] = objective(space.to_unit(space.codes([config]))[0])
            search.tell([measured(config, seen[config])])
    return seen


@cache
def best_of(name: str, case: str, seed: int) -> float:
    space, objective = CASES[case]
    return min(play(make_optimizer(name, space, seed=seed, budget=60), space, objective, 60).values())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", HEURISTICS)
def test_beats_random_search_in_the_median(name: str, case: str) -> None:
    found = [best_of(name, case, seed) for seed in range(5)]
    assert np.median(found) < np.median([best_of("random", case, seed) for seed in range(9)])


@pytest.mark.parametrize("name", HEURISTICS)
@pytest.mark.parametrize("goal", [0, 30])
def test_reaches_both_ends_of_an_axis(name: str, goal: int) -> None:
    space = Space(Integer("a", 0, 30))
    search = make_optimizer(name, space, seed=1)
    seen = play(search, space, lambda u: abs(31.0 * float(u[0]) - 0.5 - goal), 25)
    assert Config({"a": goal}) in seen


@pytest.mark.parametrize("name", HEURISTICS)
def test_finds_what_is_left_of_a_space_nearly_exhausted(name: str) -> None:
    space, objective = CASES["bowl"]
    search, rows = make_optimizer(name, space, seed=2), space.grid()
    everything, units = space.configs(rows), space.to_unit(rows)
    left = {5, 700, 2196}
    search.tell([measured(everything[row], objective(units[row])) for row in range(len(rows)) if row not in left])
    assert set(search.ask(2, [])) | set(search.ask(9, [])) == {everything[row] for row in left}
    assert search.ask(1, [everything[row] for row in left]) == []


@pytest.mark.parametrize("name", HEURISTICS)
def test_valid_points_that_are_no_neighbours_of_each_other(name: str) -> None:
    space = Space(Integer("a", 0, 40), Integer("b", 0, 40, default=40), constraints=["a + b == 40", "a % 4 == 0"])
    seen = play(make_optimizer(name, space, seed=3), space, lambda u: float(u[0]), 20)
    assert len(seen) == space.size == 11


@pytest.mark.parametrize("name", HEURISTICS)
def test_a_million_million_points_many_at_once(name: str) -> None:
    space = Space(*(Integer(f"p{i}", 0, 999, default=500) for i in range(4)), constraints=["p0 + p1 > 100 or p2 > 10"])
    search, best = make_optimizer(name, space, seed=4, budget=160), math.inf
    for _ in range(20):
        answer = search.ask(8, [])
        assert len(set(answer)) == 8
        units = space.to_unit(space.codes(answer))
        values = [float(np.sum((unit - 0.6) ** 2)) for unit in units]
        best = min(best, *values)
        search.tell([measured(config, value) for config, value in zip(answer, values, strict=True)])
    assert best < 0.03


@pytest.mark.parametrize("name", HEURISTICS)
def test_a_region_that_fails_is_left(name: str) -> None:
    space = Space(Integer("a", 0, 19), Integer("b", 0, 19))
    search, best = make_optimizer(name, space, seed=5), math.inf
    for _ in range(80):
        (config,) = search.ask(1, [])
        a, b = (float(config[name]) for name in "ab")
        if a + b < 24:  # the middle of the space, too
            search.tell([unmeasured(config, Failed("exit 1"))])
        else:
            best = min(best, a + b)
            search.tell([measured(config, a + b)])
    assert best <= 26


WRONG: list[tuple[str, str, float | str, str]] = [
    ("annealing", "schedule", "quadratic", "known: exponential, linear, logarithmic"),
    ("annealing", "restart", "often", "known: none, random, threshold"),
    ("annealing", "cooling", 0.0, "above 0"),
    ("annealing", "cooling", 1.5, "from 0 to 1"),
    ("annealing", "temperature", -1.0, "above 0"),
    ("annealing", "restart_at", 2.0, "from 0 to 1"),
    ("annealing", "restarts", -1, "0 or more"),
    ("annealing", "initial", 0, "1 or more"),
    ("genetic", "population", 1, "2 or more"),
    ("genetic", "elite", 11, "above population 10"),
    ("genetic", "selection", "luck", "known: roulette, tournament"),
    ("genetic", "crossover", "three-point", "known: one-point, two-point"),
    ("genetic", "mutation", math.nan, "from 0 to 1"),
    ("genetic", "mutation", True, "from 0 to 1"),
    ("genetic", "tournament", 0, "1 or more"),
    ("nelder-mead", "size", 0.0, "above 0"),
    ("parallel-rank-ordering", "size", "big", "from 0 to 1"),
    ("sequential-rank-ordering", "size", 0, "above 0"),
]


@pytest.mark.parametrize(("name", "option", "value", "advice"), WRONG)
def test_wrong_options_are_refused(name: str, option: str, value: float | str, advice: str) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(InvalidInputError, match=f"optimizer {name}: {option} .*{advice}"):
        make_optimizer(name, CASES["bowl"][0], seed=0, **options)


MIXED = Space(
    Integer("a", 0, 7),
    Integer("one", 3, 3),
    Choice("c", ["u", "v", "w"]),
    Integer("fine", 0, 99),
    Real("x", 0.0, 1.0),
    Integer("log", 1, 1000, scale="log"),
    constraints=["a + fine < 100"],
)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_a_step_moves_what_it_should_and_not_far(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = MIXED.sample_codes(1, rng)
    moved = np.ones(codes.shape, dtype=np.bool_)
    after = step(MIXED, codes, moved, rng)[0]
    assert abs(after[0] - codes[0, 0]) == 1.0
    assert after[1] == 0.0
    assert after[2] != codes[0, 2]
    assert 1.0 <= abs(after[3] - codes[0, 3]) <= 5.0
    assert 0.0 < abs(after[4] - codes[0, 4]) <= 0.05 + 1e-12
    MIXED.configs(after[None, :])  # all of them codes of the space
    np.testing.assert_array_equal(step(MIXED, codes, ~moved, rng), codes)


def test_a_walk_goes_everywhere_around() -> None:
    space = Space(Integer("a", 0, 9), Integer("b", 0, 9))
    rows = walk(space, np.array([8.0, 0.0]), 400, np.random.default_rng(0))
    assert {tuple(row) for row in rows} == {(a, b) for a in (7, 8, 9) for b in (0, 1)} - {(8, 0)}


def test_of_many_parameters_only_some_move() -> None:
    space = Space(*(Choice(f"f{i}", [False, True]) for i in range(20)))
    rows = walk(space, np.zeros(20), 400, np.random.default_rng(0))
    assert np.mean(rows.sum(axis=1)) < 2.0


def test_the_nearest_free_is_a_neighbour_then_near_then_any() -> None:
    space, rng = Space(Integer("a", 0, 9), Choice("c", ["u", "v"])), np.random.default_rng(0)
    here = np.array([5.0, 0.0])
    order, taken = [], {space.decode(here)}
    while (found := nearest_free(space, here, taken, rng)) is not None:
        order.append(found)
        taken.add(found)
    assert {(config["a"], config["c"]) for config in order[:3]} == {(4, "u"), (6, "u"), (5, "v")}
    assert {(config["a"], config["c"]) for config in order[3:5]} == {(4, "v"), (6, "v")}
    assert len(order) == 19


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_a_projection_is_valid_and_rounds_towards_the_centre(seed: int, inward: bool) -> None:
    rng, landscape = np.random.default_rng(seed), Landscape(MIXED, 0)
    centre = MIXED.sample_codes(1, rng)[0]
    targets = landscape.unit(centre) + rng.normal(0.0, 0.5, (20, len(centre)))
    rows = landscape.project(centre, targets, inward=inward)
    assert MIXED.feasible(rows).all()
    MIXED.configs(rows)
    assert (rows[:, 2] == centre[2]).all()
    if inward:
        way, gone = targets - landscape.unit(centre), landscape.unit(rows) - landscape.unit(centre)
        for axis in landscape.axes:
            assert (np.abs(gone[:, axis]) <= np.abs(way[:, axis]) + 1e-9).all()
            assert (gone[:, axis] * way[:, axis] >= 0.0).all()


def test_shrinking_always_collapses() -> None:
    landscape, rng = Landscape(MIXED, 0), np.random.default_rng(1)
    centre, row = MIXED.sample_codes(2, rng)
    row[2] = centre[2]
    row = landscape.project(centre, landscape.unit(row))[0]
    for _ in range(30):
        row = landscape.project(centre, 0.5 * (landscape.unit(centre) + landscape.unit(row)))[0]
    assert landscape.coincide(np.stack([centre, row]))
