"""What every registered design promises, and what each is for."""

import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.arrays import FloatArray
from luthier.designs import DESIGNS, factorial, latin_hypercube
from luthier.designs.candidates import squared_distances
from luthier.designs.statistical import Knowledge
from luthier.space import Choice, Integer, Parameter, Real, Space
from luthier.trial import Config

SPACES = {
    "one value": Space(Integer("a", 3, 3)),
    "one parameter": Space(Integer("a", 1, 4)),
    "two-valued": Space(*(Choice(f"f{i}", [False, True]) for i in range(3))),
    "constrained": Space(Integer("a", 1, 9), Integer("b", 1, 9, default=9), constraints=["a < b"]),
    "sparse": Space(Integer("a", 0, 40), Integer("b", 0, 40, default=40), constraints=["a + b == 40"]),
    "mixed": Space(
        Integer("a", 1, 64, step=2, scale="log"),
        Integer("one", 2, 2),
        Real("x", 0.0, 1.0),
        Choice("c", ["u", "v", "w"]),
    ),
    "continuous": Space(Real("x", -1.0, 1.0), Real("y", 1e-3, 1e3, scale="log"), constraints=["x < y"]),
    "vast": Space(*(Integer(f"p{i}", 1, 1000) for i in range(8))),
    "many flags": Space(*(Choice(f"f{i}", [False, True]) for i in range(30))),
}
CODE = """
import numpy as np, sys
from luthier.designs import DESIGNS
from luthier.space import Choice, Integer, Space
axes = Integer("a", 1, 500), Integer("b", 1, 50, default=50), Choice("c", list("uvwxyz"))
space = Space(*axes, constraints=["a < 9 * b"])
print(DESIGNS[sys.argv[1]](space, 9, np.random.default_rng(4)))
"""


def check(space: Space, chosen: list[Config], count: int) -> None:
    assert len(chosen) == min(count, space.size or count)
    assert len(set(chosen)) == len(chosen)
    assert all(space.contains(config) for config in chosen)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("count", [-1, 0, 1, 7, 20])
def test_as_many_distinct_valid_configurations_as_there_can_be(design: str, kind: str, count: int) -> None:
    check(SPACES[kind], DESIGNS[design](SPACES[kind], count, np.random.default_rng(1)), max(count, 0))


@pytest.mark.parametrize("design", DESIGNS)
def test_large_designs(design: str) -> None:
    space = Space(Integer("a", 0, 19), Integer("b", 0, 14))
    check(space, DESIGNS[design](space, 299, np.random.default_rng(1)), 299)
    check(SPACES["vast"], DESIGNS[design](SPACES["vast"], 220, np.random.default_rng(1)), 220)


@pytest.mark.parametrize("design", DESIGNS)
@settings(max_examples=12, deadline=None)
@given(sizes=st.lists(st.integers(-6, 6).filter(bool), min_size=1, max_size=4), count=st.integers(0, 20))
def test_any_small_space(design: str, sizes: list[int], count: int) -> None:
    parameters: list[Parameter] = [
        Integer(f"p{i}", 1, size) if size > 0 else Choice(f"p{i}", [f"v{j}" for j in range(-size)])
        for i, size in enumerate(sizes)
    ]
    space = Space(*parameters)
    check(space, DESIGNS[design](space, count, np.random.default_rng(0)), count)


