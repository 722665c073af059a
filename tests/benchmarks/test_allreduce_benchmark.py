import math
from pathlib import Path

import pytest

import luthier as lt
from benchmarks import allreduce

SPACE = lt.Space(lt.Choice("algorithm", ["ring", "linear", "tree", "broken"]))
MICROSECONDS = {"ring": 30.0, "linear": 20.0, "tree": 10.0}


def measure(config: lt.Config) -> float:
    if config["algorithm"] == "broken":
        raise RuntimeError("mpirun failed")
    return MICROSECONDS[str(config["algorithm"])]


def test_a_table_is_recorded_in_rounds_and_what_is_there_is_not_measured_again(tmp_path: Path) -> None:
    asked: list[str] = []

    def counted(config: lt.Config) -> float:
        asked.append(str(config["algorithm"]))
        return measure(config)

    path = tmp_path / "table.csv"
    allreduce.record(path, SPACE, counted, 2)
    assert [sorted(asked[:4]), sorted(asked[4:])] == [sorted([*MICROSECONDS, "broken"])] * 2
    table = allreduce.record(path, SPACE, counted, 3)
    assert len(asked) == 12
    assert str(allreduce.read_table(path, SPACE)) == str(table), "NaN is not equal to itself"
    assert allreduce.medians(table) == {
        SPACE.at(0): 30.0,
        SPACE.at(1): 20.0,
        SPACE.at(2): 10.0,
        SPACE.at(3): math.inf,
    }


def test_the_distance_is_to_the_best_median() -> None:
    table = {SPACE.at(number): [value] * 3 for number, value in enumerate([30.0, 20.0, 10.0, math.nan])}
    assert allreduce.missed(table, SPACE, 30, seed=1) == 0.0
    assert allreduce.missed(table, SPACE, 1, seed=1) == pytest.approx(200.0), "one run, of the default"
    assert allreduce.report([0.0, 4.0, 12.0]) == "2 of 3 within 5 %, median 4.0 %, worst 12.0 %"
