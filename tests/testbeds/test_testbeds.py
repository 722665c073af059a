"""The testbeds as their users see them, up to an engine that tunes them in virtual time."""

import re
import statistics
from pathlib import Path

import numpy as np
import pytest
from tests.replayed import replayed

from luthier.errors import NotFoundError, SpaceError
from luthier.result.result import Result
from luthier.runners.replay import ReplayRunner
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.store import open_store
from luthier.trial import Completed, Config
from testbeds.noise import NOISES, find_noise
from testbeds.testbed import TESTBEDS, NoisyTestbed, Testbed, find_testbed

SIZES = {"sro": 1920, "sro/hotspots": 15300, "sbb/bandwidth": 4500, "sbb/latency": 1024, "sbb/ior": 540}

PUBLISHED_GAPS = {
    "sbb/ior": 0.12,
    "sbb/latency": 0.20,
    "sro/a": 0.21,
    "sro/d": 0.33,
    "sbb/bandwidth": 0.37,
    "sro/hotspots": 0.75,
    "sro/c": 0.94,
    "sro/b": 0.95,
}
"""What the optimum saves of the default's time: Robert's thesis, sections 2.2.3, 2.3.3, 5.5.1 and 5.5.2."""


@pytest.mark.parametrize("name", TESTBEDS)
def test_grids_have_the_published_size_and_the_default_joins_them(name: str) -> None:
    testbed = find_testbed(name)
    assert testbed.grid.size == SIZES.get(name, SIZES["sro"])
    beside = not testbed.grid.contains(testbed.default)
    assert testbed.space.size == SIZES.get(name, SIZES["sro"]) + beside
    assert testbed.space.contains(testbed.default)
    assert all(testbed.space.contains(testbed.grid.at(number)) for number in range(0, testbed.grid.size, 97))


@pytest.mark.parametrize("name", ["sro/d", "sbb/latency"])
def test_a_table_holds_the_seconds_of_every_grid_point(name: str) -> None:
    known = TESTBEDS[name]
    fresh = Testbed(name, known.grid, known.default, known._model)
    table = known.table()
    assert len(table) == known.grid.size
    for number in range(0, len(table), len(table) // 9):
        assert fresh.seconds(known.grid.at(number)) == table[number]
    assert known.seconds(known.optimum) == table.min()
    with pytest.raises(ValueError, match="read-only"):
        table[0] = 0.0


@pytest.mark.parametrize(("name", "published"), PUBLISHED_GAPS.items())
def test_the_default_is_as_far_from_the_optimum_as_published(name: str, published: float) -> None:
    assert TESTBEDS[name].gap == pytest.approx(published, abs=0.15)


def test_gaps_within_a_system_have_the_published_order() -> None:
    for system in ("sro", "sbb"):
        names = [name for name in PUBLISHED_GAPS if name.startswith(system)]
        gaps = [TESTBEDS[name].gap for name in names]
        assert gaps == sorted(gaps)


def effects(testbed: Testbed) -> dict[str, float]:
    """By how much each parameter alone changes the time at most, where the others are best for it."""
    shape = [parameter.size or 0 for parameter in testbed.grid.parameters]
    table = testbed.table().reshape(shape)
    names = testbed.grid.names
    return {name: float((table.max(axis=axis) / table.min(axis=axis)).max()) for axis, name in enumerate(names)}


@pytest.mark.parametrize("system", ["sro", "sbb"])
def test_every_parameter_matters_somewhere(system: str) -> None:
    largest: dict[str, float] = {}
    for name in PUBLISHED_GAPS:
        if name.startswith(system):
            for parameter, effect in effects(TESTBEDS[name]).items():
                largest[parameter] = max(effect, largest.get(parameter, 1.0))
    assert min(largest.values()) > 1.2


@pytest.mark.parametrize("name", ["sro/c", "sbb/bandwidth"])
def test_parameters_interact_and_there_are_plateaus(name: str) -> None:
    testbed = TESTBEDS[name]
    table = np.log(testbed.table()).reshape([parameter.size or 0 for parameter in testbed.grid.parameters])
    additive = sum(
        (table.mean(axis=tuple(set(range(table.ndim)) - {axis}), keepdims=True) for axis in range(table.ndim)),
        start=-(table.ndim - 1) * table.mean(),
    )
    assert np.var(table - additive) > 0.1 * np.var(table)
    flat = sum((np.diff(table, axis=axis) == 0).sum() for axis in range(table.ndim))
    assert flat > 0.05 * table.size


PAGE = (Path(__file__).parents[2] / "docs" / "testbeds.md").read_text(encoding="utf-8")


def test_the_page_shows_the_figures_there_are() -> None:
    rows = {cells[1]: cells[3:] for line in PAGE.splitlines() if len(cells := re.split(r" *\| *", line)) == 12}
    assert {name.strip("`") for name in rows} - {"name", "---"} == set(TESTBEDS)
    for name, published in PUBLISHED_GAPS.items():
        testbed, table = TESTBEDS[name], TESTBEDS[name].table()
        times = [f"{value:.1f}" for value in (testbed.seconds(testbed.default), table.min(), table.mean(), table.max())]
        near = (table <= 1.05 * table.min()).mean()
        expected = [f"{len(table):,}", *times, f"{testbed.gap:.0%}", f"{published:.0%}", f"{near:.1%}"]
        assert [cell.replace(" %", "%") for cell in rows[f"`{name}`"][:-1]] == expected


def test_the_examples_of_the_page_work() -> None:
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, names)
    quiet, shared, noisy = names["quiet"], names["shared"], names["noisy"]
    assert isinstance(quiet, Result)
    assert isinstance(shared, Result)
    assert isinstance(noisy, NoisyTestbed)
    assert quiet.speedup == pytest.approx(7.45, abs=0.005)
    assert quiet.best.config == find_testbed("sro/c").optimum
    assert shared.improved
    values = [run.outcome.value for run in shared.runs if isinstance(run.outcome, Completed)]
    assert noisy.now_s == pytest.approx(sum(values))


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(NotFoundError, match="sro/hotspots"):
        find_testbed("sro/z")
    with pytest.raises(SpaceError, match="binsize"):
        TESTBEDS["sro/a"].seconds({**TESTBEDS["sro/a"].default, "binsize": 17})
    with pytest.raises(SpaceError):
        TESTBEDS["sro/a"].seconds({**TESTBEDS["sro/a"].default, "cluster_threshold": 22})


