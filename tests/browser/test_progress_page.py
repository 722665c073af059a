"""The page of an experiment while it waits, runs and is stopped; its clone; the folder in the form."""

import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.browser_fixtures import PATIENCE_MS, Visit
from tests.browser.test_pages import begin_new, enter
from tests.server.server_fixtures import EXPERIMENT, Running

from luthier import __version__
from luthier.store.base import Owner

expect.set_options(timeout=PATIENCE_MS)

SLOW = (
    EXPERIMENT.replace("budget: 40", "budget: 300, optimizer: random, measure: 'regex:(.+)'")
    .replace("echo $LEVEL", "sleep 0.1; echo $LEVEL")
    .replace("default: 1", "default: 99")
)


def test_a_queued_experiment_says_what_it_waits_for(site: Running, visit: Visit) -> None:
    page = visit.page
    first, second = site.launch(), site.launch()
    enter(visit)
    visit.go(f"/experiments/{first}")
    waiting = page.locator("#panel-overview .empty")
    expect(waiting).to_contain_text("No worker is running; start one with: luthier worker.")
    visit.keep("queued-without-a-worker")
    site.store.queue.note_worker(Owner("elsewhere", 1, "1"), time.time())
    visit.go(f"/experiments/{second}")
    expect(waiting).to_contain_text("1 experiment is before it in the queue, and 0 are running.")
    visit.keep("queued")
    site.store.history.request_stop(first)
    expect(waiting).to_contain_text("A worker is about to start it.")  # without a reload


@pytest.mark.usefixtures("worker")
def test_stop_and_verify(site: Running, visit: Visit) -> None:
    number, page = site.launch(SLOW), visit.page
    enter(visit)
    visit.go(f"/experiments/{number}")
    facts = page.locator(".facts")
    expect(page.locator(".best-so-far .chip")).to_contain_text("LEVEL=99")
    expect(facts.locator("div", has_text="Elapsed")).to_contain_text("s")
    expect(facts.locator("div", has_text="Time left")).to_contain_text("≤")
    expect(facts.locator("div", has_text="Time left")).to_contain_text("estimate")
    visit.keep("running")
    page.get_by_role("button", name="Stop and verify").click()
    expect(page.locator("h1 .badge")).to_have_text("finished")
    expect(page.locator(".verdict")).to_contain_text("The search ended: stopped by request, then verified.")
    expect(page.locator(".verdict .big.yes")).to_contain_text("×")
    expect(page.get_by_role("button", name="Stop and verify")).to_have_count(0)
    expect(page.locator(".best-so-far")).to_have_count(0)
    assert site.store.history.experiment(number).runs < 300
    visit.keep("stopped-and-verified")
    page.get_by_role("tab", name="Setup").click()
    runs = page.locator("#panel-setup .card", has=page.get_by_role("heading", name="Runs", exact=True))
    for text in (platform.node(), "core", __version__, "work"):
        expect(runs).to_contain_text(text)
    visit.keep("setup-with-machine")


@pytest.mark.usefixtures("worker")
def test_after_a_stop_the_best_and_the_times_stay(site: Running, visit: Visit) -> None:
    number, page = site.launch(SLOW), visit.page
    enter(visit)
    visit.go(f"/experiments/{number}")
    expect(page.locator(".best-so-far")).to_be_visible()
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator("h1 .badge")).to_have_text("stopped")
    expect(page.locator(".best-so-far .chip")).to_contain_text("LEVEL=99")
    expect(page.locator(".facts div", has_text="Left if resumed")).to_contain_text("≤")
    expect(page.get_by_role("heading", name="Keep the default")).to_have_count(0)
    visit.keep("stopped")


def test_a_clone_of_a_command_line_experiment_opens_the_form(site: Running, visit: Visit, tmp_path: Path) -> None:
    page = visit.page
    words = ["tune", "-q", "-n", "4", "--store", site.store_url, "-m", "regex:(.+)", "-p", "x=1..9@5", "-p", "m=a b,c"]
    argv = [sys.executable, "-m", "luthier", *words, "--", "sh", "-c", "echo {x}; : {m}"]
    subprocess.run(argv, cwd=tmp_path, check=True, capture_output=True, timeout=300)
    enter(visit)
    visit.go("/experiments/1")
    page.get_by_role("link", name="Clone").click()
    page.wait_for_url("**/new?clone=1")
    expect(page.locator("#check")).to_contain_text("2 parameters, 18 configurations.")
    assert len(site.store.history.experiments()) == 1  # nothing was launched
    expect(page.get_by_label("Working folder")).to_have_value(str(tmp_path))
    expect(page.get_by_label("Budget")).to_have_value("4")
    visit.keep("clone-of-a-command")
    page.get_by_label("Budget").fill("3")
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url("**/experiments/2")
    copy = site.store.history.experiment(2)
    assert (copy.settings["budget"], copy.settings["cwd"]) == (3, str(tmp_path))


def test_the_form_says_that_a_folder_does_not_exist(site: Running, visit: Visit, tmp_path: Path) -> None:
    site.launch()
    enter(visit)
    page = begin_new(visit, "/new?clone=1")
    folder = page.get_by_label("Working folder")
    problem = page.locator(".field", has=folder).locator(".problem")
    for text, message in (("/no/where", "does not exist on the server"), ("data", "is not an absolute path")):
        folder.fill(text)
        expect(problem).to_contain_text(message)
        expect(page.get_by_role("button", name="Launch")).to_be_disabled()
    visit.keep("folder-that-does-not-exist")
    folder.fill(str(tmp_path))
    expect(page.get_by_role("button", name="Launch")).to_be_enabled()
