"""A real browser, and a server with a worker for it."""

import os
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.conftest import missing
from tests.server.server_fixtures import PASSWORD, Running, running_server

from luthier.launch.worker import Worker

PATIENCE_MS = 60_000
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium, for all tests of a file."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        missing("Chromium is not installed; as root: sh tests/services.sh")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=_OPTIONS)
        yield opened
        opened.close()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """A server with its own store, and nobody known to it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LUTHIER_STORE", raising=False)
    with running_server(f"sqlite:///{tmp_path / 'site.db'}") as running:
        yield running


@pytest.fixture
def worker(site: Running) -> Iterator[None]:
    """Somebody who works on what is launched there."""
    stopped = threading.Event()
    worker = Worker(site.store, site.store_url)
    thread = threading.Thread(target=worker.run, args=(stopped,))
    thread.start()
    yield
    for record in site.store.queue.waiting():
        site.store.history.request_stop(record.id)
    stopped.set()
    thread.join()
    while worker.working:  # what was begun comes to its end
        worker.look()
        time.sleep(0.05)


@dataclass
class Visit:
    """A page of the site in a browser of its own; `expected` are parts of what the console may complain about."""

    site: Running
    page: Page
    folder: Path
    expected: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        self.page.goto(self.site.url + path)

    def log_in(self, name: str = "ada") -> None:
        """Log in on the login page, as a user with `PASSWORD`."""
        self.go("/login")
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_url(self.site.url + "/")

    def keep(self, name: str) -> None:
        """Take a picture of the whole page."""
        self.page.evaluate("scrollTo(0, 0)")
        self.page.screenshot(path=self.folder / f"{name}.png", full_page=True)

    def note(self, complaint: str) -> None:
        if not any(part in complaint for part in self.expected):
            self.complaints.append(complaint)


@pytest.fixture
def visit(site: Running, browser: Browser, tmp_path: Path) -> Iterator[Visit]:
    """Somebody who looks at the site; nothing may break, and nothing may be fetched from elsewhere."""
    folder = Path(os.environ.get("LUTHIER_SCREENSHOTS") or tmp_path / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    context = browser.new_context(viewport={"width": 1280, "height": 860}, accept_downloads=True)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    visit = Visit(site, page, folder)
    host = urlsplit(site.url).netloc
    page.on("console", lambda said: visit.note(f"{said.text} {said.location}") if said.type == "error" else None)
    page.on("pageerror", lambda error: visit.note(str(error)))
    page.on("request", lambda sent: None if _is_own(sent.url, host) else visit.note(f"a request to {sent.url}"))
    yield visit
    context.close()
    assert visit.complaints == []


def _is_own(address: str, host: str) -> bool:
    parts = urlsplit(address)
    return parts.scheme in ("data", "blob") or parts.netloc == host
