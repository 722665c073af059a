"""Every fact of a result reaches people and programs everywhere: terminal, JSON, REST and report."""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pytest
from rich.console import Console
from tests.result_facts import CASES, SEARCH, facts_of, kept
from tests.server.server_fixtures import Running, server_of_its_own

from luthier import plugins
from luthier.cli.summary import facts_view
from luthier.report import report_html
from luthier.result.facts import FACTS, Fact, all_facts, facts_json, find_facts
from luthier.result.findings import Findings, Found
from luthier.result.result import conclude
from luthier.result.serial import record_json
from luthier.result.text import sentence_text
from luthier.store.base import Record

RECORD = Record(1, "uid", "name", 0.0, SEARCH.to_json(), "finished")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with all cases; their numbers are in the order of `CASES`."""
    folder = tmp_path_factory.mktemp("facts")
    with server_of_its_own(folder) as running:
        for case in CASES.values():
            kept(running.store, case, folder / "logs")
        yield running


def terminal(record: Record, found: dict[Fact, Found]) -> str:
    console = Console(width=10_000, markup=False, highlight=False)
    with console.capture() as captured:
        console.print(facts_view(record, found))
    return captured.get()


def words(found: Found) -> list[str]:
    """Every text of a fact; of what a program wrote, the last line."""
    cells = [] if found.table is None else [cell for row in found.table.rows for cell in row]
    return [*found.sentences, *cells, *(text.splitlines()[-1] for _, text in found.texts)]


@pytest.mark.parametrize(("number", "name"), list(enumerate(CASES, start=1)))
def test_every_fact_is_shown_everywhere(site: Running, number: int, name: str) -> None:
    findings, found = facts_of(site.store, number)
    shown = {fact.name: one for fact, one in found.items() if one.is_shown}
    assert CASES[name].facts <= shown.keys()
    detail = cast("dict[str, Any]", site.ask("GET", f"/api/v1/experiments/{number}").json)
    told = {one["name"]: one for one in detail["result"]["facts"]}
    assert [*told] == [*shown]
    values = facts_json(found)
    assert detail["result"].keys() == record_json(findings.record).keys() | values.keys()
    report = html.unescape(site.ask("GET", f"/api/v1/experiments/{number}/report").body.decode())
    text = terminal(findings.record, found)
    for fact, one in shown.items():
        assert told[fact]["sentences"] == [*one.sentences]
        for line in words(one):
            assert line in text
            assert line in report or sentence_text(line) in report


def test_between_them_the_cases_have_every_fact() -> None:
    assert set().union(*(case.facts for case in CASES.values())) == set(FACTS.own())


def test_a_fact_says_where_its_values_are() -> None:
    found = find_facts(Findings(RECORD, conclude(SEARCH, []), 0.0))
    assert {fact.name: set(fact.keys) for fact in found} == {fact.name: set(one.json) for fact, one in found.items()}
    keys = [key for fact in found for key in fact.keys]
    assert len(keys) == len(set(keys))
    assert not set(keys) & {*record_json(RECORD), "facts", "importance", "trials"}


def test_what_is_not_in_the_list_is_not_shown() -> None:
    only = {fact: Found({}) for fact in all_facts()}
    assert terminal(RECORD, only).strip() == ""
    assert facts_json(only) == {"facts": []}


def moon(findings: Findings) -> Found:
    """A fact of a wing."""
    return Found({"moon": "full"}, [f"the moon was full above {findings.record.name}"])


MOON = Fact("moon", "Moon", "noise", "at night", moon, ("moon",))


def test_a_wing_adds_a_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    plugs = MappingProxyType({"luthier.facts": MappingProxyType({"moon": f"{__name__}:MOON"})})
    monkeypatch.setattr(plugins, "_joined", {"moons": plugins.Wing("moons", plugs=plugs)})
    findings = Findings(RECORD, conclude(SEARCH, []), 0.0)
    found = find_facts(findings)
    assert "the moon was full above name" in terminal(RECORD, found)
    assert facts_json(found)["moon"] == "full"
    assert "<li>The moon was full above name.</li>" in report_html(findings, {})


def test_the_documentation_lists_every_fact() -> None:
    text = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", text.partition("(facts)=")[2], re.MULTILINE)
    keys = {fact.name: ", ".join(f"`{key}`" for key in fact.keys) for fact in all_facts()}
    assert rows == [(fact.name, fact.when, keys[fact.name]) for fact in all_facts()]
