"""Several objectives: fronts, volumes, and the search for them."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.arrays import FloatArray
from luthier.errors import InvalidInputError
from luthier.optimizers import make_optimizer
from luthier.optimizers.contract import SPACES, CheckedSearch, measured, unmeasured, value_at
from luthier.optimizers.friendly import optimizer
from luthier.optimizers.front import front_of
from luthier.optimizers.hypervolume import NormalPrediction, log_expected_hypervolume_improvement, open_boxes
from luthier.space import Choice, Integer, Real, Space
from luthier.trial import Completed, Config, Estimate, Failed, Lost, Trial

Objectives = Callable[[FloatArray], tuple[float, ...]]


def trial_of(config: Config, values: Sequence[float]) -> Trial:
    first, *others = (Estimate(float(value), 1) for value in values)
    return Trial(config, (Completed(first.value, tuple(o.value for o in others)),), first, tuple(others))


def time_and_memory(u: FloatArray) -> tuple[float, ...]:
    threads = 1.0 + 15.0 * u[0]
    seconds = 40.0 / threads * (1.0 + 4.0 * (u[1] - 0.7) ** 2) * (1.5 if u[3] > 0.5 else 1.0)
    return float(seconds), float(100.0 * threads * (0.3 + u[1]) + 50.0 * (u[3] < 0.5) + 200.0 * u[2])


def two_bowls(u: FloatArray) -> tuple[float, ...]:
    return float(np.sum((u - 0.2) ** 2)), float(np.sum((u - 0.8) ** 2))


def three_bowls(u: FloatArray) -> tuple[float, ...]:
    return (*two_bowls(u), float(np.sum((u - np.array([0.8, 0.2, 0.5])) ** 2)))


CASES: dict[str, tuple[Space, Objectives]] = {
    "time and memory": (
        Space(Integer("a", 0, 15), Integer("b", 0, 9), Integer("c", 0, 4), Choice("d", ["x", "y"])),
        time_and_memory,
    ),
    "two bowls": (Space(*(Integer(name, 0, 14) for name in "abc")), two_bowls),
    "three bowls": (Space(*(Integer(name, 0, 9) for name in "abc")), three_bowls),
    "vast": (Space(*(Real(name, 0.0, 1.0) for name in "abc")), two_bowls),
    "below zero": (
        Space(*(Integer(name, 0, 14) for name in "abc")),
        lambda u: (two_bowls(u)[0] - 1.0, two_bowls(u)[1] - 1.0),
    ),
}


def value_of(space: Space, objectives: Objectives, config: Config) -> tuple[float, ...]:
    return objectives(space.to_unit(space.codes([config]))[0])


def explored(name: str, case: str, seed: int, steps: int) -> FloatArray:
    space, objectives = CASES[case]
    search, seen = make_optimizer(name, space, seed=seed, budget=steps), []
    for _ in range(steps):
        for config in search.ask(1, []):
            seen.append(value_of(space, objectives, config))
            search.tell([trial_of(config, seen[-1])])
    return np.array(seen)


def hypervolume(points: FloatArray, reference: FloatArray) -> float:
    """The volume that `points` dominate below `reference`; a row for each point, two or three objectives."""
    floor = np.minimum(points.min(axis=0, initial=math.inf), reference)
    whole, left = reference - floor, 0.0
    for lower, upper in open_boxes(points, reference):
        left += float(np.prod(np.array(upper) - np.maximum(lower, floor)))
    return float(np.prod(whole)) - left


@pytest.mark.parametrize("case", CASES)
def test_finds_the_front_and_beats_random(case: str) -> None:
    space, objectives = CASES[case]
    codes = space.sample_codes(4_000, np.random.default_rng(0)) if space.size is None else space.grid()
    everything = np.array([objectives(unit) for unit in space.to_unit(codes)])
    reference = np.quantile(everything, 0.8, axis=0)
    found = {
        name: [hypervolume(explored(name, case, seed, 60), reference) for seed in range(3)]
        for name in ("pareto", "random")
    }
    whole = hypervolume(everything, reference)
    assert min(found["pareto"]) > 0.9 * whole
    lost_at_random = whole - np.median(found["random"])
    assert whole - np.median(found["pareto"]) < 0.5 * lost_at_random


def test_a_volume_by_hand() -> None:
    reference = np.array([4.0, 4.0])
    assert hypervolume(np.empty((0, 2)), reference) == 0.0
    assert hypervolume(np.array([[1.0, 1.0]]), reference) == 9.0
    assert hypervolume(np.array([[1.0, 3.0], [3.0, 1.0], [3.5, 3.5], [5.0, 0.0]]), reference) == 5.0
    cube = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert hypervolume(cube, np.array([2.0, 2.0, 2.0])) == 7.0


_small = st.integers(0, 6)


@given(st.integers(2, 3).flatmap(lambda k: st.lists(st.tuples(*[_small] * k), max_size=12)))
def test_a_volume_is_the_number_of_dominated_cells(points: list[tuple[int, ...]]) -> None:
    if not points:
        return
    array, size = np.array(points, dtype=np.float64), len(points[0])
    cells = np.stack(np.meshgrid(*[np.arange(6)] * size, indexing="ij"), axis=-1).reshape(-1, size)
    dominated = sum(bool(np.all(array <= cell, axis=1).any()) for cell in cells)
    assert hypervolume(array, np.full(size, 6.0)) == pytest.approx(dominated, abs=1e-9)


@pytest.mark.parametrize("objectives", [2, 3])
@pytest.mark.parametrize("logarithmic", [False, True])
def test_the_expected_improvement_is_what_draws_improve_on_average(objectives: int, logarithmic: bool) -> None:
    rng = np.random.default_rng(5)
    points, reference = rng.random((8, objectives)), np.full(objectives, 0.9)
    mean, deviation = 0.2 + 0.5 * rng.random((objectives, 4)), 0.1 + 0.4 * rng.random((objectives, 4))
    inner = np.log(mean) if logarithmic else mean
    predictions = [NormalPrediction(inner[k], deviation[k], logarithmic) for k in range(objectives)]
    expected = np.exp(log_expected_hypervolume_improvement(predictions, points, reference))
    before = hypervolume(points, reference)
    for candidate in range(4):
        draws = inner[:, candidate] + deviation[:, candidate] * rng.standard_normal((3_000, objectives))
        outward = np.exp(draws) if logarithmic else draws
        gains = [hypervolume(np.vstack((points, draw)), reference) - before for draw in outward]
        assert expected[candidate] == pytest.approx(np.mean(gains), abs=5.0 * float(np.std(gains)) / 3_000**0.5)


def test_where_nothing_is_to_be_gained_it_still_tells_candidates_apart() -> None:
    predictions = [NormalPrediction(np.array([90.0, 90.0]), np.array([0.1, 0.5])) for _ in range(2)]
    promise = log_expected_hypervolume_improvement(predictions, np.array([[1.0, 1.0]]), np.array([2.0, 2.0]))
    assert np.all(np.isfinite(promise))
    assert promise[1] > promise[0]


def test_the_front_keeps_one_of_equals_and_nothing_dominated() -> None:
    values = [(3.0, 1.0), (1.0, 3.0), (2.0, 2.0), (2.0, 2.0), (2.0, 3.0), (1.0, 3.5)]
    trials = [trial_of(Config({"i": i}), pair) for i, pair in enumerate(values)]
    trials.append(unmeasured(Config({"i": 9}), Failed("no")))
    assert front_of(trials) == [1, 2, 0]
    assert front_of([]) == []


@given(st.lists(st.tuples(_small, _small, _small), max_size=15))
def test_the_front_is_what_nothing_dominates(values: list[tuple[int, int, int]]) -> None:
    trials = [trial_of(Config({"i": i}), triple) for i, triple in enumerate(values)]
    found = {values[position] for position in front_of(trials)}
    dominated = {a for a in values for b in values if a != b and all(y <= x for x, y in zip(a, b, strict=True))}
    assert found == set(values) - dominated


@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("scale", [1.0, -1e300, 1e-300, 0.0])
def test_everything_that_can_happen_with_two_objectives(kind: str, scale: float) -> None:
    space = SPACES[kind]()
    searches = [CheckedSearch(make_optimizer("pareto", space, seed=1, budget=30), space) for _ in range(2)]
    for step in range(12):
        for search in searches:
            search.ask(1 + step % 3)
            for turn, config in enumerate(reversed(search.running[step % 2 :])):
                value = value_at(space, config)
                pair = trial_of(config, (scale * value, scale * (3.0 - value)))
                problem = Lost("node") if step % 2 else Failed("exit 1")
                search.tell(unmeasured(config, problem) if (step + turn) % 4 == 1 else pair)
        if step % 4 == 3:
            other = make_optimizer("pareto", space, seed=1, budget=30)
            other.tell(searches[0].log)
            assert other.ask(2, searches[0].running) == searches[0].optimizer.ask(2, searches[0].running)
    assert searches[0].asked == searches[1].asked
    assert len(searches[0].told) >= min(10, space.size or 10)


def test_every_configuration_once_then_nothing() -> None:
    space = SPACES["constrained"]()
    search = CheckedSearch(make_optimizer("pareto", space, seed=2, budget=10), space)
    while search.ask(1):
        value = value_at(space, search.running[0])
        search.tell(trial_of(search.running[0], (value, -value)))
    assert len(search.told) == space.size


def test_avoids_a_region_that_fails() -> None:
    space, objectives = CASES["two bowls"]
    search, failures = make_optimizer("pareto", space, seed=3, budget=60), []
    for _ in range(60):
        (config,) = search.ask(1, [])
        fails = int(str(config["a"])) > 9
        failures.append(fails)
        values = value_of(space, objectives, config)
        search.tell([unmeasured(config, Failed("no")) if fails else trial_of(config, values)])
    assert sum(failures[30:]) < 6, "a third of the space fails"


def test_what_runs_side_by_side_is_spread_out() -> None:
    space, objectives = CASES["vast"]
    search = make_optimizer("pareto", space, seed=4, budget=60)
    for _ in range(25):
        (config,) = search.ask(1, [])
        search.tell([trial_of(config, value_of(space, objectives, config))])
    running = search.ask(2, [])
    batch = space.to_unit(space.codes([*running, *search.ask(3, running)]))
    gaps = np.linalg.norm(batch[:, None, :] - batch[None, :, :], axis=2)[np.triu_indices(5, 1)]
    assert gaps.min() > 0.05


def test_objectives_must_agree() -> None:
    space = CASES["two bowls"][0]
    search = make_optimizer("pareto", space, seed=0)
    first, second = space.sample(2, np.random.default_rng(0))
    search.tell([trial_of(first, (1.0, 2.0))])
    for wrong in (measured(second, 1.0), trial_of(second, (1.0, 2.0, 3.0)), trial_of(second, (1.0, np.inf))):
        with pytest.raises(InvalidInputError, match="expected 2 finite numbers"):
            search.tell([wrong])
    with pytest.raises(InvalidInputError, match="3 at most"):
        make_optimizer("pareto", space, seed=0).tell([trial_of(first, (1.0, 2.0, 3.0, 4.0))])


def test_ask_and_tell_with_several_values() -> None:
    space, objectives = CASES["two bowls"]
    opt = optimizer("pareto", space, seed=1, budget=20)
    for turn in range(20):
        config = opt.ask()
        values = value_of(space, objectives, config)
        opt.tell(config, None if turn == 5 else np.array(values) if turn % 2 else list(values))  # type: ignore[arg-type]
    front = opt.front
    assert [config for config, _ in front] == sorted(dict(front), key=lambda c: dict(front)[c])
    assert all(a[0] < b[0] and a[1] > b[1] for (_, a), (_, b) in pairwise(front))
    opt.tell(front[0][0], (9.0, 9.0))
    repeated = next(trial for trial in opt.trials if trial.config == front[0][0])
    assert repeated.others[0].count == 2
    with pytest.raises(InvalidInputError, match="1 values, but 2 before"):
        opt.tell(front[0][0], 3.0)
    with pytest.raises(InvalidInputError, match="this optimizer supports 3"):
        opt.tell(front[0][0], (1.0, 2.0, 3.0, 4.0))
    with pytest.raises(InvalidInputError, match="use the optimizer 'pareto'"):
        optimizer("random", space, seed=1).tell(space.default, (1.0, 2.0))
    with pytest.raises(InvalidInputError, match="not a finite number"):
        opt.tell(front[0][0], (1.0, float("nan")))
    assert optimizer("random", space, seed=1).front == ()
