"""Resuming an experiment of 5,000 runs: the values are right, and the cost is linear in the runs."""

import json
import sqlite3
import sys
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import event
from sqlalchemy.engine import Engine

from luthier.engine.session import carry_on
from luthier.result.result import Result
from luthier.runners.function import FunctionRunner
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.store import open_store
from luthier.store.sql import SqlStore
from luthier.trial import Completed, Config

LARGEST, MORE = 1_000_000, 10
SPACE = Space(Integer("x", 1, LARGEST))


@dataclass(frozen=True)
class Resumed:
    """What a resume found, the statements that it sent to the store, and how often it called functions."""

    result: Result
    statements: int
    calls: int


def value_of(x: int) -> float:
    return float((x * 7919) % LARGEST + 1)


def history(path: Path, runs: int) -> Experiment:
    """A store with an experiment that has so many runs of its budget behind it, and `MORE` before it."""
    experiment = Experiment(
        space=SPACE, command=None, objectives=(Objective("returned"),), optimizer="random", budget=runs + MORE,
        verify_pairs=0, resample="once",
    )  # fmt: skip
    first = Experiment.from_json({**experiment.to_json(), "budget": 2})
    store = open_store(str(path))
    assert isinstance(store, SqlStore)
    store.create("long", first.to_json(), 0.0)
    runner = FunctionRunner(lambda config: value_of(int(config["x"])))
    carry_on(store, store.experiment(1), first, runner)
    store.dispose()
    with sqlite3.connect(path) as database:
        database.row_factory = sqlite3.Row
        like = dict(database.execute("SELECT * FROM runs WHERE number = 1").fetchone())
        columns = ", ".join(like)
        rows = [
            {
                **like,
                "number": number,
                "trial": number,
                "config": json.dumps({"x": number}),
                "value": value_of(number),
                "submit_order": 2 * number,
                "finish_order": 2 * number + 1,
                "uid": f"{number:012x}",
            }
            for number in range(2, runs)
        ]
        database.executemany(f"INSERT INTO runs ({columns}) VALUES ({', '.join(f':{name}' for name in like)})", rows)
        database.execute("UPDATE experiments SET status = 'stopped'")
    database.close()
    return experiment


def resumed(path: Path, experiment: Experiment) -> Resumed:
    store = open_store(str(path))
    assert isinstance(store, SqlStore)
    record = store.experiment(1)
    counts = {"statements": 0, "calls": 0}

    def count_statement(*_: object) -> None:
        counts["statements"] += 1

    def count_call(_: object, what: str, __: object) -> None:
        counts["calls"] += what == "call"

    event.listen(Engine, "before_cursor_execute", count_statement)
    sys.setprofile(count_call)
    try:
        _, result = carry_on(store, record, experiment, FunctionRunner(lambda config: value_of(int(config["x"]))))
    finally:
        sys.setprofile(None)
        event.remove(Engine, "before_cursor_execute", count_statement)
    store.dispose()
    return Resumed(result, **counts)


def test_5000_runs_are_resumed_with_right_values_and_bounded_cost(tmp_path: Path) -> None:
    short, long = (
        resumed(path, history(path, runs)) for path, runs in ((tmp_path / "500.db", 500), (tmp_path / "5000.db", 5000))
    )
    runs = long.result.runs
    assert len(runs) == 5000 + MORE
    assert [run.number for run in runs] == list(range(5000 + MORE))
    assert [run.config for run in runs[2:5000]] == [Config({"x": number}) for number in range(2, 5000)]
    values = [run.outcome.value for run in runs if isinstance(run.outcome, Completed)]
    assert values == [value_of(int(run.config["x"])) for run in runs]
    assert len({run.trial for run in runs}) == len(runs)
    winner = long.result.winner
    assert winner is not None
    assert winner.estimate is not None
    assert winner.estimate.value == min(values)
    assert long.statements <= short.statements + 20  # heartbeats of a slow machine
    assert long.calls <= 15 * short.calls
