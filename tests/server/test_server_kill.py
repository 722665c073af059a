"""The whole server as people start it: launched experiments outlive it, also when it is killed."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

PATIENCE_S = 240.0
EXPERIMENTS = 20
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


class Served:
    """A server process and a browser's worth of access to it."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "XDG_DATA_HOME": str(folder / "data"), "LUTHIER_STORE": str(folder / "x.db")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "luthier", "serve", "--port", "0", "--local", str(EXPERIMENTS)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line
        link = urlsplit(found[0])
        self.netloc = link.netloc
        self.headers: dict[str, str] = {}
        status, headers, _ = self.request("GET", f"{link.path}?{link.query}")
        assert status in (302, 303, 307)
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

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> str:
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=60)[1]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    (tmp_path / "gate").touch()


def wait_until(true: Callable[[], bool], what: str) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < give_up_at, what
        time.sleep(0.1)


def test_a_killed_server_loses_nothing(folder: Path) -> None:
    traces = [folder / f"trace{number}" for number in range(EXPERIMENTS)]
    served = Served(folder)
    for number, trace in enumerate(traces):
        document = DOCUMENT.format(name=f"no{number}", budget=BUDGET, trace=trace, gate=folder / "gate")
        served.json("POST", "/api/v1/experiments", {"yaml": document})
    wait_until(lambda: all(trace.exists() for trace in traces), "every experiment runs")
    served.kill()
    (folder / "gate").touch()
    again = Served(folder)
    try:
        wait_until(lambda: again.finished() == EXPERIMENTS, "every experiment ends")
        assert [len(trace.read_text().splitlines()) for trace in traces] == [BUDGET] * EXPERIMENTS
    finally:
        again.end()
