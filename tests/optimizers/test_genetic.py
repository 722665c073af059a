from collections.abc import Callable

import numpy as np
import pytest

from luthier.arrays import FloatArray
from luthier.optimizers.contract import measured, unmeasured
from luthier.optimizers.genetic import GeneticSearch, one_point, roulette, tournament, two_point
from luthier.space import Choice, Integer, Space
from luthier.trial import Config, Failed, Value

SPACE = Space(Integer("a", 0, 19), Integer("b", 0, 19), Integer("c", 0, 19))


def test_one_point_crossover_cuts_between_any_two_genes() -> None:
    rng, zeros, ones = np.random.default_rng(0), np.zeros(4), np.ones(4)
    children = {tuple(one_point(zeros, ones, rng)) for _ in range(200)}
    assert children == {(0, 1, 1, 1), (0, 0, 1, 1), (0, 0, 0, 1)}


def test_two_point_crossover_takes_any_stretch_but_the_whole() -> None:
    rng, zeros, ones = np.random.default_rng(0), np.zeros(3), np.ones(3)
    children = {tuple(two_point(zeros, ones, rng)) for _ in range(300)}
    assert children == {(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1)}


@pytest.mark.parametrize("cross", [one_point, two_point])
def test_a_single_gene_is_inherited(cross: Callable[..., FloatArray]) -> None:
    assert cross(np.array([3.0]), np.array([7.0]), np.random.default_rng(0)) == np.array([3.0])


def test_a_tournament_of_all_is_won_by_the_two_fittest() -> None:
    rng = np.random.default_rng(0)
    assert tournament(6, 6, rng) == (0, 1)
    assert tournament(1, 3, rng) == (0, 0)
    pairs = [tournament(10, 2, rng) for _ in range(500)]
    assert all(first != second for first, second in pairs)
    assert max(max(pair) for pair in pairs) >= 8  # even the last but one may win
    assert np.mean([first for first, _ in pairs]) < 4.5


@pytest.mark.parametrize("values", [[-9.0, -4.0, 0.0, 5.0], [1e-300, 1.0, 2.0, 1e300]])
def test_roulette_prefers_lower_values_of_any_sign_and_size(values: list[float]) -> None:
    rng = np.random.default_rng(0)
    drawn = [roulette(np.array(values), rng) for _ in range(2000)]
    assert all(first != second for first, second in drawn)
    shares = np.bincount([first for first, _ in drawn], minlength=4) / 2000
    np.testing.assert_allclose(shares, [0.4, 0.3, 0.2, 0.1], atol=0.04)


def test_roulette_is_fair_among_equals() -> None:
    rng = np.random.default_rng(0)
    shares = np.bincount([roulette(np.full(4, -2.0), rng)[0] for _ in range(2000)]) / 2000
    np.testing.assert_allclose(shares, 0.25, atol=0.04)
    assert roulette(np.array([3.0]), rng) == (0, 0)


def config(a: int, b: int, c: int) -> Config:
    return Config({"a": a, "b": b, "c": c})


def test_without_mutation_offspring_is_made_of_its_parents() -> None:
    made: set[tuple[Value, ...]] = set()
    for seed in range(6):
        search = GeneticSearch(SPACE, seed=seed, population=2, elite=2, mutation=0.0)
        search.tell([measured(config(1, 2, 3), 1.0), measured(config(11, 12, 13), 2.0)])
        made.update(tuple(found.values()) for found in search.ask(1, []))
    assert made <= {(1, 2, 13), (1, 12, 13), (11, 12, 3), (11, 2, 3)}
    assert len(made) > 1


def test_mutation_moves_one_gene_by_one() -> None:
    search = GeneticSearch(SPACE, seed=1, population=2, elite=2, mutation=1.0)
    search.tell([measured(config(5, 5, 5), 1.0), unmeasured(config(9, 9, 9), Failed("exit 1"))])
    for found in search.ask(6, []):
        assert sum(abs(int(value) - 5) for value in found.values()) == 1


def test_the_population_is_the_best_and_the_latest() -> None:
    search = GeneticSearch(SPACE, seed=1, population=4, elite=2)
    for value, a in ((1.0, 0), (2.0, 1), (9.0, 2), (3.0, 3), (8.0, 4), (7.0, 5)):
        search.tell([measured(config(a, 0, 0), value)])
    codes, values = search._ranked_population()
    assert values.tolist() == [1.0, 2.0, 7.0, 8.0]
    assert codes[:, 0].tolist() == [0.0, 1.0, 5.0, 4.0]
    search.tell([measured(config(0, 0, 0), 10.0, 12.0)])  # more runs, and it is no longer the best
    assert search._ranked_population()[1].tolist() == [2.0, 3.0, 7.0, 8.0]


def test_begins_with_a_latin_hypercube() -> None:
    first = GeneticSearch(SPACE, seed=3, population=10).ask(10, [])
    for name in SPACE.names:
        assert sorted(int(found[name]) // 2 for found in first) == list(range(10))


@pytest.mark.parametrize("selection", ["tournament", "roulette"])
@pytest.mark.parametrize("crossover", ["one-point", "two-point"])
def test_every_variant_finds_a_good_one_of_many(selection: str, crossover: str) -> None:
    space = Space(*(Choice(f"c{i}", list(range(8))) for i in range(4)))
    values = [3, 1, 4, 0, 5, 9, 2, 6]
    bests = []
    for seed in range(5):
        search = GeneticSearch(space, seed=seed, selection=selection, crossover=crossover)  # type: ignore[arg-type]  # parametrized
        best = 99
        for _ in range(80):
            (found,) = search.ask(1, [])
            value = sum(values[int(index)] for index in found.values())
            best = min(best, value)
            search.tell([measured(found, float(value))])
        bests.append(best)
    assert np.median(bests) <= 3  # one in 120
