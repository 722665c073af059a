"""The comparison of resampling rules: what it takes for the truth, and what it plays on."""

from collections.abc import Mapping

import pytest

from benchmarks import noise, noisy_systems, tables
from luthier.runners.replay import ReplayedRun
from luthier.space import Integer, Space
from luthier.trial import Config


def _machine(values: Mapping[int, float], optimum: float) -> noisy_systems.Machine:
    def true(config: Config) -> float:
        return values[int(config["n"])]

    return noisy_systems.Machine(lambda config, *_: ReplayedRun(true(config), true(config)), true, optimum)


@pytest.mark.parametrize(("values", "optimum"), [({1: 10.0, 2: 5.0, 3: 4.0}, 4.0), ({1: 2.0, 2: 5.0, 3: 4.0}, 5.0)])
def test_a_distance_is_positive_whether_low_or_high_values_are_good(
    values: Mapping[int, float], optimum: float
) -> None:
    machine = _machine(values, optimum)
    distances = {n: machine.distance(Config({"n": n})) for n in values}
    assert distances == {n: pytest.approx(100.0 * abs(value - optimum) / optimum) for n, value in values.items()}


def test_a_gain_is_counted_in_units_of_the_default() -> None:
    lower, higher = _machine({1: 10.0, 2: 5.0}, 5.0), _machine({1: 4.0, 2: 5.0, 3: 3.0}, 5.0)
    default = Config({"n": 1})
    assert lower.gain(Config({"n": 2}), default) == pytest.approx(50.0)
    assert higher.gain(Config({"n": 2}), default) == pytest.approx(25.0)
    assert higher.gain(Config({"n": 3}), default) == pytest.approx(-25.0)


def test_a_recorded_run_is_one_of_sixteen_whose_mean_is_the_truth() -> None:
    system = noisy_systems.known_systems()["sbb/ior recorded"]
    machine, config = system.machine(3), system.space.default
    seen = {machine.answers(config, repeat, 0.0).duration_s for repeat in range(400)}
    assert len(seen) == noisy_systems.RECORDED
    assert machine.true(config) == pytest.approx(sum(seen) / noisy_systems.RECORDED)
    assert machine.distance(config) > 0.0
    assert system.machine(4).true(config) != machine.true(config)
    assert system.machine(3).answers(config, 7, 0.0) == machine.answers(config, 7, 0.0)


def test_a_recording_is_left_out_of_the_means() -> None:
    assert [name for name, system in noisy_systems.known_systems().items() if not system.counts] == ["sbb/ior recorded"]


def test_an_experiment_ends_with_a_row_about_what_was_found() -> None:
    space = Space(Integer("n", 1, 40))
    values = {n: 10.0 + abs(n - 23) for n in range(1, 41)}
    system = noisy_systems.System("made up", space, lambda _: _machine(values, 10.0), 60)
    row = noise.play(system, "evadyr", "gp", seed=0)
    assert row.distance < 60.0
    assert row.uniques < row.steps <= 60
    assert row.duration_s > 10.0 * row.steps
    assert noise.play(system, "evadyr", "gp", seed=0) == row


@pytest.mark.skipif(
    not (tables.data_folder() / "convolution").is_dir(), reason="the measured tables are not part of the project"
)
def test_the_constraints_of_the_convolution_are_those_it_was_measured_under() -> None:
    for name in ("convolution/A100", "convolution/MI250X"):
        table, space = tables.load(name), noisy_systems.known_systems()[name].space
        allowed = {table.point(config) for config in space.configs(space.grid())}
        assert allowed == set(table.runs)
