"""An experiment in which no run gave a number, over REST."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

from tests.server.server_fixtures import Running

from luthier.trial import Completed, Config, Failed, Run, TimedOut

API = "/api/v1"


def test_an_experiment_without_a_result_is_found_among_failed_ones(server: Running, tmp_path: Path) -> None:
    number, fine = server.launch(), server.launch()
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "stdout").write_text("x" * 10_000 + "\nlast words\n")
    (logs / "stderr").write_bytes(b"no such file \x1b[31m\xff\n")
    server.play(number, [Failed("exit code 2: no file-1"), Failed("exit code 2: no file-2"), TimedOut("slow")], None)
    history = server.store.history
    record = history.experiment(number)
    assert record.owner is not None
    run = Run(3, 3, "search", Config({"LEVEL": 4}), 200.0, 6)
    history.append(number, run)
    history.finish(number, replace(run, finish_order=7, outcome=Failed("exit code 2: no file-3"), logs=str(logs)))
    history.close(number, record.owner, "no result", {"verdict": "none"})
    server.play(fine, [Completed(1.0)])
    found = {}
    for status in ("failed", "no result", "finished", ""):
        query = f"?{urlencode({'status': status})}" if status else ""
        page = cast("dict[str, list[dict[str, object]]]", server.ask("GET", f"{API}/experiments{query}").json)
        found[status] = [one["id"] for one in page["items"]]
    assert found == {"failed": [number], "no result": [number], "finished": [fine], "": [fine, number]}
    detail = cast("dict[str, Any]", server.ask("GET", f"{API}/experiments/{number}").json)
    assert detail["failures"] == [
        {"reason": "failed: exit code 2: no file-1", "runs": 3, "first": 0},
        {"reason": "timed out: slow", "runs": 1, "first": 2},
    ]
    output = detail["failing_output"]
    assert (output["run"], output["config"], output["stderr"]) == (3, {"LEVEL": 4}, "no such file \\x1b[31m\ufffd")
    assert output["stdout"].endswith("\nlast words")
    assert len(output["stdout"]) < 5_000
    assert server.ask("POST", f"{API}/experiments/{number}/resume").status == 409
    metrics = server.ask("GET", f"{API}/metrics").body.decode()
    assert 'luthier_experiments{status="no result"} 1.0' in metrics
    assert cast("dict[str, Any]", server.ask("GET", f"{API}/experiments/{fine}").json)["failing_output"] is None
