"""How the slots of a search were used, and how much sooner it was than a random search."""

from dataclasses import replace

import pytest

from luthier.result.activity import SUGGESTING, Activity, activity_of
from luthier.result.result import conclude
from luthier.result.search_speedup import Search, SearchSpeedup, compared, speedup_over_random
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.template import Template
from luthier.store import open_store
from luthier.trial import Completed, Config, Failed, Lost, Outcome, Purpose, Run


def run(
    number: int,
    submitted_at: float,
    duration_s: float,
    outcome: Outcome | None = None,
    *,
    purpose: Purpose = "search",
    suggest_s: float | None = 0.5,
) -> Run:
    return Run(
        number=number,
        trial=number,
        purpose=purpose,
        config=Config({"x": number}),
        submitted_at=submitted_at,
        submit_order=2 * number,
        finish_order=2 * number + 1,
        started_at=submitted_at,
        duration_s=duration_s,
        outcome=outcome or Completed(float(number)),
        metrics={} if suggest_s is None else {SUGGESTING: suggest_s},
    )


def used(runs: list[Run], slots: int = 1, pauses: tuple[tuple[float, float], ...] = ()) -> Activity:
    experiment = Experiment(space=Space(Integer("x", 0, 50)), slots=slots)
    return activity_of(replace(conclude(experiment, runs), pauses=pauses))


def test_a_pause_is_not_idle_time() -> None:
    runs = [run(0, 0.0, 10.0), run(1, 10.5, 9.5), run(2, 5_000.0, 10.0), run(3, 5_010.0, 10.0)]
    found = used(runs, pauses=((20.0, 5_000.0),))
    assert found.busy == pytest.approx(39.5 / 40.0)
    assert (found.finished, found.lost, found.suggesting_s) == (4, 0, 2.0)
    assert found.sentence() == "search: 4 runs finished, slots busy 98.8 % of the time, suggestions took 2.0 s"


def test_time_without_runs_is_idle_time() -> None:
    runs = [run(0, 0.0, 10.0, suggest_s=None), run(1, 110.0, 10.0, suggest_s=None)]
    found = used(runs)
    assert found.busy == pytest.approx(20.0 / 120.0)
    assert found.suggesting_s is None


def test_slots_lost_runs_and_the_verification() -> None:
    runs = [
        run(0, 0.0, 10.0),
        run(1, 0.0, 5.0, Failed("exit code 1")),
        run(2, 5.0, 1.0, Lost("a dead node")),
        run(3, 10.0, 100.0, purpose="verify"),
    ]
    found = used(runs, slots=2)
    assert (found.finished, found.lost) == (2, 1)
    assert found.busy == pytest.approx(0.8)
    assert "2 runs finished, 1 lost, slots busy 80 %" in found.sentence()


def test_nothing_ran() -> None:
    assert used([]) == Activity(0, 0, None, None)
    waiting = replace(run(0, 5.0, 0.0), duration_s=None, started_at=None, outcome=None, finish_order=None)
    assert used([waiting]).busy is None
    assert used([waiting]).sentence() == ""


def test_the_speedup_over_random() -> None:
    randomly = Search([run(number, 10.0 * number, 10.0, Completed(50.0 - number)) for number in range(30)])
    searched = Search([run(number, 5.0 * number, 5.0, Completed(40.0 - 10.0 * number)) for number in range(4)])
    assert compared(searched, randomly, 7, 1.0) == SearchSpeedup(7, 30, 3, 10.0, 20.0)
    assert compared(replace(searched, pauses=((5.0, 10.0),)), randomly, 7, 1.0) == SearchSpeedup(7, 30, 3, 10.0, 30.0)
    assert compared(randomly, searched, 7, 1.0) == SearchSpeedup(7, 4)  # 10 is never reached
    assert compared(searched, Search([run(0, 0.0, 1.0, Failed("exit code 1"))]), 7, 1.0) is None
    upwards = Search([run(number, number, 1.0, Completed(number + 1.0)) for number in range(4)])
    assert compared(upwards, Search([run(0, 0.0, 6.0, Completed(2.0))]), 7, -1.0) == SearchSpeedup(7, 1, 2, 0.5, 3.0)


def test_the_speedup_in_words() -> None:
    assert SearchSpeedup(7, 30, 3, 10.0, 20.0).sentence() == (
        "search speed-up over random: 10x by runs, 20x by time; "
        "as good as the best value of experiment 7 (random search, 30 runs) after 3 runs"
    )
    assert (
        SearchSpeedup(7, 30, 1, 30.0, None)
        .sentence()
        .endswith("30x by runs; as good as the best value of experiment 7 (random search, 30 runs) after 1 run")
    )
    assert "none, no value is as good" in SearchSpeedup(7, 30).sentence()


def test_only_a_random_search_of_the_same_experiment_is_compared() -> None:
    store = open_store("memory:")
    space, command = Space(Integer("x", 0, 50)), Template(("sleep", "{x}"), {})
    kinds = [
        Experiment(space=space, command=command, optimizer="random"),
        Experiment(space=Space(Integer("x", 0, 60)), command=command, optimizer="random"),
        Experiment(space=space, command=Template(("sleep", "1{x}"), {}), optimizer="random"),
        Experiment(space=space, command=command, optimizer="genetic"),
        Experiment(space=space, command=command),
        Experiment(space=space, command=command, slots=2),
    ]
    records = [store.create("sleep", kind.to_json(), 0.0) for kind in kinds]
    for record in records:
        store.append(
            record.id,
            replace(run(0, 0.0, 0.0), finish_order=None, started_at=None, duration_s=None, outcome=None, metrics={}),
        )
        store.finish(record.id, run(0, 0.0, 1.0, Completed(3.0)))

    def found(number: int) -> SearchSpeedup | None:
        record = store.experiment(records[number].id)
        return speedup_over_random(store, record, conclude(kinds[number], store.runs(record.id)))

    assert found(4) == SearchSpeedup(records[0].id, 1, 1, 1.0, 1.0)
    assert found(5) == SearchSpeedup(records[0].id, 1, 1, 1.0, None)  # other slots: times cannot be compared
    assert found(0) is None
    assert found(1) is None
