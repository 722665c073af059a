"""The page and the list say why an experiment has no result."""

import pytest
from playwright.sync_api import expect
from tests.browser.browser_fixtures import PATIENCE_MS, Visit
from tests.browser.test_pages import enter
from tests.server.server_fixtures import EXPERIMENT, Running

expect.set_options(timeout=PATIENCE_MS)

BROKEN = EXPERIMENT.replace("echo $LEVEL", "echo begun; echo no file-$LEVEL >&2; exit 3")


@pytest.mark.usefixtures("worker")
def test_every_run_fails(site: Running, visit: Visit) -> None:
    number, page = site.launch(BROKEN), visit.page
    enter(visit)
    visit.go(f"/experiments/{number}")
    badge = page.locator("h1 .badge")
    expect(badge).to_have_text("no result")
    colour = "element => getComputedStyle(element).color"
    shown = badge.evaluate(colour)
    for status, is_same in (("failed", True), ("finished", False), ("queued", False)):
        badge.evaluate(f"element => (element.className = 'badge {status}')")
        assert (badge.evaluate(colour) == shown) == is_same
    failures = page.locator(".failures")
    expect(failures.get_by_role("row")).to_have_count(2)
    expect(failures.get_by_role("row").last).to_contain_text("failed: exit code 3: no file-1")
    expect(failures.locator("pre")).to_have_text(["no file-1", "begun"])
    expect(page.locator("#panel-overview .plot:visible")).to_have_count(0)
    expect(page.get_by_role("button", name="Resume")).to_have_count(0)
    visit.keep("no-result")
    visit.go("/")
    page.get_by_label("Status").select_option("failed")
    expect(page.locator("tr.link")).to_contain_text("none of 10 runs gave a number")
    visit.keep("no-result-in-the-list")
