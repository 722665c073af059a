"""A machine that changes during an experiment, and the runs of the default that tell."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.replayed import replayed
from tests.result_facts import told

from luthier.engine.plan import Plan
from luthier.engine.session import plan_of
from luthier.errors import InvalidInputError
from luthier.result.result import Result, conclude
from luthier.runners.replay import ReplayedRun, ReplayRunner
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.store import open_store
from luthier.trial import Config

SPACE = Space(Integer("n", 0, 60))
EXPERIMENT = Experiment(
    space=SPACE, objectives=(Objective("returned"),), optimizer="random", budget=60, sentinels=3, resample="once"
)


def seconds(config: Config) -> float:
    return 10.0 + 0.1 * abs(int(config["n"]) - 50)


def tuned(experiment: Experiment, level: Callable[[float], float]) -> Result:
    """Tune in virtual time on a machine whose level depends on the hour."""

    def answer(config: Config, repeat: int, now_s: float) -> ReplayedRun:
        taken_s = seconds(config) * level(now_s) * (1.0 + 0.003 * ((repeat * 7 + int(config["n"])) % 5))
        return ReplayedRun(taken_s, taken_s)

    store = open_store("memory:")
    record = store.create("x", experiment.to_json(), 0.0)
    return replayed(store, record, experiment, ReplayRunner(answer))[1]


def slower_later(now_s: float) -> float:
    return 1.8 if now_s > 250.0 else 1.0


def test_the_default_runs_again_and_again() -> None:
    result = tuned(EXPERIMENT, lambda _: 1.0)
    searched = [run.trial for run in result.runs if run.purpose != "verify"]
    at = [place for place, trial in enumerate(searched) if trial == 0]
    assert at == list(range(0, len(searched), 4))
    assert {run.purpose for run in result.runs if run.trial == 0} == {"default", "verify"}
    assert result.drift.kind == "steady"
    assert told(result, "drift", "outliers") == []


def test_without_being_asked_for_there_are_none() -> None:
    result = tuned(replace(EXPERIMENT, sentinels=0), lambda _: 1.0)
    assert sum(run.trial == 0 and run.purpose != "verify" for run in result.runs) == 1


def test_a_slower_machine_is_taken_out_of_the_values() -> None:
    result = tuned(EXPERIMENT, slower_later)
    assert result.drift.kind == "jumps"
    assert result.drift.factors[0] == pytest.approx(1.8, rel=0.05)
    estimates = [(trial.estimate.value, seconds(trial.config)) for trial in result.trials if trial.estimate is not None]
    # Between the last reading before the jump and the first one after it nobody knows when it was.
    assert sum(value == pytest.approx(true, rel=0.05) for value, true in estimates) >= len(estimates) - 3
    assert any(
        line.startswith("machine: jumped to 1.8x") and "values are corrected" in line
        for line in told(result, "drift", "outliers")
    )


def _missed(experiment: Experiment, seed: int) -> float:
    """How much slower the winner is than the best that was tried."""
    result = tuned(replace(experiment, seed=seed), slower_later)
    assert result.winner is not None
    return seconds(result.winner.config) - min(seconds(trial.config) for trial in result.trials)


def test_a_search_that_knows_better_chooses_better() -> None:
    # Unaware of it, the search believes in one of the few it tried while the machine was fast.
    blind = [_missed(replace(EXPERIMENT, sentinels=0), seed) for seed in range(5)]
    aware = [_missed(EXPERIMENT, seed) for seed in range(5)]
    assert max(aware) <= 0.2
    assert sum(aware) < 0.5 * sum(blind)


def test_throughput_that_falls_is_levelled_as_well() -> None:
    experiment = replace(EXPERIMENT, objectives=(Objective("wall", "maximize"),))
    result = tuned(experiment, lambda now_s: 1.0 / slower_later(now_s))
    assert result.drift.factors[0] == pytest.approx(1.0 / 1.8, rel=0.05)
    assert result.winner is not None
    assert seconds(result.winner.config) >= 0.98 * max(seconds(trial.config) for trial in result.trials)


def test_a_history_played_back_leads_to_the_same_state() -> None:
    result = tuned(EXPERIMENT, slower_later)
    searched = [run for run in result.runs if run.purpose != "verify"]
    plan: Plan = plan_of(EXPERIMENT)
    plan.replay(searched)
    again = conclude(EXPERIMENT, plan.runs)
    assert again.trials == conclude(EXPERIMENT, searched).trials
    turned = [trial.estimate.value for trial in plan.trials if trial.estimate is not None]
    assert turned == [trial.estimate.value for trial in again.trials if trial.estimate is not None]


def test_an_outlier_is_named_with_its_reason() -> None:
    result = tuned(EXPERIMENT, lambda now_s: 3.0 if 130.0 < now_s < 135.0 or 205 < now_s < 215 else 1.0)
    (outlier,) = result.outliers
    assert result.runs[outlier.run].trial == 0
    assert outlier.factor == pytest.approx(3.0, rel=0.1)
    (line,) = (line for line in told(result, "drift", "outliers") if line.startswith("outliers"))
    assert f"run {outlier.run} gave 3.01x" in line
    assert outlier.reason in line


@pytest.mark.parametrize("sentinels", [-1, True, 2.5])
def test_only_a_number_of_runs_will_do(sentinels: int) -> None:
    with pytest.raises(InvalidInputError, match="sentinels"):
        replace(EXPERIMENT, sentinels=sentinels)


def test_a_front_has_no_level() -> None:
    with pytest.raises(InvalidInputError, match="sentinels"):
        replace(EXPERIMENT, objectives=(Objective("returned"), Objective("returned")))
