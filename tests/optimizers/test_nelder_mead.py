from collections.abc import Callable

import numpy as np
import pytest

from luthier.optimizers.contract import measured
from luthier.optimizers.nelder_mead import _collapsed, nelder_mead
from luthier.optimizers.simplex import Landscape
from luthier.space import Choice, Integer, Real, Space
from luthier.trial import Config

PLANE = Space(Real("x", 0.0, 1.0), Real("y", 0.0, 1.0))


def follow(values: list[float]) -> list[tuple[float, float]]:
    """The points asked for one by one, while the n-th has the n-th value."""
    search, points = nelder_mead(PLANE, seed=1, size=0.2), []
    for value in values:
        (config,) = search.ask(1, [])
        points.append((float(config["x"]), float(config["y"])))
        search.tell([measured(config, value)])
    (config,) = search.ask(1, [])
    return [*points, (float(config["x"]), float(config["y"]))]


def near(point: tuple[float, float]) -> object:
    return pytest.approx(point, abs=1e-9)


def test_the_first_simplex_reflection_and_expansion() -> None:
    points = follow([3.0, 2.0, 1.0, 0.5, 0.4])
    assert points[:3] == [near((0.5, 0.5)), near((0.7, 0.5)), near((0.5, 0.7))]
    assert points[3] == near((0.7, 0.7))  # the worst across the middle of the others
    assert points[4] == near((0.8, 0.8))  # better than the best: twice as far
    assert points[5] == near((0.6, 1.0))  # (0.7, 0.5) across the middle of (0.5, 0.7) and (0.8, 0.8)


def test_a_middling_reflection_is_taken_as_it_is() -> None:
    points = follow([3.0, 2.0, 1.0, 1.5])
    assert points[4] == near((0.5, 0.9))  # (0.7, 0.5) across that of (0.5, 0.7), (0.7, 0.7)


def test_contraction_outside_and_inside_and_shrinking() -> None:
    assert follow([3.0, 2.0, 1.0, 2.5])[4] == near((0.65, 0.65))
    assert follow([3.0, 2.0, 1.0, 9.0])[4] == near((0.55, 0.55))
    shrunk = follow([3.0, 2.0, 1.0, 9.0, 9.0, 9.0])
    assert {shrunk[5], shrunk[6]} == {(0.5, 0.6), (0.6, 0.6)}


def test_what_it_may_need_next_fills_a_larger_question() -> None:
    search = nelder_mead(PLANE, seed=1, size=0.2)
    for config, value in zip(search.ask(3, []), (3.0, 2.0, 1.0), strict=True):
        search.tell([measured(config, value)])
    points = [(float(config["x"]), float(config["y"])) for config in search.ask(4, [])]
    assert points == [near((0.7, 0.7)), near((0.8, 0.8)), near((0.65, 0.65)), near((0.55, 0.55))]


def best_after(space: Space, height: Callable[[Config], float], steps: int, seed: int = 1) -> Config:
    search, seen = nelder_mead(space, seed=seed), dict[Config, float]()
    for _ in range(steps):
        for config in search.ask(1, []):
            seen[config] = height(config)
            search.tell([measured(config, seen[config])])
    return min(seen, key=seen.__getitem__)


def test_the_bottom_of_a_bowl_on_a_grid() -> None:
    space = Space(Integer("a", 0, 60), Integer("b", 0, 60))
    best = best_after(space, lambda c: (int(c["a"]) - 13) ** 2 + 2.0 * (int(c["b"]) - 47) ** 2, 60)
    assert best == {"a": 13, "b": 47}


def test_the_bottom_of_a_bowl_on_the_plane() -> None:
    best = best_after(PLANE, lambda c: (float(c["x"]) - 0.13) ** 2 + (float(c["y"]) - 0.77) ** 2, 60)
    assert best["x"] == pytest.approx(0.13, abs=0.01)
    assert best["y"] == pytest.approx(0.77, abs=0.01)


def test_categories_are_compared_where_the_simplex_ends() -> None:
    space = Space(Integer("a", 0, 20), Choice("c", ["p", "q", "r", "s"]))
    best = best_after(space, lambda c: abs(int(c["a"]) - 6) + 30.0 * (c["c"] != "r"), 40)
    assert best == {"a": 6, "c": "r"}


def test_a_local_optimum_is_left_for_another_simplex() -> None:
    space = Space(Integer("a", 0, 40))
    best = best_after(space, lambda c: min(abs(int(c["a"]) - 20) + 1.0, 3.0 * abs(int(c["a"]) - 2)), 41)
    assert best == {"a": 2}


def test_a_flat_or_one_point_simplex_has_collapsed() -> None:
    space = Space(Integer("a", 0, 9), Integer("b", 0, 9), Choice("c", ["u", "v"]))
    landscape = Landscape(space, 0)
    assert _collapsed(landscape, np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [3.0, 3.0, 0.0]]))
    assert _collapsed(landscape, np.array([[1.0, 1.0, 0.0]] * 3))
    assert _collapsed(landscape, np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0]]))
    assert not _collapsed(landscape, np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [3.0, 2.0, 0.0]]))
