"""The learned stop rule in whole experiments: interrupted, with several slots, repeats, failures, maximized."""

from typing import Any

import pytest
from tests.replayed import replayed

from luthier.runners.replay import Answers, ReplayedRun, ReplayRunner
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.store import open_store
from luthier.trial import Config, Failed

SPACE = Space(Integer("x", 1, 60, default=60), Integer("y", 0, 9, default=9))
RULE: dict[str, Any] = {
    "stop": ("learned",),
    "production_runs": 300,
    "budget": 80,
    "verify_pairs": 0,
    "seed": 5,
    "optimizer": "genetic",
}


def time_of(config: Config, repeat: int) -> float:
    return 1.0 + abs(int(config["x"]) - 17) / 20.0 + 0.02 * int(config["y"]) + 0.01 * (repeat % 3)


def time(config: Config, repeat: int, now_s: float) -> ReplayedRun:
    return ReplayedRun(time_of(config, repeat), time_of(config, repeat))


def rate(config: Config, repeat: int, now_s: float) -> ReplayedRun:
    return ReplayedRun(time_of(config, repeat), 1000.0 / time_of(config, repeat))


def often_failing(config: Config, repeat: int, now_s: float) -> ReplayedRun:
    return ReplayedRun(1.0, Failed("exit 1")) if int(config["y"]) % 3 == 1 else time(config, repeat, now_s)


MINIMIZED, MAXIMIZED = Objective("returned"), Objective("returned", "maximize")


class CrashError(Exception):
    pass


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize(
    ("answers", "objective"),
    [(time, MINIMIZED), (rate, MAXIMIZED), (often_failing, MINIMIZED)],
    ids=["times", "rates", "failures"],
)
def test_a_search_ends_for_a_reason_and_an_interrupted_one_at_the_same_run(
    answers: Answers, objective: Objective, slots: int
) -> None:
    experiment = Experiment(space=SPACE, objectives=(objective,), slots=slots, **RULE)
    histories = []
    for crash_at in (None, 7, 19):
        store, runner = open_store("memory:"), ReplayRunner(answers, slots)
        record = store.create("test", experiment.to_json(), 0.0)
        calls = 0

        def watch(*_: object, at: int | None = crash_at) -> None:
            nonlocal calls
            calls += 1
            if calls == at:
                raise CrashError

        if crash_at is not None:
            with pytest.raises(CrashError):
                replayed(store, record, experiment, runner, watch=watch)
            record = store.experiment(record.id)
        record, result = replayed(store, record, experiment, runner)
        assert 5 < len(result.runs) < 80
        assert "expected to save" in str((record.result or {})["ending"])
        histories.append([(run.config, run.outcome) for run in result.runs])
    assert histories[0] == histories[1] == histories[2]


def test_more_production_runs_mean_more_runs() -> None:
    made = []
    for production_runs in (3, 100, 10_000):
        experiment = Experiment(
            space=SPACE,
            objectives=(MINIMIZED,),
            **{**RULE, "production_runs": production_runs},
        )
        store, runner = open_store("memory:"), ReplayRunner(time)
        _, result = replayed(store, store.create("test", experiment.to_json(), 0.0), experiment, runner)
        made.append(len(result.runs))
    assert made[0] < made[1] <= made[2]
