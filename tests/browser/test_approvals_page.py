"""The variables of a component in jobs of all users, on its page."""

from playwright.sync_api import expect
from tests.browser.browser_fixtures import PATIENCE_MS, Visit
from tests.browser.test_pages import enter
from tests.server.server_fixtures import Running

expect.set_options(timeout=PATIENCE_MS)

COMPONENT = """
components:
  openmpi:
    description: collective operations
    parameters:
      OMPI_MCA_coll_tuned_use_dynamic_rules: {env_var: true, type: int, default: 1}
      OMPI_MCA_coll_tuned_allreduce_algorithm: {env_var: true, type: int, default: 0, min: 0, max: 6}
      MODE: {env_var: true, type: str, default: slow, values: [slow, fast, <b>x</b>]}
      DEPTH: {env_var: true, type: int, default: 1, min: 1, max: 9}
      LD_PRELOAD: {env_var: true, type: str, default: x}
"""


def approved(site: Running) -> dict[str, str]:
    return {one.variable: one.allowed for one in site.store.components.approvals()}


def test_an_administrator_approves_and_withdraws(site: Running, visit: Visit) -> None:
    page = visit.page
    site.ask("POST", "/api/v1/components", {"yaml": COMPONENT})
    enter(visit)
    visit.go("/components/openmpi")
    card = page.locator("#approvals")
    expect(card).to_contain_text("known to be harmless: 0..100")
    expect(card).to_contain_text("never set")
    assert card.get_by_role("button", name="Approve LD_PRELOAD").count() == 0
    visit.keep("approvals-none")
    card.get_by_role("button", name="Approve the harmless ones").click()
    expect(card.get_by_role("button", name="Withdraw OMPI_MCA_coll_tuned_use_dynamic_rules")).to_be_visible()
    harmless = {
        "OMPI_MCA_coll_tuned_allreduce_algorithm": "0..100",
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "0..1 true false",
    }
    assert approved(site) == harmless
    expect(card.get_by_role("button", name="Approve the harmless ones")).to_have_count(0)
    card.get_by_label("Allowed values of DEPTH").fill("2..4 8")
    card.get_by_role("button", name="Approve DEPTH").click()
    expect(card.get_by_role("button", name="Withdraw DEPTH")).to_be_visible()
    assert approved(site) == {**harmless, "DEPTH": "2..4 8"}
    expect(card).to_contain_text("local, ")
    visit.keep("approvals")
    card.get_by_role("button", name="Withdraw DEPTH").click()
    expect(card.get_by_role("button", name="Withdraw DEPTH")).to_have_count(0)
    assert approved(site) == harmless


def test_what_cannot_be_approved_is_said(site: Running, visit: Visit) -> None:
    page = visit.page
    site.ask("POST", "/api/v1/components", {"yaml": COMPONENT})
    enter(visit)
    visit.expected.append("422")
    visit.go("/components/openmpi")
    page.get_by_label("Allowed values of DEPTH").fill("$(rm)")
    page.get_by_role("button", name="Approve DEPTH").click()
    expect(page.get_by_text("has other characters")).to_be_visible()
    assert approved(site) == {}


def test_a_saved_change_takes_approvals_back(site: Running, visit: Visit) -> None:
    page = visit.page
    site.ask("POST", "/api/v1/components", {"yaml": COMPONENT})
    enter(visit)
    visit.go("/components/openmpi")
    page.get_by_role("button", name="Approve DEPTH").click()
    expect(page.get_by_role("button", name="Withdraw DEPTH")).to_be_visible()
    page.get_by_label("Description", exact=True).fill("changed")
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_role("button", name="Withdraw DEPTH")).to_have_count(0)
    assert approved(site) == {}


def test_others_see_what_is_approved(site: Running, visit: Visit) -> None:
    page = visit.page
    site.ask("POST", "/api/v1/components", {"yaml": COMPONENT})
    site.add_user("root", "admin")
    site.add_user("bob", "user")
    visit.log_in("bob")
    visit.go("/components/openmpi")
    expect(page.locator("#approvals")).to_contain_text("Administrators approve them")
    assert page.locator("#approvals button").count() == 0
