"""The pages in a real browser: the whole way of an experiment, and what people do with keys and buttons."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.browser_fixtures import PATIENCE_MS, Visit
from tests.server.server_fixtures import Running

from luthier.server.authentication import LOCAL
from luthier.trial import Completed, Failed, Outcome

expect.set_options(timeout=PATIENCE_MS)

SCRIPT = 'sleep 0.1; echo "latency $((LEVEL * 7 % 23 + 1))"'
TEXT = """\
experiment:
  name: typed   # a remark
  budget: 12
  script: echo $LEVEL
  first: [{LEVEL: 3}]   # nothing that the form shows
definitions:
  knob:
    parameters:
      LEVEL: {env_var: true, type: int, default: 1, min: 1, max: 9}
components:
  knob: {}
"""


def played(site: Running) -> int:
    """A finished experiment of one person, with some failures."""
    number = site.launch()
    values: list[Outcome] = [Completed(9.0 - number % 7) for number in range(40)]
    site.play(number, [*values, Failed("it broke"), Completed(1.5)])
    return number


def enter(visit: Visit) -> None:
    visit.go(f"/enter?token={visit.site.context.authenticator.invite(LOCAL)}")
    visit.page.get_by_role("button", name="Log in").click()
    visit.page.wait_for_url(visit.site.url + "/")


def begin_new(visit: Visit, path: str = "/new") -> Page:
    visit.page.on("dialog", lambda dialog: dialog.accept())  # that what was typed is given up is fine
    visit.go(path)
    visit.page.locator("html[data-ready]").wait_for()
    return visit.page


def text_of_area(page: Page) -> str:
    return page.get_by_label("Experiment as YAML").input_value()


@pytest.mark.usefixtures("worker")
def test_the_whole_way(site: Running, visit: Visit) -> None:
    site.add_user("ada", "admin")
    page = visit.page
    wrong_password(visit)
    visit.log_in()
    visit.keep("1-nothing-yet")
    register_component(visit)
    launch_by_form(visit)
    watch_stop_and_resume(visit)
    look_inside(visit)
    clone(visit)
    compare(visit)
    page.get_by_label("Your account").click()
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login")


def wrong_password(visit: Visit) -> None:
    visit.expected.append("401")
    visit.go("/login")
    visit.page.get_by_label("Name", exact=True).fill("ada")
    visit.page.get_by_label("Password").fill("not the right one")
    visit.page.get_by_role("button", name="Log in").click()
    expect(visit.page.get_by_role("alert")).to_have_text("wrong name or password")


def register_component(visit: Visit) -> None:
    page = visit.page
    visit.go("/components")
    page.get_by_role("link", name="Register a component").first.click()
    page.locator("html[data-ready]").wait_for()
    names = page.get_by_label("Name", exact=True)
    names.nth(0).fill("knob")
    page.get_by_label("Description", exact=True).fill("a knob to turn")
    names.nth(1).fill("LEVEL")
    page.get_by_label("Default", exact=True).fill("1")
    page.get_by_label("argument of the command").uncheck()
    expect(page.locator("#check")).to_contain_text("is not passed to the program")
    visit.keep("2-component-with-an-error")
    page.get_by_label("environment variable").check()
    page.get_by_label("Kind of values").select_option("range")
    page.get_by_label("Lowest value").fill("1")
    page.get_by_label("Highest value").fill("200")
    page.get_by_role("button", name="Register").click()
    page.wait_for_url("**/components")
    expect(page.get_by_role("cell", name="a knob to turn")).to_be_visible()
    visit.keep("3-components")


def launch_by_form(visit: Visit) -> None:
    page = visit.page
    visit.go("/")
    page.get_by_role("link", name="New experiment").click()
    page.get_by_label("Component", exact=True).select_option("knob")
    page.get_by_label("Name", exact=True).fill("turning the knob")
    page.get_by_label("Application script").fill(SCRIPT)
    page.get_by_label("Budget", exact=True).fill("0")
    expect(page.get_by_label("Budget", exact=True)).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Budget", exact=True).fill("150")
    page.get_by_role("textbox", name="Measure").fill("regex:latency (.*)")
    expect(page.locator("#script")).to_contain_text(SCRIPT)
    expect(page.locator("#check")).to_contain_text("200 configurations")
    visit.keep("4-new")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/experiments/1")


def watch_stop_and_resume(visit: Visit) -> None:
    page = visit.page
    page.locator(".badge.running").wait_for()
    runs = page.locator(".facts dd").first
    expect(runs).not_to_contain_text("0 of 150")
    before = runs.text_content()
    expect(runs).not_to_have_text(before or "")  # without loading the page again
    page.locator(".js-plotly-plot .scatterlayer .trace").first.wait_for(state="attached")
    visit.keep("5-live")
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("button", name="Resume").click()
    page.locator(".badge.running").wait_for()
    page.get_by_role("button", name="Stop", exact=True).click()
    page.locator(".badge.stopped").wait_for()
    visit.keep("6-stopped")


def look_inside(visit: Visit) -> None:
    page = visit.page
    for name in ("Analysis", "Setup", "Trials"):
        page.get_by_role("tab", name=name).click()
        expect(page.get_by_role("tabpanel", name=name)).to_be_visible()
    page.get_by_label("Runs of trial 0").click()
    page.get_by_role("button", name="stdout").first.click()
    expect(page.locator(".code-block.log")).to_contain_text("latency 8")
    page.get_by_role("button", name="Script of this configuration").click()
    expect(page.locator("tr.inside .code-block")).to_contain_text("echo")
    visit.keep("7-trials")
    page.get_by_text("Export", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Runs as CSV").click()
    text = Path(download.value.path()).read_text()
    assert text.startswith("run,")
    assert "LEVEL" in text.splitlines()[0]


def clone(visit: Visit) -> None:
    page = begin_new(visit, "/new?clone=1")
    expect(page.get_by_label("Name", exact=True)).to_have_value("turning the knob")
    expect(page.get_by_label("Highest value of LEVEL")).to_have_value("200")
    page.get_by_label("Name", exact=True).fill("turning it again")
    page.get_by_label("Highest value of LEVEL").fill("20")
    expect(page.locator("#check")).to_contain_text("20 configurations")
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url("**/experiments/2")
    expect(page.get_by_role("heading", name="turning it again")).to_be_visible()


def compare(visit: Visit) -> None:
    page = visit.page
    visit.go("/")
    page.get_by_label("Compare turning it again").check()
    page.get_by_label("Compare turning the knob").check()
    page.get_by_role("link", name="Compare 2").click()
    page.locator(".js-plotly-plot .scatterlayer .trace").first.wait_for(state="attached")
    expect(page.get_by_role("columnheader", name="turning it again #2")).to_be_visible()
    visit.keep("8-compare")


def test_what_is_typed_in_the_form_is_kept(visit: Visit) -> None:
    enter(visit)
    page = begin_new(visit)
    page.get_by_role("tab", name="YAML").click()
    page.get_by_label("Experiment as YAML").fill(TEXT)
    page.get_by_role("tab", name="Form").click()
    name = page.get_by_label("Name", exact=True).first
    name.click()
    page.keyboard.press("Home")
    for letter in "a long name, ":  # longer than the pause after which the other view follows
        page.keyboard.type(letter)
        page.wait_for_timeout(60 if letter != " " else 600)
    assert name.input_value() == "a long name, typed"
    assert name.evaluate("(field) => field.selectionStart") == len("a long name, ")
    page.get_by_role("tab", name="YAML").click()
    expect(page.get_by_label("Experiment as YAML")).to_be_visible()
    text = text_of_area(page)
    assert "a long name, typed" in text
    assert "echo $LEVEL" in text


def test_what_is_typed_in_the_text_is_kept_with_its_remarks(visit: Visit) -> None:
    enter(visit)
    page = begin_new(visit)
    page.get_by_role("tab", name="YAML").click()
    area = page.get_by_label("Experiment as YAML")
    expect(area).to_have_value("experiment:\n  budget: 60\n")
    area.fill("")
    area.click()
    words = "# by hand\nexperiment:\nname: x # why\n"
    for letter in words:
        page.keyboard.type(letter)
        page.wait_for_timeout(20 if letter != "\n" else 600)
    assert area.input_value() == words
    assert area.evaluate("(field) => field.selectionStart") == len(words)
    area.fill(TEXT)
    page.get_by_role("tab", name="Form").click()
    expect(page.get_by_label("Budget", exact=True)).to_have_value("12")
    page.get_by_role("tab", name="YAML").click()
    assert text_of_area(page) == TEXT
    page.get_by_role("tab", name="Form").click()
    page.get_by_label("Budget", exact=True).fill("13")
    page.get_by_text("Search, noise, pruning, stopping").click()
    page.get_by_label("After experiment").fill("3")
    page.get_by_role("tab", name="YAML").click()
    expect(area).to_have_value(TEXT_AFTER_THE_FORM)


TEXT_AFTER_THE_FORM = """\
experiment:
  name: typed
  budget: 13
  script: echo $LEVEL
  first:
  - LEVEL: 3
  after:
  - 3
