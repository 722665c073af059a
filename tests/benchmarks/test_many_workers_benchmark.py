"""The simulation of many workers: what it charges, and how searches of an hour are compared."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from benchmarks.hepnos_metrics import curve, expected, scores
from benchmarks.hepnos_standin import WORKERS, space_of
from benchmarks.virtual_time import Evaluation, simulate, utilisation

from benchmarks import scale
from luthier.runners.replay import ReplayedRun
from luthier.trial import Config, Value


class Slow:
    """Takes two seconds for every ask."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.told: list[int] = []

    def ask(self, count: int) -> Sequence[Mapping[str, Value]]:
        self.asked.append(count)
        return [{"n": sum(self.asked) - at} for at in range(count)]

    def tell(self, finished: Sequence[Evaluation]) -> None:
        self.told.append(len(finished))

    def spent_s(self) -> float:
        return 2.0


def test_what_a_suggestion_costs_delays_the_worker() -> None:
    found = simulate(Slow(), lambda config: ReplayedRun(8.0, 1.0), 1, horizon_s=100.0)
    assert [one.started_s for one in found][:3] == [2.0, 12.0, 22.0]
    assert utilisation(found, 1, 100.0) == pytest.approx(0.8)


def test_all_that_ended_is_told_at_once_and_all_free_workers_are_asked_for() -> None:
    player = Slow()
    durations = {1: 10.0, 2: 10.5, 3: 30.0}
    simulate(player, lambda config: ReplayedRun(durations.get(int(config["n"]), 50.0), 1.0), 3, horizon_s=20.0)
    assert player.asked == [3, 1, 1]  # the second one ended while the search was busy with the first
    assert player.told == [1, 1]


def test_most_bounds_the_evaluations() -> None:
    assert len(simulate(Slow(), lambda config: ReplayedRun(1.0, 1.0), 2, horizon_s=1e9, most=7)) in (7, 8)


def test_the_metrics_follow_their_definitions() -> None:
    one, two = [(60.0, 30.0), (120.0, 10.0)], [(90.0, 20.0), (3000.0, 8.0)]
    assert curve(one, np.array([0.0, 60.0, 119.0, 120.0])).tolist() == [30.0, 30.0, 30.0, 10.0]
    assert expected(one) == pytest.approx(30.0)
    found = scores([one, two], target=26.0)
    assert found.best == 9.0
    assert found.speedup == pytest.approx(60.0), "the second one is credited with its first result"
    assert found.speedup_all_started == pytest.approx(40.0)
    assert scores([one], target=5.0).speedup is None


def test_the_spaces_have_as_many_parameters_as_their_names_say() -> None:
    for setup in WORKERS:
        assert f"{len(space_of(setup).names)}p" == setup.rpartition("-")[2]


def test_a_small_simulation_through_the_whole_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        scale.main(["--players", "engine:auto,luthier:random", "--workers", "12", "--seconds", "50", "--each", "3"])
        == 0
    )
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [(row[2].strip(), row[4].strip(), row[6].strip()) for row in rows] == [("12", "36", "100.0 %")] * 2


def test_durations_have_a_spread_and_a_corner_fails() -> None:
    space = scale.mixed_space()
    answer = scale.landscape(space, 10.0, 1)
    durations = {answer(space.default).duration_s for _ in range(20)}
    assert len(durations) == 20
    assert all(5.0 <= one <= 15.0 for one in durations)
    bad = Config({**space.default, "count0": 64, "size0": 2048})
    assert not isinstance(answer(bad).result, float)
