"""Names that are scripts, on the pages of submitted jobs and on-line sessions: shown as texts, and never run."""

from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect
from tests.browser.browser_fixtures import PATIENCE_MS, Visit
from tests.browser.test_pages import enter
from tests.online.server.online_samples import a_session, a_view
from tests.server.server_fixtures import Running
from tests.submission.submitting import EXPERIMENT, with_tuned_job

from luthier.online.store import online_sessions_in
from luthier.submission.matching import NewJob
from luthier.submission.store import job_records_in, submissions_in
from luthier.submission.store.submitted import NewSubmission
from luthier.trial import Config, Json, Sample

expect.set_options(timeout=PATIENCE_MS)

SCRIPTS = (
    "<script>window.hurt=1</script>",
    '<img src=x onerror="window.hurt=1">',
    '"><svg onload=window.hurt=1>',
    "' autofocus onfocus='window.hurt=1",
    "javascript:window.hurt=1",
    "</textarea></template><iframe srcdoc='<script>parent.hurt=1</script>'>",
    "{{7*7}}${window.hurt=1}`window.hurt=1`",
    "__proto__",
    "<!-- <style>*{display:none}</style>",
    "\u202egnp.exe \x1b[31m\x00\u2028",
    "W" * 200,
)
BLOCKED = (
    "() => { window.blocked = []; addEventListener('securitypolicyviolation', (e) => blocked.push(e.blockedURI)) }"
)
SCROLLED = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth + 1).length"


def check(page: Page) -> None:
    """Nothing ran or was blocked, nothing was made of the names, and the page is no wider than the window."""
    assert page.evaluate("[window.hurt, Object.prototype.hurt, window.blocked]") == [None, None, []]
    assert page.locator("iframe, img, svg[onload], [onerror], [onfocus], main script, main style").count() == 0
    assert page.locator("a[href^='javascript']").count() == 0
    width, window = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width <= window


@pytest.fixture
def watched(visit: Visit) -> Visit:
    """A visit that notes what the content security policy blocks."""
    visit.page.add_init_script(f"({BLOCKED})()")
    return visit


def test_names_of_submitted_jobs(site: Running, watched: Visit) -> None:
    experiment = site.launch(EXPERIMENT)
    record = with_tuned_job(site.store, experiment, "ada")
    now, page = datetime.now(UTC), watched.page
    for text in (one.replace("\x00", "") for one in SCRIPTS):
        job = NewJob(text, text, text, text, now, 4)
        matched = NewSubmission(
            text, job, "set", text, record, experiment, text, 0.9, {text: 0.5, "user": 1.0}, {text: text}
        )
        unmatched = NewSubmission(text, job, "none", text)
        for number in submissions_in(site.store).add([matched, unmatched, unmatched]):
            submissions_in(site.store).note_end(number, "4711", "COMPLETED", 3600.0)
    job_records_in(site.store).withdraw(record, SCRIPTS[1])
    enter(watched)
    watched.go("/submissions")
    expect(page.locator("#decisions tbody tr")).to_have_count(3 * len(SCRIPTS))
    expect(page.locator("#withdrawn")).to_contain_text(SCRIPTS[1])
    expect(page.locator("#candidates")).to_contain_text(SCRIPTS[0])
    for text in SCRIPTS[:7]:
        expect(page.locator("#decisions b").get_by_text(text, exact=True).first).to_be_visible()
    for closed in page.locator("#decisions summary").all():
        closed.click()
    expect(page.locator("#decisions .chip").get_by_text(SCRIPTS[0]).first).to_be_visible()
    watched.keep("hostile-jobs")
    assert page.evaluate(SCROLLED) == 0
    check(page)
    page.set_viewport_size({"width": 420, "height": 800})
    watched.keep("hostile-jobs-narrow")
    check(page)


def test_names_of_online_sessions(site: Running, watched: Visit) -> None:
    page, store = watched.page, site.store
    names = [text.replace("\x00", "") for text in SCRIPTS]
    space: dict[str, Json] = {
        "parameters": [
            {"kind": "choice", "name": name[:200], "values": [name, "b"], "default": "b", "ordered": False}
            for name in SCRIPTS[:8]
        ],
        "constraints": [],
    }
    texts = {name[:200]: name for name in SCRIPTS[:8]}
    config: dict[str, Json] = {**texts}
    default: dict[str, Json] = dict.fromkeys(config, "b")
    clients: list[Json] = [{"name": name, "config": config, "since": 1.0, "reports": 4, "last": 1.25} for name in names]
    points: list[Json] = [
        {"config": one, "value": value, "samples": 3} for one, value in ((config, 1.25), (default, 2.5))
    ]
    view = a_view(clients=clients, best=points[0], default=points[1], points=points, strategy=SCRIPTS[0])
    made = a_session(store, SCRIPTS[1], SCRIPTS[0], view, space=space, strategy=SCRIPTS[2])
    online_sessions_in(store).update(made.id, seen_at=9e9, view=view)  # it is served
    online_sessions_in(store).append(made.id, [Sample(9, 1, SCRIPTS[1], Config(texts), 1.25, 200.0)])
    for name in names:
        a_session(store, name, name, a_view(strategy=name, goal=name))
    enter(watched)
    watched.go("/online")
    expect(page.locator("#list tbody tr")).to_have_count(len(names) + 1)
    watched.keep("hostile-online")
    assert page.evaluate(SCROLLED) == 0
    check(page)
    watched.go(f"/online/{made.id}")
    for name in SCRIPTS[:8]:
        expect(page.get_by_text(name[:200]).first).to_be_visible()
    watched.keep("hostile-session")
    check(page)
    page.set_viewport_size({"width": 420, "height": 800})
    watched.keep("hostile-session-narrow")
    check(page)
