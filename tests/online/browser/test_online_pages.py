"""The pages of on-line sessions, while real programs are tuned through a real service."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.browser_fixtures import PATIENCE_MS, Visit
from tests.browser.test_pages import enter
from tests.online.server.online_samples import a_session, a_view
from tests.server.server_fixtures import Running

from luthier.online.server import summaries as online_summaries
from luthier.online.server.serving import OnlineServing
from luthier.online.store import online_sessions_in
from luthier.store import open_server_store

expect.set_options(timeout=PATIENCE_MS)

PROGRAM = Path(__file__).with_name("online_client.py")


class Program:
    """A client process; it runs steps when it is told to."""

    def __init__(self, address: str, name: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), address, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, steps: int, factor: float = 1.0) -> dict[str, object]:
        """Make steps; the phase that it heard of, and the configuration that it runs then."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{steps} {factor}\n")
        self.process.stdin.flush()
        said: dict[str, object] = json.loads(self.process.stdout.readline())
        return said

    def run_until(self, phase: str, factor: float = 1.0, beside: "Program | None" = None) -> None:
        """Make steps until it hears of a phase, together with another program if there is one."""
        give_up_at = time.monotonic() + PATIENCE_MS / 1000
        while time.monotonic() < give_up_at:
            if self.run(5, factor)["phase"] == phase:
                return
            if beside is not None:
                beside.run(5, factor)
        raise AssertionError(f"not {phase}")

    def kill(self) -> None:
        """Kill it, as a crash would."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def serving(site: Running, tmp_path: Path) -> Iterator[OnlineServing]:
    """An on-line service over the store of the site."""
    found = OnlineServing(open_server_store(site.store_url), [f"unix:{tmp_path / 'online.sock'}"])
    found.start()
    yield found
    found.stop()


@pytest.fixture
def start(serving: OnlineServing) -> Iterator[Callable[..., Program]]:
    """Starts programs, and leaves none behind."""
    with ExitStack() as stack:

        def started(name: str = "stencil") -> Program:
            program = Program(serving.addresses[0], name)
            stack.callback(program.kill)
            return program

        yield started


def fact(page: Page, name: str) -> str:
    text = page.locator(".facts > div", has=page.get_by_text(name, exact=True)).locator("dd").inner_text()
    return re.sub(r"\s+", " ", text)


def test_a_program_is_seen_while_it_is_tuned(visit: Visit, start: Callable[..., Program]) -> None:
    page = visit.page
    enter(visit)
    page.get_by_role("link", name="On-line").click()
    expect(page.locator("#list h2")).to_have_text("No on-line sessions yet")
    for text in ("lt.RemoteTuner", "luthier_open", "luthier tune --online"):
        expect(page.locator("#list")).to_contain_text(text)
    visit.keep("online-empty")

    first = start()
    assert first.run(0)["phase"] == "baseline"
    row = page.locator("#list tbody tr")
    expect(row.locator(".badge")).to_have_text("baseline")  # without a reload
    expect(row.locator(".gain")).to_have_count(0)  # no number that was not measured
    row.get_by_role("link", name="stencil").click()
    expect(page.locator("h1 .badge")).to_have_text("baseline")
    expect(page.locator(".verdict .big")).to_have_text("–")
    assert [fact(page, name) for name in ("Default value", "Total", "Saved")] == [
        "–",
        "– of all steps",
        "– nothing to compare yet",
    ]
    visit.keep("online-baseline")
    first.run(1)
    expect(page.locator(".facts")).to_contain_text("1.67")  # the default, in the first step
    expect(page.locator(".verdict .big")).to_have_text("–")

    second = start()
    for program in (second, first):
        program.run(1)  # the default with two clients, with which the next steps are compared
    for program in (first, second, first, second):
        program.run(3)
    expect(page.locator("h1 .badge")).to_have_text("searching")
    expect(page.locator("#session section", has_text="What each client runs").locator("tbody tr")).to_have_count(2)
    expect(page.locator(".verdict .big")).to_contain_text("×")
    expect(page.locator(".js-plotly-plot .legendtext", has_text="default")).to_be_visible()
    visit.keep("online-searching")

    first.run_until("converged", beside=second)
    expect(page.locator("h1 .badge")).to_have_text("converged")
    expect(page.locator(".chips.best .chip.changed").first).to_contain_text("block=8")
    expect(page.locator(".verdict .big.yes")).to_contain_text("×")
    assert "instead of" in fact(page, "Saved")
    visit.keep("online-converged")
    page.get_by_role("button", name="Dark theme").click()
    visit.keep("online-converged-dark")
    page.set_viewport_size({"width": 420, "height": 800})
    page.locator(".js-plotly-plot").scroll_into_view_if_needed()
    give_up_at = time.monotonic() + PATIENCE_MS / 1000
    while page.evaluate("document.documentElement.scrollWidth") > 420:  # until the figure fits
        assert time.monotonic() < give_up_at
        page.wait_for_timeout(50)
    visit.keep("online-converged-narrow")


def test_stop_leaves_the_clients_on_the_best(site: Running, visit: Visit, start: Callable[..., Program]) -> None:
    page = visit.page
    programs = [start(), start()]
    for program in programs * 3:
        program.run(4)
    enter(visit)
    visit.go("/online/1")
    expect(page.locator("h1 .badge")).to_have_text("searching")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("h1 .badge")).to_have_text("stopped")
    expect(page.get_by_text("clients stay on the best configuration").first).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    programs[0].run_until("stopped")
    said = [program.run(2) for program in programs]
    assert said == [{"phase": "stopped", "config": said[0]["config"]}] * 2
    rows = page.locator("#session section", has_text="What each client runs").locator("tbody tr")
    for number in (0, 1):
        expect(rows.nth(number).locator(".badge").first).to_have_text("best")
    visit.keep("online-stopped")
    best = online_sessions_in(site.store).get(1).view
    assert best is not None
    assert said[0]["config"] == best["best"]["config"]  # type: ignore[index,call-overload]  # as it is written

    programs[0].kill()
    expect(rows).to_have_count(1)  # without a reload
    page.get_by_role("button", name="Delete").click()
    visit.keep("online-delete")
    page.locator("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url(site.url + "/online")
    expect(page.locator("#list h2")).to_have_text("No on-line sessions yet")
    assert online_sessions_in(site.store).all() == []


def test_a_change_of_the_program_is_told(visit: Visit, start: Callable[..., Program]) -> None:
    page, program = visit.page, start()
    program.run_until("converged")
    program.run(50)  # to compare later steps with
    enter(visit)
    visit.go("/online/1")
    expect(page.locator("h1 .badge")).to_have_text("converged")
    program.run_until("searching", 3.0)
    expect(page.locator(".verdict")).to_contain_text(re.compile(r"the values became [23][.\d]* times as large"))
    expect(page.locator(".legendtext", has_text="search began again")).to_be_visible()
    assert fact(page, "Steps").endswith("search 2")
    assert fact(page, "Default value") == "– not measured since the change"  # what it was before does not count
    visit.keep("online-changed")


def test_a_session_that_nobody_serves(
    visit: Visit, start: Callable[..., Program], serving: OnlineServing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(online_summaries, "SERVED_S", 4.0)
    page, program = visit.page, start()
    program.run(10)
    enter(visit)
    visit.go("/online/1")
    expect(page.locator("h1 .badge")).to_have_text("searching")
    serving.stop()
    expect(page.locator("h1 .badge")).to_have_text("not served")  # without a reload
    expect(page.locator("#session")).to_contain_text("No client is connected.")
    expect(page.locator(".verdict")).to_contain_text("goes on when a client connects")
    visit.keep("online-not-served")


def test_others_see_what_is_shared_and_change_nothing(site: Running, visit: Visit) -> None:
    for name, role in (("root", "admin"), ("ada", "user"), ("bob", "viewer")):
        site.add_user(name, role)  # type: ignore[arg-type]  # they are roles
    made = a_session(site.store, "<b>hers</b>", "ada")
    page = visit.page
    visit.expected.append("404")
    visit.log_in("bob")
    visit.go("/online")
    expect(page.locator("#list .empty")).to_contain_text("Your role is viewer.")
    visit.go(f"/online/{made.id}")
    expect(page.locator("main")).to_contain_text("does not exist, or it is not shared with you")
    online_sessions_in(site.store).share(made.id, shared=True)
    visit.go("/online")
    page.get_by_role("link", name="<b>hers</b>").click()
    expect(page.locator("h1")).to_contain_text("<b>hers</b>")
    expect(page.locator("#session .actions button")).to_have_count(0)
    assert fact(page, "Saved") == "44 % 50 instead of 90 in 36 of 40 steps"
    online_sessions_in(site.store).update(made.id, seen_at=9e9, view=a_view(steps=41, phase="converged"))
    expect(page.locator("h1 .badge")).to_have_text("converged")  # without a reload
    online_sessions_in(site.store).share(made.id, shared=False)
    expect(page.locator("#session")).to_contain_text("it is not shared with you now")
