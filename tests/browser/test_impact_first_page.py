"""The page of an experiment says which parameters are tuned now."""

from playwright.sync_api import expect
from tests.browser.browser_fixtures import PATIENCE_MS, Visit
from tests.browser.test_pages import enter
from tests.server.server_fixtures import Running
from tests.server.test_impact_first_api import launch_narrowed

expect.set_options(timeout=PATIENCE_MS)


def test_the_page_says_what_is_tuned_now(site: Running, visit: Visit) -> None:
    number = launch_narrowed(site)
    enter(visit)
    visit.go(f"/experiments/{number}")
    verdict = visit.page.locator(".verdict")
    expect(verdict).to_contain_text("Impact first: tuned now: all 3 parameters: nothing is known yet")
    visit.keep("impact-first")
