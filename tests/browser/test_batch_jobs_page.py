"""The page says what jobs of a batch system wait for, and keeps their numbers."""

import re
import time
from dataclasses import replace

from playwright.sync_api import expect
from tests.browser.browser_fixtures import PATIENCE_MS, Visit
from tests.browser.test_pages import enter
from tests.server.server_fixtures import Running

from luthier.store.base import Owner
from luthier.store.ownership import claim
from luthier.trial import BatchJob, Completed, Config, Run

expect.set_options(timeout=PATIENCE_MS)


def owned(site: Running) -> tuple[int, Owner]:
    """An experiment with a run that is over and one that has been waiting for an hour."""
    number, history = site.launch(), site.store.history
    owner = claim(history, history.experiment(number))
    first = Run(0, 0, "default", Config({"LEVEL": 1}), 100.0, 0)
    history.append(number, first)
    ended = replace(first, finish_order=1, started_at=100.0, duration_s=0.5, outcome=Completed(1.0), batch_job="70")
    history.finish(number, ended)
    history.append(number, Run(1, 1, "search", Config({"LEVEL": 2}), time.time() - 3600.0, 2))
    return number, owner


def test_a_job_that_waits(site: Running, visit: Visit) -> None:
    number, owner = owned(site)
    enter(visit)
    visit.go(f"/experiments/{number}")
    rows, queue = visit.page.locator(".latest-runs tr"), visit.page.locator(".queue")
    expect(rows.last.locator("td").last).to_have_text("70")
    expect(queue).to_be_hidden()
    site.store.history.heartbeat(number, owner, time.time(), {1: BatchJob("71", "PENDING", "Resources")})
    expect(rows.first.locator("td").last).to_have_text(
        re.compile(r"^71 PENDING \(Resources\), 1 h 0\d min in the queue$")
    )
    expect(queue).to_contain_text("1 of 1 jobs wait")
    visit.keep("waiting-job")
    site.store.history.heartbeat(number, owner, time.time(), {1: BatchJob("71", "RUNNING", began_at=time.time())})
    expect(rows.first.locator("td").last).to_have_text("71 RUNNING")
    expect(queue).to_be_hidden()
    visit.page.get_by_role("tab", name="Trials").click()
    visit.page.get_by_role("button", name="Runs of trial 0").click()
    expect(visit.page.locator("tr.inside").first).to_contain_text("70")