@pytest.mark.parametrize("design", DESIGNS)
def test_same_generator_same_design(design: str) -> None:
    first, second, other = (DESIGNS[design](SPACES["vast"], 9, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == second != other


@pytest.mark.parametrize("design", DESIGNS)
def test_same_design_in_another_process(design: str) -> None:
    answers = {
        subprocess.run(
            [sys.executable, "-c", CODE, design],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "77")
    }
    assert len(answers) == 1


def test_every_stratum_of_every_parameter_holds_one_point() -> None:
    space = Space(Integer("a", 0, 99), Integer("b", 0, 99), Real("x", 0.0, 1.0))
    for design in ("latin-hypercube", "maximin-lhd"):
        units = space.to_unit(space.codes(DESIGNS[design](space, 10, np.random.default_rng(3))))
        for column in units.T:
            assert sorted(np.floor(column * 10)) == list(range(10))


def test_categories_are_used_evenly() -> None:
    space = Space(Choice("c", ["u", "v", "w"]), Integer("a", 0, 99))
    chosen = latin_hypercube(space, 9, np.random.default_rng(3))
    assert sorted(str(config["c"]) for config in chosen) == ["u"] * 3 + ["v"] * 3 + ["w"] * 3


def test_points_beside_the_valid_ones_keep_their_places_along_the_parameters_that_allow_it() -> None:
    space = Space(
        Integer("a", 0, 4),
        Choice("b", [1, 2, 3, 4, 1000], 1000, ordered=True),
        constraints=["b != 1000 or a == 0"],
    )
    for seed in range(20):
        chosen = latin_hypercube(space, 10, np.random.default_rng(seed))
        uses = [sum(config["a"] == value for config in chosen) for value in range(5)]
        assert max(abs(use - 2) for use in uses) <= 1, uses


def test_a_point_that_moves_in_a_grid_of_thousands_still_goes_to_its_very_neighbour() -> None:
    """With the published default beside the grid, as a prefetcher's is, one in three points has to move."""
    space = Space(
        Integer("threshold", 2, 102, step=20),
        *(Choice(name, [*range(10), 1000], 1000, ordered=True) for name in "abc"),
        constraints=[
            "a != 1000 and b != 1000 and c != 1000 or threshold == 2 and a == 1000 and b == 1000 and c == 1000"
        ],
    )
    for seed in range(40):
        chosen = latin_hypercube(space, 9, np.random.default_rng(seed))
        assert {config["threshold"] for config in chosen} == {2, 22, 42, 62, 82, 102}, seed


COMPARED = {
    "square": Space(Integer("a", 0, 39), Integer("b", 0, 39)),
    "wedge": Space(Integer("a", 0, 59), Integer("b", 0, 59), constraints=["a <= b"]),
    "with categories": Space(Integer("a", 0, 19), Real("x", 0.0, 1.0, step=0.05), Choice("c", ["u", "v", "w"])),
}


def smallest_distance(space: Space, units: FloatArray) -> float:
    squares = squared_distances(space.ordered, units, units)
    return float(squares[np.triu_indices(len(units), 1)].min())


def nearness(space: Space, units: FloatArray) -> float:
    """Minus the largest squared distance from a configuration to the nearest point of the design."""
    return -float(squared_distances(space.ordered, units, space.to_unit(space.grid())).min(axis=0).max())


def entropy(space: Space, units: FloatArray) -> float:
    return float(np.linalg.slogdet(Knowledge(space, units).correlation(units) + 1e-9 * np.eye(len(units)))[1])


def certainty(space: Space, units: FloatArray) -> float:
    knowledge = Knowledge(space, np.concatenate((units, space.to_unit(space.grid()))))
    for row in range(len(units)):
        knowledge.learn(row)
    return -float(knowledge.variance[len(units) :].mean())


CRITERIA = {"maximin-lhd": smallest_distance, "minimax": nearness, "d-optimal": entropy, "i-optimal": certainty}


@pytest.mark.parametrize("kind", COMPARED)
@pytest.mark.parametrize("design", CRITERIA)
def test_each_is_better_than_any_latin_hypercube_by_its_own_criterion(design: str, kind: str) -> None:
    space, criterion = COMPARED[kind], CRITERIA[design]

    def worth(name: str, seed: int) -> float:
        return criterion(space, space.to_unit(space.codes(DESIGNS[name](space, 12, np.random.default_rng(seed)))))

    assert worth(design, 1) > max(worth("latin-hypercube", seed) for seed in range(8))


def test_the_covering_radius_of_a_line() -> None:
    space = Space(Integer("a", 0, 8))
    chosen = sorted(int(config["a"]) for config in DESIGNS["minimax"](space, 3, np.random.default_rng(1)))
    assert chosen == [1, 4, 7]


def test_d_optimal_points_lie_at_the_ends_first() -> None:
    space = Space(Integer("a", 0, 8), Integer("b", 0, 8))
    chosen = DESIGNS["d-optimal"](space, 4, np.random.default_rng(1))
    assert {(config["a"], config["b"]) for config in chosen} == {(0, 0), (0, 8), (8, 0), (8, 8)}


def test_an_i_optimal_point_lies_in_the_middle() -> None:
    space = Space(Integer("a", 0, 8), Integer("b", 0, 8))
    assert DESIGNS["i-optimal"](space, 1, np.random.default_rng(1)) == [{"a": 4, "b": 4}]


def test_posterior_variances_are_those_of_the_textbook() -> None:
    space, rng = COMPARED["with categories"], np.random.default_rng(0)
    units = space.to_unit(space.sample_codes(30, rng))
    knowledge = Knowledge(space, units)
    for row in range(6):
        knowledge.learn(row)
    prior = knowledge.correlation(units)
    inner = np.linalg.solve(prior[:6, :6] + 1e-6 * np.eye(6), prior[:6])
    np.testing.assert_allclose(knowledge.variance, np.maximum(1.0 - np.sum(prior[:6] * inner, axis=0), 0.0), atol=1e-5)


def levels(chosen: list[Config], name: str) -> list[int]:
    return sorted(Counter(int(config[name]) for config in chosen).values())


def test_a_factorial_has_low_and_high_then_levels_between() -> None:
    space = Space(Integer("a", 0, 10), Integer("b", 0, 10))
    for count, values in ((4, {0, 10}), (9, {0, 5, 10}), (16, {0, 3, 7, 10})):
        chosen = factorial(space, count, np.random.default_rng(1))
        assert {(config["a"], config["b"]) for config in chosen} == {(a, b) for a in values for b in values}


def test_a_fraction_of_a_factorial_is_balanced() -> None:
    space = Space(*(Integer(f"p{i}", 0, 9) for i in range(7)))
    chosen = factorial(space, 8, np.random.default_rng(1))
    for name in space.names:
        assert {config[name] for config in chosen} == {0, 9}
        assert levels(chosen, name) == [4, 4]
    many = SPACES["many flags"]
    chosen = factorial(many, 20, np.random.default_rng(1))
    for name in many.names:
        low, high = levels(chosen, name)
        assert high - low <= 4


def test_a_factorial_uses_the_levels_constraints_leave() -> None:
    space = Space(Integer("a", 0, 10), Integer("b", 0, 10, default=10), constraints=["a < b"])
    chosen = {(config["a"], config["b"]) for config in factorial(space, 3, np.random.default_rng(1))}
    assert chosen == {(0, 5), (0, 10), (5, 10)}
