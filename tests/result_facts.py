"""Experiments that have every fact between them, and what the facts of a result tell people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from luthier import launch
from luthier.optimizers.earlier import Earlier
from luthier.result.explanation import Explanation, Observation
from luthier.result.facts import FACTS, Fact, find_facts
from luthier.result.findings import Findings, Found, stored_findings
from luthier.result.result import Result
from luthier.space import Integer, Space
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.spec.origin import Origin, Searched, Step
from luthier.spec.template import Template
from luthier.store.base import Machine, Owner, Record, RequestedBy, Status
from luthier.store.server_store import ServerStore
from luthier.trial import Completed, Config, Failed, Outcome, Pruned, Purpose, Run

SPACE = Space(Integer("x", 0, 9), Integer("y", 0, 9))
SEARCH = Experiment(space=SPACE, command=Template(("prog", "{x}", "{y}")), objectives=(Objective("returned"),))
ORIGIN = Origin(
    (Step("kernel", ("verified",), 10.0), Step("search", ("4 s -> 1 s",), 20.0)),
    "the application",
    Searched("abc", 1, 12, "the I/O kernel"),
)
EXPLAINED = Explanation(
    1.0, Observation({"x": 0, "y": 0}, {"wall_s": 2.0}), Observation({"x": 1, "y": 1}, {"wall_s": 1.0})
)


@dataclass(frozen=True)
class Case:
    """An experiment with the outcomes of its runs: (trial, outcome), those of a verification at the end."""

    experiment: Experiment
    outcomes: Sequence[tuple[int, Outcome]] = ()
    pairs: int = 0
    status: Status | None = "finished"
    explanation: Explanation | None = None
    facts: frozenset[str] = field(default_factory=frozenset)


def search(values: Sequence[float]) -> list[tuple[int, Outcome]]:
    """A search with these values."""
    return [(trial, Completed(value)) for trial, value in enumerate(values)]


FALLING = search([4.0, 3.0, 2.0, 1.0])
CASES: Mapping[str, Case] = {
    "random": Case(replace(SEARCH, optimizer="random"), FALLING),
    "transfer": Case(
        replace(SEARCH, earlier=Earlier((), notes=("experiment 9 (old): 1 of 2 parameters",))),
        FALLING,
        facts=frozenset({"learned_from", "ending", "activity"}),
    ),
    "drift": Case(
        SEARCH,
        [(0, Completed(1.0 + 0.001 * (at % 3) + (at > 9))) for at in range(20)] + [(1, Completed(0.9))],
        facts=frozenset({"drift", "noise"}),
    ),
    "outlier": Case(
        SEARCH,
        [(0, Completed(9.0 if at == 7 else 1.0 + 0.001 * (at % 3))) for at in range(12)],
        facts=frozenset({"outliers"}),
    ),
    "pruned": Case(
        SEARCH,
        [*FALLING, (4, Pruned("slower than the best", 5.0))],
        facts=frozenset({"failures", "search_speedup"}),
    ),
    "objectives": Case(
        replace(SEARCH, objectives=(Objective("json:a"), Objective("json:b"))),
        [(0, Completed(3.0, (3.0,))), (1, Completed(1.0, (2.0,))), (2, Completed(2.0, (1.0,)))],
        facts=frozenset({"configurations"}),
    ),
    "comparison": Case(
        replace(SEARCH, origin=ORIGIN, verify_pairs=5),
        FALLING[:2],
        pairs=5,
        explanation=EXPLAINED,
        facts=frozenset({"steps", "method", "return", "explanation"}),
    ),
    "impact first": Case(replace(SEARCH, impact_first="statistical"), FALLING, facts=frozenset({"impact_first"})),
    "stopped": Case(SEARCH, FALLING, status="stopped", facts=frozenset({"next_step", "working_time", "computer"})),
    "no result": Case(
        SEARCH,
        [(0, Failed("exit code 3")), (1, Failed("exit code 3"))],
        status="no result",
        facts=frozenset({"failures", "next_step"}),
    ),
    "queued": Case(SEARCH, status=None, facts=frozenset({"waiting", "verdict", "recommendation", "cost"})),
}


def kept(store: ServerStore, case: Case, logs: Path) -> int:
    """Write an experiment with its runs into a store; its number. Without a status it waits in the queue."""
    history, owner = store.history, Owner("elsewhere", 1, "1")
    asked = RequestedBy("ada") if case.status is None else None
    record = history.create("case", case.experiment.to_json(), 0.0, asked)
    if case.status is None:
        return record.id
    history.claim(record.id, owner, 1.0, None, None, Machine("node7", "Xeon", 64, "9.8.7"))
    verification = [(place % 2, Completed(4.0 - place % 2)) for place in range(2 * case.pairs)]
    logs.mkdir(exist_ok=True)
    (logs / "stderr").write_text("no such file")
    for number, (trial, outcome) in enumerate([*case.outcomes, *verification]):
        is_search = number < len(case.outcomes)
        purpose: Purpose = "verify" if not is_search else "search" if number else "default"
        at = 100.0 + 10.0 * number
        run = Run(number, trial, purpose, Config({"x": trial, "y": trial}), at, 2 * number)
        history.append(record.id, run)
        ended = replace(run, finish_order=2 * number + 1, started_at=at, duration_s=5.0)
        history.finish(record.id, replace(ended, outcome=outcome, logs=str(logs)))
    history.heartbeat(record.id, owner, 400.0)
    history.close(record.id, owner, case.status, {"ending": "it was enough"})
    if case.explanation is not None:
        store.explanations.put(record.id, case.explanation.to_json())
    return record.id


def facts_of(store: ServerStore, number: int) -> tuple[Findings, dict[Fact, Found]]:
    """All facts of a stored experiment."""
    record, result = launch.open(number, store.history)
    findings = stored_findings(store, record, result, 1000.0)
    return findings, find_facts(findings)


def told(result: Result, *names: str) -> list[str]:
    """The sentences of the facts of these names, for a finished experiment."""
    record = Record(1, "uid", "name", 0.0, result.experiment.to_json(), "finished")
    return [line for name in names for line in FACTS.get(name).find(Findings(record, result, 0.0)).sentences]
