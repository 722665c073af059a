"""Every fact of a result, declared once: terminal, JSON, REST, page and report iterate over `FACTS`.

To add a fact, write a function from `Findings` to `Found` and one entry of the list. A wing adds its own through the
group `luthier.facts`. Figures have a list of their own (`luthier.figures`), and so have settings (`luthier.spec`); the
trials and the importance of parameters, which is slow to compute, are shown beside the facts.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from luthier.plugins import Registry
from luthier.result import findings as parts
from luthier.result.findings import Findings, Found
from luthier.result.result import Result
from luthier.result.serial import record_json
from luthier.store.base import Record
from luthier.trial import Json

Topic = Literal["answer", "tuning", "explanation", "failures", "noise", "environment"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact. `find` computes it, and decides whether people see it; `when` tells them for which experiments.

    `keys` are its places in the JSON of a result, where they are present for every experiment. `unit` is that of its
    numbers, where there is one: `s`, or `measure` for that of the measure. A fact that `changes` does so without a new
    run: with the time, the status, or other parts of the store.
    """

    name: str
    title: str
    topic: Topic
    when: str
    find: Callable[[Findings], Found]
    keys: tuple[str, ...]
    unit: str = ""
    changes: bool = False


def all_facts() -> list[Fact]:
    """The facts of the core in the order in which they are shown, then those of wings."""
    return [FACTS.get(name) for name in FACTS.own()]


def find_facts(findings: Findings, known: Mapping[Fact, Found] = MappingProxyType({})) -> dict[Fact, Found]:
    """All facts of an experiment, those that are `known` as they are."""
    return {fact: known[fact] if fact in known else fact.find(findings) for fact in all_facts()}


def lasting_facts(findings: Findings) -> dict[Fact, Found]:
    """The facts that do not change without a new run."""
    return {fact: fact.find(findings) for fact in all_facts() if not fact.changes}


def by_topic(found: Mapping[Fact, Found]) -> dict[Topic, list[tuple[Fact, Found]]]:
    """The facts that people see, by topic."""
    shown = [(fact, one) for fact, one in found.items() if one.is_shown]
    return {topic: [(fact, one) for fact, one in shown if fact.topic == topic] for topic in get_args(Topic)}


def result_json(record: Record, result: Result) -> dict[str, Json]:
    """An experiment and all facts of its result, as far as they are known without its store."""
    return {**record_json(record), **facts_json(find_facts(Findings(record, result, time.time())))}


def facts_json(found: Mapping[Fact, Found]) -> dict[str, Json]:
    """The values of all facts by key, and under `facts` what people see of them."""
    values = {key: value for one in found.values() for key, value in one.json.items()}
    return {**values, "facts": [_shown_json(fact, one) for fact, one in found.items() if one.is_shown]}


def _shown_json(fact: Fact, found: Found) -> dict[str, Json]:
    table = found.table
    return {
        "name": fact.name,
        "title": fact.title,
        "topic": fact.topic,
        "unit": fact.unit,
        "sentences": list(found.sentences),
        "table": None
        if table is None
        else {"headings": list(table.headings), "rows": [list(row) for row in table.rows]},
        "texts": [list(text) for text in found.texts],
    }


_DECLARED = (
    Fact(
        "configurations",
        "Compared with the default",
        "answer",
        "a configuration has been tried",
        parts.configurations_found,
        ("default", "best", "compared", "front"),
        unit="measure",
    ),
    Fact("verdict", "Verdict", "answer", "always", parts.verdict_found, ("verdict", "improved", "speedup")),
    Fact("method", "Method", "answer", "there was a verification", parts.method_found, ("method",)),
    Fact(
        "cost",
        "Cost",
        "answer",
        "always",
        parts.cost_found,
        ("cost_s", "lost", "configurations", "size", "explored"),
        unit="s",
    ),
    Fact(
        "working_time",
        "Time",
        "environment",
        "work has begun",
        parts.working_time_found,
        ("elapsed_s", "left_s"),
        unit="s",
        changes=True,
    ),
    Fact("waiting", "Waiting", "environment", "it is in a queue", parts.waiting_found, ("waiting",), changes=True),
    Fact("ending", "End of the search", "tuning", "a search has ended", parts.ending_found, ("ending",), changes=True),
    Fact(
        "learned_from",
        "Transfer",
        "tuning",
        "it learns from earlier experiments",
        parts.learned_from_found,
        ("learned_from",),
    ),
    Fact(
        "impact_first",
        "Impact first",
        "tuning",
        "a few parameters are tuned at a time",
        parts.impact_first_found,
        ("impact_first",),
    ),
    Fact("steps", "Steps", "tuning", "it is a step of a larger tuning", parts.steps_found, ("steps",), unit="s"),
    Fact("return", "Return on tuning", "tuning", "there was a verification", parts.return_found, ("return",)),
    Fact("activity", "Slots", "tuning", "a run of a search has ended", parts.activity_found, ("activity",)),
    Fact(
        "search_speedup",
        "Search speed-up",
        "tuning",
        "the store has a random search of the same",
        parts.search_speedup_found,
        ("search_speedup",),
        changes=True,
    ),
    Fact(
        "noise",
        "Noise",
        "noise",
        "a configuration ran twice",
        parts.noise_found,
        ("noise", "repeats", "estimator"),
    ),
    Fact("drift", "Drift of the machine", "noise", "its speed changed", parts.drift_found, ("machine",)),
    Fact("outliers", "Outliers", "noise", "there are outliers", parts.outliers_found, ("outliers",)),
    Fact(
        "failures",
        "Runs without a number",
        "failures",
        "a run gave no number",
        parts.failures_found,
        ("failures", "failing_output"),
    ),
    Fact(
        "explanation",
        "What the best configuration does differently",
        "explanation",
        "`luthier explain` was used",
        parts.explanation_found,
        ("explanation",),
        changes=True,
    ),
    Fact("computer", "Computer", "environment", "work has begun", parts.computer_found, ("computer",), changes=True),
    Fact(
        "recommendation",
        "Recommendation",
        "answer",
        "always",
        parts.recommendation_found,
        ("recommended", "command"),
    ),
    Fact(
        "next_step",
        "Next step",
        "answer",
        "it was stopped, was interrupted or has no result",
        parts.next_step_found,
        ("next_step",),
        changes=True,
    ),
)

FACTS: Registry[Fact] = Registry(
    "fact", {fact.name: fact for fact in _DECLARED}, fits=lambda found: isinstance(found, Fact)
)
"""Every fact by name; those of wings are added through the group `luthier.facts`."""
