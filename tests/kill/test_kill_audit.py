"""The audit of the kill benchmark finds everything that must not happen, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from tests.kill.audit import Breach, Evidence, Kill, audit

from luthier.store.base import Record
from luthier.trial import Completed, Config, Failed, Lost, Outcome, Run, TimedOut

RECORD = Record(id=1, uid="e", name="one", created_at=0.0, settings={}, status="finished")
KILLED = Failed("killed by SIGKILL")
DEAD = Lost("the supervisor of this run died")


def run(number: int, outcome: Outcome | None, *, a: int = 1, trial: int | None = None) -> Run:
    config, trial = Config({"A": a, "B": 2, "D": 3}), number if trial is None else trial
    return Run(number, trial, "search", config, 0.0, 2 * number, outcome=outcome, uid="r")


def lines(key: str, *words: str, a: int = 1) -> list[str]:
    return [f"{word} {key} {a} 2 3" for word in words]


BOTH = ("started", "finished")
DONE = run(0, Completed(123.0))


def found(runs: Sequence[Run], trace: Sequence[str], *kills: Kill) -> list[Breach]:
    return [breach for breach, _ in audit(Evidence([(RECORD, runs)], trace, kills))]


def test_what_is_recorded_as_it_happened_is_no_breach() -> None:
    runs = [DONE, run(1, KILLED), run(2, DEAD), run(3, DEAD), run(4, KILLED), run(5, DEAD)]
    trace = [
        *lines("e-0-r", *BOTH),
        *lines("e-1-r", "started"),
        *lines("e-2-r", "started"),
        *lines("e-4-r", *BOTH),  # killed between its last line and its end
        *lines("e-5-r", *BOTH),  # its supervisor was killed before it could tell
    ]
    kills = [
        Kill("tuner"),
        Kill("program", "e-1-r"),
        Kill("supervisor", "e-2-r", is_fatal=True),
        Kill("supervisor", "e-3-r"),
        Kill("program", "e-4-r"),
        Kill("supervisor", "e-5-r", is_fatal=True),
    ]
    assert found(runs, trace, *kills) == []


@dataclass(frozen=True)
class Case:
    """Runs and a trace that do not fit together."""

    breach: Breach
    runs: list[Run]
    trace: list[str]
    kills: list[Kill] = field(default_factory=list)


CASES = {
    "executed without a record": Case("lost", [], lines("e-0-r", *BOTH)),
    "done, but failed": Case("lost", [run(0, KILLED)], lines("e-0-r", *BOTH)),
    "done, but failed for another reason": Case(
        "lost", [run(0, Failed("no match"))], lines("e-0-r", *BOTH), [Kill("program", "e-0-r")]
    ),
    "done, but lost": Case("lost", [run(0, DEAD)], lines("e-0-r", *BOTH), [Kill("program", "e-0-r")]),
    "done for another supervisor, but lost": Case(
        "lost", [run(0, DEAD)], lines("e-0-r", *BOTH), [Kill("supervisor", "e-0-r")]
    ),
    "done, but timed out": Case(
        "lost", [run(0, TimedOut("long"))], lines("e-0-r", *BOTH), [Kill("supervisor", "e-0-r")]
    ),
    "done, but still running": Case("lost", [run(0, None)], lines("e-0-r", *BOTH)),
    "the supervisor died, but failed": Case(
        "lost", [run(0, KILLED)], lines("e-0-r", "started"), [Kill("supervisor", "e-0-r", is_fatal=True)]
    ),
    "started twice": Case("doubled", [DONE], lines("e-0-r", "started", *BOTH)),
    "finished twice": Case("doubled", [DONE], lines("e-0-r", *BOTH, "finished")),
    "a trial measured twice": Case(
        "doubled", [DONE, run(1, Completed(123.0), trial=0)], lines("e-0-r", *BOTH) + lines("e-1-r", *BOTH)
    ),
    "never executed": Case("invented", [DONE], []),
    "never finished": Case("invented", [DONE], lines("e-0-r", "started")),
    "completed by a dead supervisor": Case(
        "invented", [DONE], lines("e-0-r", *BOTH), [Kill("supervisor", "e-0-r", is_fatal=True)]
    ),
    "another's value": Case("mismatched", [run(0, Completed(124.0))], lines("e-0-r", *BOTH)),
    "another's configuration": Case("mismatched", [DONE], lines("e-0-r", *BOTH, a=7)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_run_that_contradicts_the_trace_is_found(name: str) -> None:
    case = CASES[name]
    assert found(case.runs, case.trace, *case.kills) == [case.breach]


def test_experiments_are_there_once_and_finished() -> None:
    running = replace(RECORD, id=2, name="two", status="running")
    assert [breach for breach, _ in audit(Evidence([(RECORD, []), (running, [])], []))] == ["unfinished"]
    twice = Evidence([(RECORD, []), (replace(RECORD, id=2, uid="f"), [])], [])
    assert {breach for breach, _ in audit(twice)} == {"doubled"}
    assert audit(Evidence([(RECORD, [])], [], launched=["one", "two"])) == [("lost", "experiment two")]


def test_what_was_seen_stays_so() -> None:
    trace, seen = lines("e-0-r", *BOTH), {"e-0-r": DONE}
    assert audit(Evidence([(RECORD, [DONE])], trace, seen=seen)) == []
    vanished = audit(Evidence([(RECORD, [])], [], seen=seen))
    assert [breach for breach, _ in vanished] == ["lost"]


def test_a_program_that_outlives_its_run_is_found() -> None:
    assert audit(Evidence([], [], alive=["e-0-r"])) == [("left alive", "e-0-r")]
