"""What pages do when a session ends, a connection is lost, or something is not there to show."""

import sys
from importlib import util

import pytest
from playwright.sync_api import expect
from tests.browser.browser_fixtures import Visit
from tests.browser.test_pages import TEXT, begin_new, enter, text_of_area
from tests.server.server_fixtures import PASSWORD, Running, running_server

import luthier as lt
from luthier.trial import Completed


def end_sessions(site: Running, name: str) -> None:
    for one in site.store.accounts.credentials(name):
        if one.kind == "session":
            site.store.accounts.revoke(one.id)


def log_in_here(visit: Visit, name: str) -> None:
    """Log in on the page to which the browser was sent."""
    page = visit.page
    page.wait_for_url("**/login?next=*")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()


def test_a_session_that_ends_leaves_the_form_as_it_was(site: Running, visit: Visit) -> None:
    site.add_user("ada", "admin")
    visit.expected.append("401")
    visit.log_in()
    page = begin_new(visit)
    page.get_by_label("Name", exact=True).first.fill("half typed")
    page.get_by_label("Budget", exact=True).fill("17")
    end_sessions(site, "ada")
    page.get_by_label("Application script").fill("echo not lost")
    log_in_here(visit, "ada")
    page.wait_for_url("**/new")
    expect(page.get_by_label("Application script")).to_have_value("echo not lost")
    expect(page.get_by_label("Name", exact=True).first).to_have_value("half typed")
    expect(page.get_by_label("Budget", exact=True)).to_have_value("17")
    visit.keep("20-form-after-login")
    assert page.evaluate("sessionStorage.length") == 0


def test_text_that_was_typed_is_there_after_a_login(site: Running, visit: Visit) -> None:
    site.add_user("ada", "admin")
    visit.expected.append("401")
    visit.log_in()
    page = begin_new(visit)
    page.get_by_role("tab", name="YAML").click()
    end_sessions(site, "ada")
    page.get_by_label("Experiment as YAML").fill(TEXT)
    log_in_here(visit, "ada")
    page.wait_for_url("**/new")
    expect(page.get_by_label("Experiment as YAML")).to_be_visible()
    assert text_of_area(page) == TEXT


def test_another_user_does_not_get_what_was_typed(site: Running, visit: Visit) -> None:
    site.add_user("ada", "admin")
    site.add_user("eve", "user")
    visit.expected.append("401")
    visit.log_in()
    page = begin_new(visit)
    end_sessions(site, "ada")
    page.get_by_label("Application script").fill("echo for ada alone")
    log_in_here(visit, "eve")
    page.wait_for_url("**/new")
    page.locator("html[data-ready]").wait_for()
    expect(page.get_by_label("Application script")).to_have_value("")
    assert page.evaluate("sessionStorage.length") == 0


def test_a_wrong_old_password_is_said(site: Running, visit: Visit) -> None:
    site.add_user("ada", "admin")
    visit.expected.append("403")
    visit.log_in()
    page = visit.page
    visit.go("/account")
    page.get_by_label("Old password").fill("not the right one")
    page.get_by_label("New password").fill("another long password")
    page.get_by_role("button", name="Change password").click()
    expect(page.get_by_role("alert")).to_have_text("the old password is wrong; nothing was changed")
    visit.keep("21-wrong-old-password")
    assert page.url.endswith("/account")


def test_who_was_invited_sets_a_password(site: Running, visit: Visit) -> None:
    site.add_user("root", "admin")
    site.context.authenticator.add_user("ada", "user", None)
    page = visit.page
    visit.go(f"/enter?token={site.context.authenticator.invite('ada')}")
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(site.url + "/")
    visit.go("/account")
    expect(page.get_by_label("Old password")).to_have_count(0)
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_role("button", name="Set password").click()
    expect(page.get_by_text("Your password was changed.")).to_be_visible()
    visit.keep("22-invited")
    end_sessions(site, "ada")
    visit.log_in()


def test_figures_and_tabs_recover_after_a_restart(site: Running, visit: Visit) -> None:
    number = site.launch()
    site.play(number, [Completed(9.0 - at % 7) for at in range(40)], "stopped")
    visit.expected += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE", "503", "ERR_"]
    enter(visit)
    page = visit.page
    visit.go(f"/experiments/{number}")
    page.locator("#panel-overview .js-plotly-plot").first.wait_for()
    site.stop()
    page.get_by_role("tab", name="Analysis").click()
    page.get_by_role("tab", name="Setup").click()
    page.locator("[data-failed]").first.wait_for()
    with running_server(site.store_url, port=int(site.url.rpartition(":")[2])):
        expect(page.locator("[data-failed]")).to_have_count(0)
        expect(page.locator("#panel-setup")).to_contain_text("echo $LEVEL")
        page.get_by_role("tab", name="Analysis").click()
        page.locator("#panel-insight .js-plotly-plot").first.wait_for()
        expect(page.locator("#panel-insight")).not_to_contain_text("cannot be reached")
        expect(page.locator("#offline")).to_have_count(0)
        visit.keep("23-recovered")


def test_a_python_function_has_no_script(site: Running, visit: Visit) -> None:
    lt.tune(lambda config: float(config["x"]), lt.Space(lt.Integer("x", 1, 9)), budget=5, store=site.store_url)
    enter(visit)
    visit.go("/experiments/1#setup")
    expect(visit.page.locator("#panel-setup")).to_contain_text("tunes a Python function; there is no script")
    expect(visit.page.locator("#panel-setup")).not_to_contain_text("Loading")
    visit.keep("24-function")


def test_parquet_is_offered_where_it_works(site: Running, visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    number = site.launch()
    site.play(number, [Completed(1.0)])
    enter(visit)
    links = visit.page.get_by_role("link", name="Runs as")
    visit.go(f"/experiments/{number}")
    visit.page.get_by_text("Export", exact=True).click()
    expect(links).to_have_text(["Runs as CSV", "Runs as JSON", "Runs as Parquet"])
    real = util.find_spec
    monkeypatch.setattr("luthier.report.export.find_spec", lambda name: None if name == "pyarrow" else real(name))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    visit.go(f"/experiments/{number}")
    visit.page.get_by_text("Export", exact=True).click()
    expect(links).to_have_text(["Runs as CSV", "Runs as JSON"])
    refused = site.ask("GET", f"/api/v1/experiments/{number}/export?format=parquet")
    assert refused.status == 422
    assert refused.json == {
        "error": "the format parquet needs pyarrow, which is not installed: pip install 'luthier[parquet]'"
    }
