"""The page of an experiment that has ended: what the tuning brought, and more runs for it."""

import pytest
from playwright.sync_api import expect
from tests.browser.browser_fixtures import PATIENCE_MS, Visit
from tests.browser.test_pages import enter
from tests.server.server_fixtures import EXPERIMENT, Running

expect.set_options(timeout=PATIENCE_MS)

TIMED = (
    EXPERIMENT.replace("budget: 40", "budget: 16, production_runs: 500, stop: learned, measure: wall")
    .replace("echo $LEVEL", "sleep 0.0$LEVEL")
    .replace("default: 1", "default: 9")
)


@pytest.mark.usefixtures("worker")
def test_more_runs(site: Running, visit: Visit) -> None:
    number, page = site.launch(TIMED), visit.page
    enter(visit)
    visit.go(f"/experiments/{number}")
    expect(page.locator("h1 .badge")).to_have_text("finished")
    expect(page.locator(".verdict")).to_contain_text("Return on tuning (RoTI): ")
    expect(page.locator(".verdict")).to_contain_text("Net gain over 500 runs in production: ")
    before = site.store.history.experiment(number).runs
    page.locator("summary", has_text="More runs").click()
    amount = page.get_by_label("More runs")
    amount.fill("0")
    page.get_by_role("button", name="Continue").click()
    assert site.store.history.experiment(number).status == "finished", "the form says what is wrong with 0"
    amount.fill("12")
    visit.keep("more-runs")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".facts")).to_contain_text(f"of {before + 12}")
    expect(page.locator("h1 .badge")).to_have_text("finished")
    record = site.store.history.experiment(number)
    assert before < record.runs <= before + 12
    page.get_by_role("tab", name="Analysis").click()
    expect(page.get_by_role("heading", name="Return on tuning")).to_be_visible()
    visit.keep("return-on-tuning")
