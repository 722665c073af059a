"""The page of submitted jobs."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect
from tests.browser.browser_fixtures import PATIENCE_MS, Visit
from tests.browser.test_pages import begin_new, enter, text_of_area
from tests.server.server_fixtures import Running
from tests.submission.submitting import EXPERIMENT, SCRIPT, with_tuned_job

from luthier.submission.matching import job_of_script
from luthier.submission.store import job_records_in, submissions_in
from luthier.submission.store.submitted import Decision, NewSubmission

expect.set_options(timeout=PATIENCE_MS)

FIELDS = {"user": 1.0, "name": 0.82, "program": 1.0, "nodes": 1.0}


def submissions(site: Running) -> int:
    """An hour of a cluster; returns the number of the experiment that jobs were matched with."""
    experiment = site.launch(EXPERIMENT)
    record = with_tuned_job(site.store, experiment, "ada")
    now = datetime.now(UTC).astimezone()
    job = job_of_script(SCRIPT, "ada", now - timedelta(minutes=50), name="<b>stencil</b>")
    other = job_of_script("srun -N4 ./icon", "bob", now, name="climate")
    matched = {"record_id": record, "experiment_id": experiment, "component": "knob", "score": 0.93, "by_field": FIELDS}
    decisions: list[tuple[Decision, str]] = [
        ("set", "sets KNOB_LEVEL=42 as found by experiment 1 (similarity 0.93)"),
        ("default", "sets nothing: it keeps the default this time (experiment 1)"),
        ("unused", "sets nothing: the job sets KNOB_LEVEL itself (experiment 1)"),
    ]
    new = [NewSubmission("ada", job, decision, why, **matched) for decision, why in decisions]  # type: ignore[arg-type]  # of different types
    new += [NewSubmission("bob", other, "none", "no tuned job is similar enough")] * 2
    for number in submissions_in(site.store).add(new):
        submissions_in(site.store).note_end(number, str(4000 + number), "COMPLETED", 3600.0)
    return experiment


def test_decisions_gains_and_candidates(site: Running, visit: Visit) -> None:
    page = visit.page
    enter(visit)
    page.get_by_role("link", name="Jobs").click()
    expect(page.get_by_text("No jobs yet")).to_be_visible()
    visit.keep("no-jobs")
    submissions(site)
    expect(page.get_by_text("<b>stencil</b>").first).to_be_visible()  # without a reload, and as text
    expect(page.locator("#gains")).to_contain_text("estimated from the experiment")
    expect(page.locator("#gains")).to_contain_text("1 h")
    expect(page.locator("#candidates")).to_contain_text("icon")
    expect(page.locator("#candidates-note")).to_contain_text("is an estimate")
    page.locator("#decisions summary").first.click()
    expect(page.locator("#decisions details[open]")).to_contain_text("name 0.82")
    visit.keep("jobs")


def test_a_match_is_confirmed_rejected_and_neither(site: Running, visit: Visit) -> None:
    page = visit.page
    submissions(site)
    enter(visit)
    visit.go("/submissions")
    for name, pressed, stored in (("Right", "true", [True]), ("Wrong", "true", [False]), ("Wrong", "false", [])):
        button = page.get_by_role("button", name=f"{name} match of job 1")
        button.press("Enter")
        expect(page.get_by_role("button", name=f"{name} match of job 1")).to_have_attribute("aria-pressed", pressed)
        assert [confirmed for _, confirmed in submissions_in(site.store).reviews()] == stored


def test_withdrawn_configurations_can_be_used_again(site: Running, visit: Visit) -> None:
    submissions(site)
    job_records_in(site.store).withdraw(1, "jobs became 1.2x slower")
    enter(visit)
    visit.go("/submissions")
    expect(visit.page.locator("#withdrawn")).to_contain_text("jobs became 1.2x slower")
    visit.page.get_by_role("button", name="Use again").click()
    expect(visit.page.locator("#withdrawn-card")).to_be_hidden()
    assert job_records_in(site.store).get(1).withdrawn is None


def test_a_new_experiment_begins_with_what_the_matched_one_found(site: Running, visit: Visit) -> None:
    experiment = submissions(site)
    enter(visit)
    visit.go("/submissions")
    link = visit.page.get_by_role("link", name="Tune again from it").first
    address = link.get_attribute("href")
    assert address is not None
    page = begin_new(visit, address)
    page.get_by_text("YAML", exact=True).click()
    text = text_of_area(page)
    assert "after:" in text
    assert f"- {experiment}" in text or f"[{experiment}]" in text


@pytest.mark.parametrize("name", ["ada", "bob"])
def test_users_see_their_own_jobs(site: Running, visit: Visit, name: str) -> None:
    submissions(site)
    site.add_user("root", "admin")
    site.add_user(name, "viewer")
    visit.log_in(name)
    visit.go("/submissions")
    rows = visit.page.locator("#decisions tbody > tr[data-id]")
    expect(rows).to_have_count(3 if name == "ada" else 2)
    assert visit.page.get_by_role("link", name="Tune again from it").count() == 0  # a viewer launches nothing
