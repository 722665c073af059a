import numpy as np
import pytest

from luthier.designs import DESIGNS, latin_hypercube
from luthier.space import Choice, Integer, Real, Space

SPACES = {
    "one value": Space(Integer("a", 3, 3)),
    "one parameter": Space(Integer("a", 1, 4)),
    "two-valued": Space(*(Choice(f"f{i}", [False, True]) for i in range(3))),
    "constrained": Space(Integer("a", 1, 9), Integer("b", 1, 9, default=9), constraints=["a < b"]),
    "mixed": Space(Integer("a", 1, 64, step=2, scale="log"), Real("x", 0.0, 1.0), Choice("c", ["u", "v", "w"])),
    "vast": Space(*(Integer(f"p{i}", 1, 1000) for i in range(8))),
}


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("count", [0, 1, 2, 7, 50])
def test_as_many_distinct_valid_configurations_as_there_can_be(design: str, kind: str, count: int) -> None:
    space = SPACES[kind]
    chosen = DESIGNS[design](space, count, np.random.default_rng(1))
    assert len(chosen) == min(count, space.size or count)
    assert len(set(chosen)) == len(chosen)
    assert all(space.contains(config) for config in chosen)


@pytest.mark.parametrize("design", DESIGNS)
def test_same_generator_same_design(design: str) -> None:
    first, second, other = (DESIGNS[design](SPACES["vast"], 9, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == second != other


def test_every_stratum_of_every_parameter_holds_one_point() -> None:
    space = Space(Integer("a", 0, 99), Integer("b", 0, 99), Real("x", 0.0, 1.0))
    units = space.to_unit(space.codes(latin_hypercube(space, 10, np.random.default_rng(3))))
    for column in units.T:
        assert sorted(np.floor(column * 10)) == list(range(10))


def test_categories_are_used_evenly() -> None:
    space = Space(Choice("c", ["u", "v", "w"]), Integer("a", 0, 99))
    chosen = latin_hypercube(space, 9, np.random.default_rng(3))
    assert sorted(str(config["c"]) for config in chosen) == ["u"] * 3 + ["v"] * 3 + ["w"] * 3
