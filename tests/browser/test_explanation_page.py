"""The page of an experiment shows what its best configuration does differently."""

from playwright.sync_api import expect
from tests.browser.browser_fixtures import PATIENCE_MS, Visit
from tests.browser.test_pages import enter
from tests.server.server_fixtures import Running
from tests.server.test_explanation_api import EXPLAINED, SENTENCE

from luthier.trial import Completed

expect.set_options(timeout=PATIENCE_MS)


def test_an_explanation_is_shown_when_there_is_one(site: Running, visit: Visit) -> None:
    number, page = site.launch(), visit.page
    site.play(number, [Completed(2.0), Completed(1.0)])
    enter(visit)
    visit.go(f"/experiments/{number}")
    expect(page.locator("h1")).to_be_visible()
    explanation = page.locator(".explanation")
    expect(explanation).to_be_hidden()
    site.store.explanations.put(number, EXPLAINED.to_json())
    visit.go(f"/experiments/{number}")
    expect(explanation.get_by_role("listitem")).to_have_text([SENTENCE])
    expect(explanation.get_by_role("row")).to_have_count(2)
    expect(explanation.get_by_role("row").last).to_contain_text("POSIX writes")
    expect(explanation.get_by_role("row").last).to_contain_text("1,024 times fewer")
    expect(explanation).to_contain_text("<b>perf</b> is not installed.")
    expect(explanation).to_contain_text("Default: LEVEL=1. Best: LEVEL=4.")
    visit.keep("explanation")