@pytest.mark.parametrize("noise", NOISES)
def test_a_noisy_testbed_keeps_its_clock_and_comes_again_with_the_seed(noise: str) -> None:
    testbed = TESTBEDS["sro/hotspots"]
    configs = [testbed.default, testbed.grid.default, testbed.default]
    first, second = (NoisyTestbed(testbed, find_noise(noise), seed=4) for _ in range(2))
    taken = [first.run(config) for config in configs]
    assert taken == [second.run(config) for config in configs]
    assert first.now_s == pytest.approx(sum(taken))
    answer = first.answer(testbed.default, 1, taken[0] + taken[1])
    assert (answer.duration_s, answer.result) == (taken[2], taken[2])


def test_repeats_and_seeds_draw_anew() -> None:
    testbed = TESTBEDS["sro/hotspots"]
    drawn = {
        NoisyTestbed(testbed, find_noise("cluster"), seed=seed).answer(testbed.default, repeat, 0.0).duration_s
        for seed in range(3)
        for repeat in range(3)
    }
    assert len(drawn) == 9


def tuned(testbed: Testbed, noise: str, *, seed: int) -> Result:
    experiment = Experiment(space=testbed.space, budget=40, seed=seed, objectives=(Objective("returned"),))
    store = open_store("memory:")
    record = store.create(testbed.name, experiment.to_json(), 0.0)
    noisy = NoisyTestbed(testbed, find_noise(noise), seed=seed)
    runner = ReplayRunner(noisy.answer)
    return replayed(store, record, experiment, runner)[1]


@pytest.mark.parametrize(
    ("name", "noise", "at_least", "share"),
    [("sro/b", "none", 5, 0.6), ("sro/b", "every-60", 5, 0.6), ("sbb/bandwidth", "cluster", 1, 0.3)],
)
def test_the_engine_tunes_a_testbed_in_virtual_time(name: str, noise: str, at_least: int, share: float) -> None:
    """At least `share` of what can be saved is; under heavy noise it is two thirds on average, and searches vary."""
    testbed = TESTBEDS[name]
    results = [tuned(testbed, noise, seed=seed) for seed in range(5)]

    def saved(config: Config) -> float:
        return 1.0 - testbed.seconds(config) / testbed.seconds(testbed.default)

    # Under heavy noise a search of 40 runs may be unlucky; what it recommends is the default then.
    assert sum(result.improved for result in results) >= at_least
    assert statistics.median(saved(result.best.config) for result in results) > share * testbed.gap
    for result in results:
        assert result.recommended is not None
        assert saved(result.recommended) > share * testbed.gap if result.improved else saved(result.recommended) == 0.0
        runs = result.runs
        assert runs[0].config == testbed.default
        assert runs[0].started_at == 0.0
        ends = [(run.started_at or 0.0) + (run.duration_s or 0.0) for run in runs]
        assert [run.started_at for run in runs[1:]] == pytest.approx(ends[:-1])


def test_an_experiment_on_a_testbed_comes_again() -> None:
    once, again = (tuned(TESTBEDS["sro/d"], "every-120", seed=5) for _ in range(2))
    assert [(run.config, run.duration_s) for run in once.runs] == [(run.config, run.duration_s) for run in again.runs]
