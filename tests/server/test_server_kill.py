"""The whole server as people start it: launched experiments outlive it, also when it is killed."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

PATIENCE_S = 240.0
EXPERIMENTS = 20
FEW = 6
BUDGET = 3
DOCUMENT = """
experiment:
  name: {name}
  budget: {budget}
  verify: 0
  script: "echo $LEVEL >> {trace}; until [ -e {gate} ]; do sleep 0.1; done"
definitions:
  sleeper: {{parameters: {{LEVEL: {{env_var: true, type: int, default: 1}}}}}}
components:
  sleeper: {{LEVEL: {{min: 1, max: 9}}}}
"""


class Site:
    """A store, and scripts that leave a trace and wait for a gate to open."""

    def __init__(self, folder: Path, store: str) -> None:
        self.folder = folder
        self._environment = {**os.environ, "XDG_DATA_HOME": str(folder / "data"), "LUTHIER_STORE": store}
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """One of luthier's commands."""
        argv = [sys.executable, "-m", "luthier", *words]
        self._started.append(subprocess.Popen(argv, env=self._environment, stderr=subprocess.PIPE, text=True))
        return self._started[-1]

    def launch(self, served: "Served", number: int) -> Path:
        """Launch an experiment; its trace has a line a run."""
        trace, gate = self.folder / f"trace{number}", self.folder / "gate"
        document = DOCUMENT.format(name=f"no{number}", budget=BUDGET, trace=trace, gate=gate)
        served.json("POST", "/api/v1/experiments", {"yaml": document})
        return trace

    def open_gate(self) -> None:
        """Let every run end."""
        (self.folder / "gate").touch()

    def end(self) -> None:
        """Leave nothing behind."""
        self.open_gate()
        for process in self._started:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=60)


class Served:
    """A server process and a browser's worth of access to it."""

    def __init__(self, site: Site, *options: str) -> None:
        self.process = site.start("serve", "--port", "0", *options)
        assert self.process.stderr is not None
        self.said = ""
        for line in self.process.stderr:
            self.said += line
            if "press Ctrl-C" in line:
                break
        found = re.search(r"http://\S+", self.said)
        assert found, self.said
        link = urlsplit(found[0])
        self.netloc = link.netloc
        self.headers: dict[str, str] = {"X-Luthier-CSRF": "none"}
        invitation = {"token": link.query.partition("=")[2]}
        status, headers, _ = self.request("POST", "/api/v1/session/invitation", invitation)
        assert status == 200
        self.headers["Cookie"] = headers["set-cookie"].partition(";")[0]
        self.headers["X-Luthier-CSRF"] = str(self.json("GET", "/api/v1/me")["csrf"])

    def request(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.netloc, timeout=60)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {**self.headers, "Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def json(self, method: str, path: str, body: object = None) -> dict[str, object]:
        status, _, content = self.request(method, path, body)
        assert status < 300, content
        answer = json.loads(content)
        assert isinstance(answer, dict)
        return answer

    def finished(self) -> int:
        items = self.json("GET", "/api/v1/experiments?limit=50")["items"]
        assert isinstance(items, list)
        return sum(item["status"] == "finished" for item in items)


@contextmanager
def site_over(store: str, folder: Path) -> Iterator[Site]:
    """A site until the block ends."""
    site = Site(folder, store)
    try:
        yield site
    finally:
        site.end()


def wait_until(true: Callable[[], bool], what: str) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < give_up_at, what
        time.sleep(0.1)


def kill(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


def runs(traces: Sequence[Path]) -> list[int]:
    return [len(trace.read_text().splitlines()) if trace.exists() else 0 for trace in traces]


def test_a_killed_server_loses_nothing(tmp_path: Path) -> None:
    with site_over(str(tmp_path / "x.db"), tmp_path) as site:
        served = Served(site, "--local", str(EXPERIMENTS))
        traces = [site.launch(served, number) for number in range(EXPERIMENTS)]
        wait_until(lambda: all(trace.exists() for trace in traces), "every experiment runs")
        kill(served.process)
        site.open_gate()
        again = Served(site, "--local", str(EXPERIMENTS))
        wait_until(lambda: again.finished() == EXPERIMENTS, "every experiment ends")
        assert runs(traces) == [BUDGET] * EXPERIMENTS


def test_several_servers_and_workers_over_postgresql(postgresql_url: str, tmp_path: Path) -> None:
    with site_over(postgresql_url, tmp_path) as site:
        first, second = Served(site, "--no-worker"), Served(site, "--no-worker")
        workers = [site.start("worker", "--local", str(FEW)) for _ in range(2)]
        traces = [site.launch((first, second)[number % 2], number) for number in range(FEW)]
        wait_until(lambda: all(trace.exists() for trace in traces), "every experiment runs")
        kill(first.process)
        kill(workers[0])
        site.open_gate()
        wait_until(lambda: second.finished() == FEW, "every experiment ends")
        assert runs(traces) == [BUDGET] * FEW
