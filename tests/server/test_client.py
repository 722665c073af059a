"""The Python client, and the examples of the documentation, against a real server."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.server.server_fixtures import EXPERIMENT, Running, running_server
from tests.submission.strange_server import strange_server

import luthier
from luthier.client import Client, ExperimentSummary, RunData, events_in
from luthier.errors import InvalidInputError, NotFoundError, UnavailableError
from luthier.launch import resume
from luthier.server.api import models
from luthier.trial import Completed, Failed

HOSTILE = "\x1b[31mred \x9b2J\u202e\u2066\x7f\u200b"

DOCS = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")


@pytest.fixture
def client(server: Running) -> Client:
    return luthier.Client(server.url, server.token, retry_s=0.01)


def test_the_client_has_the_fields_of_the_server() -> None:
    assert list(ExperimentSummary.__annotations__) == list(models.Summary.model_fields)
    assert list(RunData.__annotations__) == list(models.RunResponse.model_fields)


def test_an_experiment_from_launch_to_result(client: Client, server: Running) -> None:
    text = EXPERIMENT.replace("budget: 40", "budget: 3")
    made = client.create(text, key="k")
    assert client.create(text, key="k")["id"] == made["id"]
    waited: list[object] = []
    waiting = threading.Thread(target=lambda: waited.append(client.wait(made["id"])["status"]))
    waiting.start()
    resume(made["id"], server.store_url).work(lambda *_: None)
    waiting.join()
    assert waited == ["finished"]
    assert client.experiment(made["id"])["runs"] == 3
    assert [run["outcome"] for run in client.runs(made["id"])] == ["completed"] * 3
    assert client.figure(made["id"], "trajectory") is not None
    assert client.figure(client.clone(made["id"])["id"], "trajectory") is None


def test_steering(client: Client) -> None:
    number = client.create(EXPERIMENT)["id"]
    assert client.stop(number)["status"] == "stopped"
    assert client.wait(number)["status"] == "stopped"
    assert client.resume(number)["status"] == "queued"
    assert client.stop(number)["status"] == "stopped"
    assert client.resume(number, budget="+30")["budget"] == 70
    other = client.clone(number, EXPERIMENT.replace("first try", "other"))
    assert [one["name"] for one in client.experiments(text="OTHER")] == ["other"]
    assert [one["id"] for one in client.experiments(mine=True, status="queued")] == [other["id"], number]
    client.delete(other["id"])
    assert [one["id"] for one in client.experiments()] == [number]
    assert client.register("components: {knob: {parameters: {A: {type: int, env_var: true}}}}") == ["knob"]
    assert [one["name"] for one in client.components()] == ["knob"]


def test_runs_are_listed_over_many_pages(client: Client, server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("luthier.client._PAGE", 2)
    number = client.create(EXPERIMENT)["id"]
    server.play(number, [Completed(1.0), Failed("x"), Completed(2.0), Completed(3.0), None], "stopped")
    assert [run["value"] for run in client.runs(number)] == [1.0, None, 2.0, 3.0, None]
    more = [client.create(EXPERIMENT)["id"] for _ in range(3)]
    assert [one["id"] for one in client.experiments()] == [*reversed(more), number]


def test_mistakes_are_told_in_one_line(client: Client, server: Running) -> None:
    with pytest.raises(NotFoundError, match="experiment 7 does not exist"):
        client.experiment(7)
    with pytest.raises(InvalidInputError, match=r"experiment.yaml:2: experiment.budget: 0"):
        client.create(EXPERIMENT.replace("budget: 40", "budget: 0"))
    number = client.create(EXPERIMENT)["id"]
    client.stop(number)
    with pytest.raises(UnavailableError, match="is not running"):
        client.stop(number)
    with pytest.raises(InvalidInputError, match="log in first"):
        Client(server.url, "wrong").components()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(UnavailableError, match="cannot be reached"):
        next(Client(f"http://127.0.0.1:{port}", "x").watch(1))
    for url, token in (("127.0.0.1", "x"), ("file:///etc", "x"), ("http://x", ""), ("http://x", "a\nb")):
        with pytest.raises(InvalidInputError):
            Client(url, token)


def test_a_lost_connection_is_made_again_and_nothing_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    store = f"sqlite:///{tmp_path / 'x.db'}"
    with running_server(store) as server:
        number = server.launch()
        client = Client(server.url, server.token, retry_s=0.01)
        port = int(server.url.rpartition(":")[2])
        events = client.watch(number, since=0)
        assert next(events).kind == "status"
        server.play(number, [Completed(1.0)], "stopped")
        seen: set[int] = set()
        while 0 not in seen:
            seen |= _runs(next(events).data)
    with running_server(store, port=port) as server:
        server.play(number, [Completed(2.0), Completed(3.0)])
        while not seen >= {1, 2}:
            seen |= _runs(next(events).data)
        events.close()  # type: ignore[attr-defined]  # it is a generator


def _runs(data: object) -> set[int]:
    return {run["run"] for run in data} if isinstance(data, list) else set()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 422 No\r\n\r\n" + json.dumps({"error": HOSTILE}).encode(),
        b"HTTP/1.1 404 No\r\n\r\n" + json.dumps({"error": HOSTILE}, ensure_ascii=False).encode(),
        b"HTTP/1.1 503 No\r\n\r\n" + json.dumps({"error": [HOSTILE]}).encode(),
        f"HTTP/{HOSTILE}\r\n\r\n".encode("latin-1", "replace"),
        f"{HOSTILE}\r\n\r\n".encode("latin-1", "replace"),
    ],
    ids=["escaped", "raw", "list", "status line", "no HTTP"],
)
def test_texts_of_a_hostile_server_control_no_terminal(answer: bytes) -> None:
    with strange_server(answer) as url, pytest.raises(luthier.LuthierError) as caught:
        Client(url, "token").experiment(1)
    assert str(caught.value).isprintable()


def test_events_in_lines() -> None:
    lines = ": comment\n\nid: 3\nevent: runs\ndata: [1]\n\nevent: gone\r\ndata: {}\r\n\r\ndata: 5\n".splitlines(
        keepends=True
    )
    assert [(event.kind, event.data, event.id) for event in events_in(lines)] == [("runs", [1], 3), ("gone", {}, None)]


@pytest.fixture
def documented(server: Running, tmp_path: Path) -> dict[str, str]:
    """The environment of the examples, after those for a terminal have run: they make one experiment, and stop it."""
    if shutil.which("curl") is None:
        missing("curl is not installed; as root: sh tests/services.sh")
    environment = {**os.environ, "URL": server.url, "TOKEN": server.token, "LUTHIER_STORE": server.store_url}
    consoles = re.findall(r"```console\n(.*?)```", DOCS, re.DOTALL)
    assert len(consoles) == 3
    for console in consoles:
        script = re.sub(r"^\$ ", "", console, flags=re.MULTILINE)
        done = subprocess.run(["bash", "-e"], input=script, cwd=tmp_path, env=environment, text=True, check=False)
        assert done.returncode == 0, script
    assert server.store.history.experiment(1).status == "stopped"
    return environment


def test_the_documented_program_follows_an_experiment_to_its_end(
    documented: dict[str, str], server: Running, tmp_path: Path
) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
    with subprocess.Popen([sys.executable, "-m", "luthier", "worker"], env=documented) as worker:
        try:
            said = _run_program(program, documented, tmp_path)
        finally:
            worker.send_signal(signal.SIGINT)
    record = server.store.history.experiment(2)
    assert (record.name, record.status) == ("first try", "finished")
    assert {line.split()[1] for line in said if line.startswith("run ")} == {str(run) for run in range(record.runs)}
    assert said[-2] == f"finished {(record.result or {})['verdict']}"
    assert said[-1].startswith("values to use: {'LEVEL': ")
    # Once more, when the experiment has ended: every run is still told before the end is.
    again = _run_program(program, documented, tmp_path)
    assert sum(line.startswith("run ") for line in again) == record.runs
    assert again[-2:] == said[-2:]


def _run_program(program: str, environment: dict[str, str], folder: Path) -> list[str]:
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_client_needs_no_other_package() -> None:
    code = "import json, sys, luthier; luthier.Client; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert "luthier" in loaded
    assert not loaded & {"fastapi", "httpx", "numpy", "pydantic", "requests", "sqlalchemy", "yaml"}
