"""What a tuning brought for the time it took."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from luthier.result.result import Result, conclude
from luthier.result.tuning_return import Amount, return_lines, tuning_return
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Goal, Objective
from luthier.spec.origin import Origin, Step
from luthier.trial import Completed, Config, Failed, Purpose, Run

SPACE = Space(Integer("x", 0, 9))


def history(values: Sequence[tuple[int, float | None, Purpose]], seconds: Sequence[float] | None = None) -> list[Run]:
    return [
        Run(
            number=number,
            trial=trial,
            purpose=purpose,
            config=Config({"x": trial}),
            submitted_at=float(number),
            submit_order=2 * number,
            finish_order=2 * number + 1,
            started_at=float(number),
            duration_s=(value if value is not None else 5.0) if seconds is None else seconds[number],
            outcome=Failed("no") if value is None else Completed(value),
        )
        for number, (trial, value, purpose) in enumerate(values)
    ]


def tuned(
    default: float, best: float, *, measure: str = "wall", goal: Goal = "minimize", runs: int | None = None
) -> Result:
    """The default, one better configuration, a failure, and six pairs of exactly these values."""
    made: list[tuple[int, float | None, Purpose]] = [(0, default, "default"), (1, best, "search"), (2, None, "search")]
    made += [(trial, value, "verify") for _ in range(6) for trial, value in ((0, default), (1, best))]
    seconds = None if measure == "wall" else [6.0] * len(made)
    experiment = Experiment(space=SPACE, objectives=(Objective(measure, goal),), production_runs=runs)
    return conclude(experiment, history(made, seconds))


def test_a_time_of_zero_is_saved_whole() -> None:
    """Times of 0 have no ratio: what is saved is the difference, 4 s, and the tuning took 7 * 4 + 5 s."""
    found = tuning_return(tuned(4.0, 0.0, runs=100))
    assert found is not None
    assert found.production is not None
    assert found.production.saved_s == Amount(4.0, 4.0, 4.0)
    assert found.production.net_gain_s == Amount(367.0, 367.0, 367.0)


def test_run_times() -> None:
    result = tuned(10.0, 8.0, runs=100)
    found = tuning_return(result)
    assert found is not None
    spent_s = 7 * 10.0 + 7 * 8.0 + 5.0
    assert found.tuning_s == pytest.approx(spent_s)
    assert found.per_minute == pytest.approx(2.0 / (spent_s / 60.0))
    assert [spent for spent, _ in found.over_time] == [10.0, 18.0, 23.0]
    assert [rate for _, rate in found.over_time] == pytest.approx([0.0, 120.0 / 18.0, 120.0 / 23.0])
    production = found.production
    assert production is not None
    assert production.saved_s is not None
    assert [production.saved_s.value, production.saved_s.low, production.saved_s.high] == pytest.approx([2.0] * 3)
    assert production.viable_after == Amount(66.0, 66.0, 66.0)
    assert production.net_gain_s is not None
    assert production.net_gain_s.value == pytest.approx(200.0 - spent_s)
    assert return_lines(result) == [
        "return on tuning (RoTI): 916 ms gained for each minute of the 2 min 11 s of tuning",
        "the tuning has paid after 66 runs in production",
        "net gain over 100 runs in production: 1 min 09 s",
    ]


def test_the_interval_of_the_verification() -> None:
    made: list[tuple[int, float | None, Purpose]] = [(0, 10.0, "default"), (1, 8.0, "search")]
    for pair in range(6):
        made += [(0, 10.0 + 0.1 * (pair % 3), "verify"), (1, 8.0 - 0.1 * (pair % 2), "verify")]
    result = conclude(Experiment(space=SPACE, production_runs=40), history(made))
    found = tuning_return(result)
    assert found is not None
    production = found.production
    assert production is not None
    assert production.saved_s is not None
    assert production.viable_after is not None
    assert production.net_gain_s is not None
    for amount in (production.saved_s, production.viable_after, production.net_gain_s):
        assert amount.low is not None
        assert amount.high is not None
        assert amount.low < amount.value < amount.high
    assert production.viable_after.high == pytest.approx(found.tuning_s / (production.saved_s.low or 0.0), abs=1.0)
    assert "with 95 % confidence" in return_lines(result)[1]


def test_without_a_proven_gain_there_is_no_number_of_runs() -> None:
    result = tuned(10.0, 10.0, runs=1000)
    found = tuning_return(result)
    assert found is not None
    assert not found.is_proven
    assert found.per_minute == 0.0
    assert found.production is not None
    assert (found.production.saved_s, found.production.viable_after) == (None, None)
    assert found.production.net_gain_s == Amount(-result.cost_s)
    lines = return_lines(result)
    assert lines[0].startswith("return on tuning (RoTI): no gain proven")
    assert lines[1].startswith("net gain over 1000 runs in production: -")
    assert not any("has paid" in line for line in lines)


def test_the_search_on_a_kernel_is_a_part_of_the_tuning() -> None:
    alone = tuned(10.0, 8.0, runs=100)
    experiment = replace(alone.experiment, origin=Origin((Step("search", (), 1000.0),), "the I/O kernel"))
    assert Experiment.from_json(experiment.to_json()) == experiment
    one, other = (tuning_return(conclude(setup, alone.runs)) for setup in (alone.experiment, experiment))
    assert one is not None
    assert other is not None
    assert other.tuning_s == one.tuning_s + 1000.0
    assert one.production is not None
    assert other.production is not None
    assert one.production.net_gain_s is not None
    assert other.production.net_gain_s is not None
    assert other.production.net_gain_s.value == pytest.approx(one.production.net_gain_s.value - 1000.0)
    assert other.production.viable_after == Amount(566.0, 566.0, 566.0)


def test_other_measures_have_no_time_in_production() -> None:
    result = tuned(50.0, 80.0, measure="json:mbps", goal="maximize", runs=100)
    found = tuning_return(result)
    assert found is not None
    assert found.production is None
    assert found.per_minute == pytest.approx(30.0 / (15 * 6.0 / 60.0))
    assert return_lines(result) == ["return on tuning (RoTI): 20 gained for each minute of the 1 min 30 s of tuning"]


def test_nothing_is_said_before_there_is_something_to_say() -> None:
    assert tuning_return(conclude(Experiment(space=SPACE), [])) is None
    only_default = conclude(Experiment(space=SPACE), history([(0, 3.0, "default")]))
    assert return_lines(only_default) == []
    failed = conclude(Experiment(space=SPACE), history([(0, None, "default"), (1, 2.0, "search")]))
    assert tuning_return(failed) is None
    several = Experiment(space=SPACE, objectives=(Objective("a"), Objective("b")))
    assert tuning_return(conclude(several, [])) is None


@pytest.mark.parametrize(("default", "best"), [(1e-300, 5e-324), (1e300, 1e-300), (1e-9, 1e-10)])
def test_extreme_values_give_numbers_or_nothing(default: float, best: float) -> None:
    found = tuning_return(tuned(default, best, measure="json:x"))
    assert found is None or json.dumps(found.per_minute, allow_nan=False)
    return_lines(tuned(default, best, runs=3))
