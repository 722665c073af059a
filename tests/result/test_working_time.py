"""Elapsed time, time left and busy slots do not count pauses."""

import time
from dataclasses import replace

import pytest

from luthier.figures import FIGURES
from luthier.result.activity import activity_of
from luthier.result.result import Result, conclude
from luthier.result.working_time import machine_rows, pauses_of, working_time
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.store.base import Machine, Period, Record
from luthier.store.ownership import this_process
from luthier.trial import Completed, Config, Lost, Purpose, Run

SPACE = Space(Integer("x", 1, 50))
HERE, THERE = Machine("here", "fast", 8, "1.0"), Machine("there", "slow", 1, "1.1")


def result_of(starts: list[float], duration_s: float = 5.0, **settings: object) -> Result:
    experiment = Experiment(space=SPACE, **{"budget": 20, **settings})  # type: ignore[arg-type]  # as given
    runs = [
        Run(number, number, "search" if number else "default", Config({"x": number + 1}), start, 2 * number,
            2 * number + 1, start, duration_s, Completed(5.0))
        for number, start in enumerate(starts)
    ]  # fmt: skip
    return conclude(experiment, runs)


def record_of(periods: list[tuple[float, float | None]], seen_at: float, **more: object) -> Record:
    made = tuple(Period(since, until, HERE) for since, until in periods)
    whole = {"status": "stopped", "seen_at": seen_at, "periods": made, **more}
    return Record(1, "u", "n", 0.0, {}, **whole)  # type: ignore[arg-type]  # as given


def test_busy_slots_without_pauses() -> None:
    """Two runs of 5 s without a gap, a pause of 1000 s, and two more."""
    result = result_of([100.0, 105.0, 1110.0, 1115.0])
    record = record_of([(100.0, 110.0), (1110.0, None)], 1120.0)
    assert activity_of(result).busy == pytest.approx(20.0 / 1020.0)
    paused = replace(result, pauses=pauses_of(record))
    assert activity_of(paused).busy == pytest.approx(1.0)
    figure = FIGURES["utilisation"](paused)
    assert figure is not None
    assert figure.note == "busy for 100 % of the time"
    assert "without pauses" in figure.panels[0].x.title
    assert max(max(trace.x) for trace in figure.traces) == pytest.approx(20.0)


def test_gaps_within_a_period_count() -> None:
    result = result_of([100.0, 110.0, 1010.0, 1020.0])
    record = record_of([(100.0, 115.0), (1010.0, None)], 1025.0)
    assert activity_of(replace(result, pauses=pauses_of(record))).busy == pytest.approx(20.0 / 30.0)


def test_elapsed_and_left_after_a_stop() -> None:
    record = record_of([(100.0, 110.0), (1110.0, None)], 1120.0)
    spent = working_time(record, result_of([100.0, 105.0, 1110.0, 1115.0]), 9999.0)
    assert (spent.elapsed_s, spent.left_s) == (20.0, 16 * 5.0)
    assert spent.sentence == "20 s elapsed, at most 1 min 20 s left (an estimate)"


def test_the_time_goes_on_while_it_runs() -> None:
    now = time.time()
    alive = record_of([(now - 30.0, None)], now - 1.0, status="running", owner=this_process())
    assert working_time(alive, result_of([now - 30.0]), now).elapsed_s == pytest.approx(30.0)
    dead = replace(alive, owner=replace(this_process(), started="0"))
    assert working_time(dead, result_of([now - 30.0]), now).elapsed_s == pytest.approx(29.0)


def test_the_time_limit_bounds_the_estimate() -> None:
    """Runs that verify come after it."""
    result = result_of([100.0, 105.0], budget=1000, time_limit_s=30.0, verify_pairs=3)
    spent = working_time(record_of([(100.0, None)], 110.0), result, 0.0)
    assert spent.left_s == pytest.approx(20.0 + 6 * 5.0)


@pytest.mark.parametrize(("verified", "left"), [(0, 30), (4, 26), (30, 0)])
def test_a_verification_has_an_end(verified: int, left: int) -> None:
    result = result_of([100.0, 105.0], budget=1000)
    purpose: Purpose = "verify"
    more = [replace(result.runs[0], number=2 + number, purpose=purpose) for number in range(verified)]
    record = record_of([(100.0, None)], 100.0 + 5.0 * (2 + verified), stop_requested="verify")
    spent = working_time(record, replace(result, runs=(*result.runs, *more)), 0.0)
    assert spent.left_s == pytest.approx(5.0 * left)


def test_what_is_not_known_is_not_shown() -> None:
    result = result_of([100.0])
    lost = replace(result, runs=(replace(result.runs[0], outcome=Lost("gone")),))
    assert working_time(record_of([], 1.0), result, 2.0).sentence == ""
    assert working_time(record_of([(1.0, None)], 4.0), lost, 9.0).sentence == "3.0 s elapsed"
    assert working_time(record_of([(1.0, None)], 4.0, status="finished"), result, 9.0).left_s is None
    assert machine_rows(record_of([], 1.0), result) == []


def test_every_machine_is_named_once() -> None:
    record = record_of([(1.0, 2.0), (3.0, 4.0)], 5.0)
    moved = replace(record, periods=(*record.periods, Period(6.0, None, THERE)))
    assert machine_rows(moved, result_of([1.0])) == [
        ("Host", "here"), ("CPU", "fast, 8 cores"), ("luthier", "1.0"),
        ("Host", "there"), ("CPU", "slow, 1 core"), ("luthier", "1.1"),
    ]  # fmt: skip
