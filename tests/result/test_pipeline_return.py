"""The return on a tuning of several steps, whose last experiment compares two configurations on the application."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.result_facts import told

from luthier.errors import InvalidInputError
from luthier.figures import FIGURES
from luthier.result.facts import result_json
from luthier.result.result import Result, conclude
from luthier.result.tuning_return import return_lines, tuning_return
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.spec.origin import Origin, Searched, Step
from luthier.store import open_store
from luthier.trial import Completed, Config, Json, Run

SPACE = Space(Integer("x", 0, 9))
BEFORE = Origin(
    (Step("kernel", ("the search runs the I/O kernel",), 10.0), Step("search", ("4 s -> 1 s", "ended: enough"), 20.0)),
    "the application",
    Searched("abc", 1, 12, "the I/O kernel", ((15.0, 0.0), (30.0, 6.0))),
    {"kernel": {"is_used": True}},
)


def compared(io_s: Sequence[float], wall_s: Sequence[float | None], measure: str = "io:time") -> Result:
    """Five pairs of default and best configuration: values of the measure, and times of whole runs."""
    runs = [
        Run(
            number=number,
            trial=number % 2,
            purpose="verify" if number > 1 else ("search" if number else "default"),
            config=Config({"x": number % 2}),
            submitted_at=float(number),
            submit_order=2 * number,
            finish_order=2 * number + 1,
            duration_s=7.0,
            outcome=Completed(io_s[number % 2] * (1.0 + 0.001 * number)),
            metrics={} if (took_s := wall_s[number % 2]) is None else {"wall_s": took_s * (1.0 + 0.002 * number)},
        )
        for number in range(12)
    ]
    objectives = (Objective.parse(measure),)
    experiment = Experiment(space=SPACE, objectives=objectives, origin=BEFORE, production_runs=1000, verify_pairs=5)
    return conclude(experiment, runs)


def test_the_time_of_all_steps_is_the_cost() -> None:
    result = compared((4.0, 1.0), (9.0, 6.0))
    found = tuning_return(result)
    assert found is not None
    assert found.tuning_s == pytest.approx(10.0 + 20.0 + 12 * 7.0)
    assert found.per_minute == pytest.approx(3.0 / (114.0 / 60.0), rel=0.02)
    assert found.over_time == ((15.0, 0.0), (30.0, 6.0))
    assert found.production is not None
    assert found.production.saved_s is not None
    assert found.production.saved_s.value == pytest.approx(3.0, rel=0.02)
    assert found.production.default_s == pytest.approx(9.0, rel=0.03)
    assert found.production.viable_after is not None
    assert found.production.viable_after.value == pytest.approx(114.0 / 3.0, abs=2)
    lines = return_lines(result)
    assert lines[1].startswith("whole runs: 9.")
    assert lines[2].endswith("if each becomes shorter by the time saved in I/O")
    assert told(result, "steps") == [
        "kernel: the search runs the I/O kernel",
        "search: 4 s -> 1 s",
        "search: ended: enough",
        "time of the whole tuning: 1 min 54 s (kernel 10 s, search 20 s, comparison 1 min 24 s)",
    ]


def test_whole_runs_that_became_longer_count_instead_of_the_time_in_io() -> None:
    result = compared((4.0, 1.0), (6.0, 9.0))
    found = tuning_return(result)
    assert found is not None
    assert found.production is not None
    assert result.improved
    assert found.production.saved_s is None
    assert not any("has paid" in line for line in return_lines(result))
    assert "0.66" in return_lines(result)[1]


def test_a_bandwidth_counts_by_the_times_of_whole_runs() -> None:
    found = tuning_return(compared((1e6, 4e6), (9.0, 6.0), "io:perf"))
    assert found is not None
    assert found.production is not None
    assert found.production.saved_s is not None
    assert found.production.saved_s.value == pytest.approx(3.0, rel=0.05)


@pytest.mark.parametrize("wall_s", [(None, 6.0), (9.0, None), (None, None)])
def test_without_the_times_of_whole_runs_nothing_is_said_of_production(wall_s: Sequence[float | None]) -> None:
    found = tuning_return(compared((4.0, 1.0), wall_s))
    assert found is not None
    assert found.production is None
    assert found.is_proven


def test_the_figure_shows_the_search_and_the_verified_gain() -> None:
    figure = FIGURES["return"](compared((4.0, 1.0), (9.0, 6.0)))
    assert figure is not None
    assert len(figure.panels) == 2
    names = [trace.name for trace in figure.traces]
    assert names[0] == "best single run of the search on the I/O kernel"
    assert "the tuning has paid" in names


def test_it_is_stored_and_told_to_programs() -> None:
    result = compared((4.0, 1.0), (9.0, 6.0))
    experiment = result.experiment
    again = Experiment.from_json(experiment.to_json())
    assert again == experiment
    assert again.spent_before_s == 30.0
    record = open_store("memory:").create("name", experiment.to_json(), 0.0)
    steps = result_json(record, result)["steps"]
    assert isinstance(steps, list)
    assert [(step["name"], step["seconds"]) for step in steps if isinstance(step, dict)] == [
        ("kernel", 10.0),
        ("search", 20.0),
        ("comparison", 84.0),
    ]
    assert told(conclude(replace(experiment, origin=None), result.runs), "steps") == []


@pytest.mark.parametrize("change", [{"steps": 1}, {"steps": [{}]}, {"searched": {"uid": ""}}, {"data": 3}])
def test_an_invalid_origin_is_refused(change: dict[str, object]) -> None:
    plain = {**BEFORE.to_json(), **change}
    with pytest.raises(InvalidInputError, match="origin"):
        Origin.from_json(plain)  # type: ignore[arg-type]  # what a foreign program may have written


def test_the_former_key_and_form_are_read() -> None:
    steps: Json = [{"name": "kernel", "lines": ["it runs the I/O kernel"], "seconds": 10.0}]
    former: dict[str, Json] = {
        "steps": steps,
        "kernel": {"is_used": True},
        "application": None,
        "pairs": 3,
        "searched": None,
    }
    plain = compared((4.0, 1.0), (9.0, 6.0)).experiment.to_json()
    del plain["origin"]
    found = Experiment.from_json({**plain, "pipeline": former}).origin
    assert found == Origin(
        (Step("kernel", ("it runs the I/O kernel",), 10.0),),
        "the I/O kernel",
        None,
        {"kernel": {"is_used": True}, "application": None, "pairs": 3},
    )