definitions:
  knob:
    parameters:
      LEVEL:
        env_var: true
        type: int
        default: 1
        min: 1
        max: 9
components:
  knob:
    LEVEL:
      min: 1
      max: 9
"""


def test_a_mistake_in_the_text_is_shown_at_its_line_and_keeps_the_form_away(visit: Visit) -> None:
    enter(visit)
    visit.expected.append("422")
    page = begin_new(visit)
    page.get_by_role("tab", name="YAML").click()
    area = page.get_by_label("Experiment as YAML")
    area.fill(TEXT.replace("type: int", "type: whole"))
    expect(page.locator(".editor .gutter b")).to_have_text("9")
    expect(page.locator("#check")).to_contain_text("Line 9")
    expect(page.get_by_role("button", name="Launch")).to_be_disabled()
    area.fill("experiment: {")
    page.get_by_role("tab", name="Form").click()
    expect(page.get_by_role("status")).to_contain_text("not YAML")
    expect(area).to_be_visible()
    assert area.input_value() == "experiment: {"


def test_the_tab_key_indents_and_lets_people_go(visit: Visit) -> None:
    enter(visit)
    page = begin_new(visit)
    script = page.get_by_label("Application script")
    script.click()
    page.keyboard.type("if true; then")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("echo")
    assert script.input_value() == "if true; then\n  echo"
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Budget", exact=True)).to_be_focused()


def test_the_theme_is_remembered_and_plots_follow_it(site: Running, visit: Visit) -> None:
    number = played(site)
    enter(visit)
    page = visit.page
    visit.go(f"/experiments/{number}")
    tick = page.locator(".js-plotly-plot .xtick text").first
    plot = page.locator("#panel-overview .plot").first
    plot.scroll_into_view_if_needed()  # figures are loaded when they are seen
    tick.wait_for()
    light = tick.evaluate("(one) => getComputedStyle(one).fill")
    visit.keep("9-light")
    page.get_by_role("button", name="Dark theme").click()
    page.wait_for_function(
        "(before) => getComputedStyle(document.querySelector('.xtick text')).fill !== before", arg=light
    )
    page.reload()
    plot.scroll_into_view_if_needed()
    tick.wait_for()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert tick.evaluate("(one) => getComputedStyle(one).fill") != light
    visit.keep("10-dark")


def test_the_list_is_searched_filtered_and_live(site: Running, visit: Visit) -> None:
    number = played(site)
    enter(visit)
    page = visit.page
    row = page.get_by_role("row", name="first try")
    expect(row.locator(".badge")).to_have_text("finished")
    page.keyboard.press("/")
    page.keyboard.type("second")
    expect(page.get_by_text("No matching experiments")).to_be_visible()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    expect(row).to_be_visible()
    page.get_by_label("Status", exact=True).select_option("queued")
    expect(row).to_be_hidden()
    site.launch()  # appears by itself
    expect(row.locator(".badge")).to_have_text("queued")
    page.get_by_label("Status", exact=True).select_option("")
    expect(page.get_by_role("row", name="first try")).to_have_count(2)
    site.store.queue.delete(number, None)
    expect(page.get_by_role("row", name="first try")).to_have_count(1)


def test_an_example_is_one_click_away(site: Running, visit: Visit) -> None:
    enter(visit)
    visit.page.get_by_role("button", name="Launch the example").click()
    visit.page.wait_for_url("**/experiments/1")
    expect(visit.page.get_by_text("Waiting in the queue")).to_be_visible()
    assert site.store.history.experiment(1).name == "block size of dd"


def test_names_of_experiments_are_text(site: Running, visit: Visit) -> None:
    hostile = "<img src=//elsewhere.test/x onerror=alert(1)>"
    site.launch(TEXT.replace("name: typed", f"name: {hostile!r}"))
    enter(visit)
    expect(visit.page.get_by_role("link", name=hostile)).to_be_visible()
    visit.go("/experiments/1")
    expect(visit.page.get_by_role("heading", name=hostile)).to_be_visible()


def test_one_experiment_can_be_shared_and_deleted(site: Running, visit: Visit) -> None:
    number = played(site)
    enter(visit)
    page = visit.page
    visit.go(f"/experiments/{number}")
    page.get_by_role("button", name="Share").click()
    expect(page.get_by_text("shared with all users")).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url(site.url + "/")
    expect(page.get_by_text("No experiments yet")).to_be_visible()


def test_viewers_look_at_what_is_shared_and_change_nothing(site: Running, visit: Visit) -> None:
    number = played(site)
    site.store.queue.share(number, shared=True)
    site.add_user("ada", "admin")
    site.add_user("eve", "viewer")
    visit.log_in("eve")
    page = visit.page
    page.get_by_role("link", name="first try").click()
    expect(page.get_by_text("Export", exact=True)).to_be_visible()
    for name in ("Clone", "Share", "Delete", "Resume"):
        expect(page.get_by_text(name, exact=True)).to_have_count(0)
    expect(page.get_by_role("link", name="New experiment")).to_have_count(0)


def test_tokens_and_users_are_looked_after(site: Running, visit: Visit) -> None:
    site.add_user("ada", "admin")
    visit.log_in()
    page = visit.page
    visit.go("/account")
    page.get_by_label("Label").fill("nightly")
    page.get_by_role("button", name="Create token").click()
    token = page.locator("#made pre").text_content() or ""
    assert site.ask("GET", "/api/v1/me", token=token).status == 200
    visit.go("/admin")
    page.get_by_label("Name", exact=True).fill("bob")
    page.get_by_role("button", name="Add and invite").click()
    expect(page.locator("#invited pre")).to_contain_text("/enter?token=")
    visit.keep("11-users")
    assert site.store.accounts.user("bob").role == "user"
