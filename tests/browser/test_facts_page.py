"""The page of an experiment shows every fact of its result."""

from pathlib import Path

from playwright.sync_api import expect
from tests.browser.browser_fixtures import PATIENCE_MS, Visit
from tests.browser.test_pages import enter
from tests.result_facts import CASES, facts_of, kept
from tests.server.server_fixtures import Running

expect.set_options(timeout=PATIENCE_MS)

ELSEWHERE = ("recommendation", "explanation")  # the page writes these with chips and with a table of its own


def test_every_fact_is_on_the_page(site: Running, visit: Visit, tmp_path: Path) -> None:
    enter(visit)
    for name, case in CASES.items():
        number = kept(site.store, case, tmp_path / "logs")
        visit.go(f"/experiments/{number}")
        expect(visit.page.locator("dl.facts")).to_be_visible()
        text = visit.page.locator("#experiment").inner_text().lower()
        for fact, found in facts_of(site.store, number)[1].items():
            cells = [] if found.table is None else [cell for row in found.table.rows for cell in row]
            for line in [] if fact.name in ELSEWHERE else [*found.sentences, *cells]:
                assert line.lower().removeprefix("waiting: ") in text, (name, fact.name)
        visit.keep(f"facts-{name}")
