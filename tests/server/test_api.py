"""The REST API over a real server: what it does, and what it refuses."""

import http.client
import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest
from tests.server.server_fixtures import EXPERIMENT, Reply, Running, Starter

from luthier.server.middleware import MOST_BYTES
from luthier.spec.library import component_text
from luthier.spec.rules import prune_from, resample_from
from luthier.store.sql import SqlStore
from luthier.trial import Completed, Failed

API = "/api/v1"
COMPONENT = """
components:
  knob:
    description: turns
    parameters: {LEVEL: {env_var: true, type: int, default: 1, min: 1, max: 9}}
"""


def told(reply: Reply) -> dict[str, object]:
    assert reply.status in (200, 201), reply.body
    return cast("dict[str, object]", reply.json)


def listed(reply: Reply) -> list[dict[str, object]]:
    assert reply.status == 200, reply.body
    return cast("list[dict[str, object]]", reply.json)


def items(reply: Reply) -> list[dict[str, object]]:
    return cast("list[dict[str, object]]", told(reply)["items"])


def pages(server: Running, path: str, cursor: str) -> Iterator[dict[str, object]]:
    """The items of all pages; the next one is asked for by `cursor`."""
    after: object = ""
    while after is not None:
        reply = server.ask("GET", f"{path}{after and f'&{cursor}={after}'}")
        yield from items(reply)
        after = told(reply)["next"]


def test_an_experiment_from_launch_to_deletion(server: Running) -> None:
    reply = server.ask("POST", f"{API}/experiments", {"yaml": EXPERIMENT})
    assert reply.status == 201
    assert reply.headers["location"] == f"{API}/experiments/1"
    assert told(reply) | {"created_at": 0.0} == {
        "id": 1, "name": "first try", "status": "queued", "author": "local", "shared": False, "created_at": 0.0,
        "runs": 0, "budget": 40, "verdict": None, "improved": None, "speedup": None, "low": None, "high": None,
        "value": None, "cost_s": None, "kind": None, "mine": True, "may_change": True, "notes": [],
    }  # fmt: skip
    assert told(server.ask("POST", f"{API}/experiments/1/stop"))["status"] == "stopped"
    assert server.ask("POST", f"{API}/experiments/1/stop").status == 409
    assert told(server.ask("POST", f"{API}/experiments/1/resume"))["status"] == "queued"
    server.play(1, [Completed(5.0), Completed(4.0)], status=None)
    assert told(server.ask("GET", f"{API}/experiments/1"))["status"] == "running"
    assert server.ask("DELETE", f"{API}/experiments/1").status == 409
    assert told(server.ask("POST", f"{API}/experiments/1/stop"))["status"] == "running"
    assert told(server.ask("GET", f"{API}/experiments/1"))["stop_requested"] is True
    assert server.ask("GET", f"{API}/experiments/1/source").json == {
        "yaml": EXPERIMENT,
        "is_written": True,
        "notes": [],
    }
    copy = server.ask("POST", f"{API}/experiments/1/clone", {})
    assert copy.status == 201
    assert told(copy)["id"] == 2
    assert told(server.ask("PATCH", f"{API}/experiments/2", {"shared": True}))["shared"] is True
    assert server.ask("DELETE", f"{API}/experiments/2").status == 204
    assert server.ask("GET", f"{API}/experiments/2").status == 404
    actions = [entry["action"] for entry in items(server.ask("GET", f"{API}/audit"))]
    assert actions == ["delete", "share", "launch", "stop", "resume", "stop", "launch"]


def test_a_finished_experiment_is_cloned_not_resumed(server: Running) -> None:
    number = server.launch()
    server.play(number, [Completed(1.0)])
    assert b"clone it" in server.ask("POST", f"{API}/experiments/{number}/resume").body
    changed = EXPERIMENT.replace("first try", "second")
    assert told(server.ask("POST", f"{API}/experiments/{number}/clone", {"yaml": changed}))["name"] == "second"


def test_who_launches_is_told_what_the_search_learns_from(server: Running) -> None:
    """As on the command line; a copy keeps what the original had learned."""
    text = EXPERIMENT.replace("budget: 40", "budget: 40, after: auto")
    launched = told(server.ask("POST", f"{API}/experiments", {"yaml": text}))
    assert launched["notes"] == [
        "learns from no earlier experiment: none in the store tunes the same by the same measure"
    ]
    server.play(1, [Completed(float(9 - place)) for place in range(8)])
    (note,) = cast("list[str]", told(server.ask("POST", f"{API}/experiments", {"yaml": text}))["notes"])
    assert note.startswith("learns from experiment 1 (first try)")
    copy = told(server.ask("POST", f"{API}/experiments/2/clone", {}))
    earlier = [server.store.history.experiment(number).settings["earlier"] for number in (2, 3)]
    assert copy["id"] == 3
    assert earlier[0] == earlier[1] is not None


def test_a_finished_experiment_gets_more_runs(server: Running) -> None:
    number = server.launch()
    path = f"{API}/experiments/{number}"
    server.play(number, [Completed(1.0)])
    for budget, status in (("%2B0", 422), ("1", 422), ("x", 422), ("-3", 422), ("%2B99999999999", 422)):
        assert server.ask("POST", f"{path}/resume?budget={budget}").status == status, budget
    before = told(server.ask("GET", path))
    assert (before["status"], before["budget"]) == ("finished", 40)
    reply = told(server.ask("POST", f"{path}/resume?budget=%2B30"))
    assert (reply["status"], reply["budget"]) == ("queued", 31)
    assert server.ask("POST", f"{path}/resume?budget=%2B30").status == 409
    copy = told(server.ask("POST", f"{path}/clone", {}))
    assert server.store.history.experiment(number).settings["refinements"] == [{"events": 2, "runs": 1}]
    assert "refinements" not in server.store.history.experiment(cast("int", copy["id"])).settings
    detail = told(server.ask("GET", path))
    assert cast("dict[str, object]", detail["settings"])["budget"] == 31
    assert "resume with 31 runs" in [entry["action"] for entry in items(server.ask("GET", f"{API}/audit"))]


def test_an_experiment_as_json_is_the_same_as_its_yaml(server: Running) -> None:
    document = told(server.ask("POST", f"{API}/experiments/document", {"yaml": EXPERIMENT}))["document"]
    assert told(server.ask("POST", f"{API}/experiments", document))["name"] == "first try"
    written = told(server.ask("POST", f"{API}/experiments/yaml", {"document": document}))["yaml"]
    assert told(server.ask("POST", f"{API}/experiments/document", {"yaml": written}))["document"] == document
    script = {"experiment": {"script": "echo 1\necho 2\n"}}
    assert "|\n    echo 1\n" in str(told(server.ask("POST", f"{API}/experiments/yaml", {"document": script}))["yaml"])
    one, other = (server.store.history.experiment(server.launch(cast("str", text))) for text in (EXPERIMENT, written))
    assert one.settings == other.settings
    assert server.ask("POST", f"{API}/experiments", {"yaml": EXPERIMENT, "experiment": {}}).status == 422
    assert server.ask("POST", f"{API}/experiments", {}).status == 422


def test_an_experiment_tries_first_what_was_best_in_an_earlier_one(server: Running) -> None:
    earlier = server.launch()
    server.play(earlier, [Completed(50.0 - place) for place in range(9)], "finished")
    follower = EXPERIMENT.replace("budget: 40", f"budget: 40, after: {earlier}")
    number = told(server.ask("POST", f"{API}/experiments", {"yaml": follower}))["id"]
    settings = cast("dict[str, object]", told(server.ask("GET", f"{API}/experiments/{number}"))["settings"])
    assert settings["after"] == [earlier]
    assert settings["first"]
    assert "experiment 1 (first try)" in str(told(server.ask("GET", f"{API}/experiments/{number}"))["settings_texts"])
    assert "earlier" in server.store.history.experiment(cast("int", number)).settings
    found = told(
        server.ask("POST", f"{API}/experiments", {"yaml": follower.replace(f"after: {earlier}", "after: auto")})
    )
    settings = cast("dict[str, object]", told(server.ask("GET", f"{API}/experiments/{found['id']}"))["settings"])
    assert settings["after"] == [earlier]
    absent = server.ask("POST", f"{API}/experiments", {"yaml": follower.replace(f"after: {earlier}", "after: [99]")})
    assert absent.status == 404
    assert b"experiment 99 does not exist" in absent.body


def test_two_creates_with_one_key_make_one_experiment(server: Running) -> None:
    replies: list[Reply] = []
    body = {"yaml": EXPERIMENT}
    threads = [
        threading.Thread(
            target=lambda: replies.append(
                server.ask("POST", f"{API}/experiments", body, headers={"Idempotency-Key": "k1"})
            )
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(reply.status for reply in replies) == [200] * 7 + [201]
    assert {told(reply)["id"] for reply in replies} == {1}
    assert len(items(server.ask("GET", f"{API}/experiments"))) == 1
    assert len(items(server.ask("GET", f"{API}/audit"))) == 1
    other = server.ask("POST", f"{API}/experiments", body, headers={"Idempotency-Key": "k2"})
    assert told(other)["id"] == 2


def test_lists_come_in_pages_and_are_filtered(server: Running) -> None:
    numbers = [server.launch(EXPERIMENT.replace("first try", f"name {i % 3}")) for i in range(7)]
    server.play(numbers[0], [Completed(1.0)])
    assert [item["id"] for item in pages(server, f"{API}/experiments?limit=3", "before")] == numbers[::-1]
    assert [item["id"] for item in items(server.ask("GET", f"{API}/experiments?text=NAME+1"))] == [5, 2]
    assert [item["id"] for item in items(server.ask("GET", f"{API}/experiments?status=finished"))] == [1]
    assert items(server.ask("GET", f"{API}/experiments?status=interrupted")) == []
    assert len(items(server.ask("GET", f"{API}/experiments?mine=true"))) == 7


def test_runs_are_paged_filtered_and_streamed(played: Running) -> None:
    path = f"{API}/experiments/1/runs"
    assert [run["run"] for run in pages(played, f"{path}?limit=50", "after")] == list(range(120))
    assert [run["run"] for run in items(played.ask("GET", f"{path}?outcome=failed"))] == [3]
    assert [run["reason"] for run in items(played.ask("GET", f"{path}?outcome=failed"))] == ["bad �"]
    assert [run["run"] for run in items(played.ask("GET", f"{path}?outcome=running"))] == [119]
    assert [run["run"] for run in items(played.ask("GET", f"{path}?trial=2"))] == [2, 101]
    assert [run["run"] for run in items(played.ask("GET", f"{path}?purpose=default"))] == [0]
    streamed = played.ask("GET", f"{path}?after=3", headers={"Accept": "application/x-ndjson"})
    lines = [json.loads(line) for line in streamed.body.splitlines()]
    assert [line["run"] for line in lines] == list(range(4, 120))
    assert "logs" not in lines[0]


def test_trials_come_best_first_or_as_they_were_tried(played: Running) -> None:
    path = f"{API}/experiments/1/trials"
    best = items(played.ask("GET", f"{path}?limit=500"))
    values = [cast("dict[str, float]", trial["estimate"])["value"] for trial in best if trial["estimate"]]
    assert values == sorted(values)
    assert [trial["number"] for trial in items(played.ask("GET", f"{path}?sort=number&limit=500"))] == list(range(99))
    page = told(played.ask("GET", f"{path}?sort=number&after=98"))
    assert [trial["number"] for trial in cast("list[dict[str, object]]", page["items"])] == [98]
    assert page["next"] is None


def test_what_was_found_out(played: Running) -> None:
    path = f"{API}/experiments/1"
    detail = told(played.ask("GET", path))
    assert detail["events"] == 239
    assert detail["size"] == 99
    assert detail["explored"] == 1.0
    assert detail["utilisation"] == pytest.approx(119 * 0.5 / 118.5)
    assert cast("list[str]", detail["figures"])[:2] == ["trajectory", "trials"]
    assert cast("dict[str, object]", detail["settings"])["budget"] == 200
    found = cast("list[dict[str, object]]", told(played.ask("GET", f"{path}/importance"))["parameters"])
    assert [one["parameter"] for one in found] == ["LEVEL"]
    curve = told(played.ask("GET", f"{path}/dependence/LEVEL"))
    mean = cast("list[float]", curve["mean"])
    assert mean.index(min(mean)) not in (0, len(mean) - 1)
    assert listed(played.ask("GET", f"{path}/front"))[0]["config"] == {"LEVEL": 31}
    assert played.ask("GET", f"{path}/dependence/NOTHING").status == 404


def test_a_script_for_any_configuration(played: Running) -> None:
    path = f"{API}/experiments/1/script"
    assert told(played.ask("GET", f"{path}?p.LEVEL=7")) == {
        "config": {"LEVEL": 7}, "script": "#!/bin/bash\necho $LEVEL\n", "command": "LEVEL=7 /bin/bash SCRIPT",
    }  # fmt: skip
    assert told(played.ask("GET", path))["config"] == {"LEVEL": 1}
    assert b"did you mean 'LEVEL'" in played.ask("GET", f"{path}?p.LEVLE=7").body
    assert played.ask("GET", f"{path}?p.LEVEL=700").status == 422
    assert told(played.ask("GET", f"{API}/experiments/1/apply"))["variables"] == "export LEVEL=1"


def test_nothing_to_apply_is_not_now(server: Running) -> None:
    number = server.launch()
    assert server.ask("GET", f"{API}/experiments/{number}/apply").status == 409
    assert server.ask("GET", f"{API}/experiments/{number}/dependence/LEVEL").status == 409
    assert told(server.ask("GET", f"{API}/experiments/{number}/importance"))["parameters"] == []


@pytest.mark.parametrize(("form", "begin"), [("csv", b"run,trial,"), ("json", b"[\n {"), ("parquet", b"PAR1")])
def test_exports(played: Running, form: str, begin: bytes) -> None:
    reply = played.ask("GET", f"{API}/experiments/1/export?format={form}")
    assert reply.status == 200
    assert reply.body.startswith(begin)
    assert reply.headers["content-disposition"] == f'attachment; filename="luthier-1.{form}"'


def test_a_report_opens_by_itself(played: Running) -> None:
    reply = played.ask("GET", f"{API}/experiments/1/report")
    assert reply.status == 200
    assert b"first try" in reply.body
    assert reply.headers["content-disposition"].startswith("attachment")


def test_figures_change_with_the_runs_and_not_before(server: Running) -> None:
    number = server.launch()
    path = f"{API}/experiments/{number}/figures/trajectory"
    assert server.ask("GET", path).status == 204
    server.play(number, [Completed(3.0), Completed(2.0)], "stopped")
    first = server.ask("GET", path)
    assert {"data", "layout", "title", "note"} == set(told(first))
    again = server.ask("GET", path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    server.play(number, [Completed(1.0)])
    later = server.ask("GET", path, headers={"If-None-Match": first.headers["etag"]})
    assert later.status == 200
    assert later.headers["etag"] != first.headers["etag"]
    assert server.ask("GET", f"{API}/experiments/{number}/figures/nothing").status == 404
    assert told(server.ask("GET", f"{API}/compare/figures/best?ids={number}"))["data"]
    compared = listed(server.ask("GET", f"{API}/compare?ids={number},{number}"))
    assert [(one["id"], one["optimizer"]) for one in compared] == [(number, "auto")]
    for wrong in ("", "1,,2", "x", "0", "99999999999", ",".join(["1"] * 21)):
        assert server.ask("GET", f"{API}/compare?ids={wrong}").status == 422


def test_every_listed_figure_can_be_had(played: Running) -> None:
    for figure in listed(played.ask("GET", f"{API}/figures")):
        assert played.ask("GET", f"{API}/experiments/1/figures/{figure['name']}").status in (200, 204)


def test_logs_are_read_from_the_folder_of_the_run_alone(server: Running, tmp_path: Path) -> None:
    folder, secret = tmp_path / "logs", tmp_path / "secret"
    folder.mkdir()
    secret.write_text("secret")
    (folder / "stdout").write_bytes(b"x" * 100_000 + b"the end \xff\n")
    (folder / "stderr").symlink_to(secret)
    number = server.launch()
    server.play(number, [Completed(1.0), Completed(2.0)], None)  # once it has ended, its runs have a checksum
    _set_logs(server, str(folder))
    path = f"{API}/experiments/{number}/runs/0/log"
    assert server.ask("GET", f"{path}?tail_bytes=10").body.decode() == "the end �\n"
    assert len(server.ask("GET", path).body) > 65000
    assert server.ask("GET", f"{path}?stream=stderr").status == 404
    assert server.ask("GET", f"{path}?stream=../secret").status == 422
    (folder / "stderr").unlink()
    os.mkfifo(folder / "stderr")
    assert server.ask("GET", f"{path}?stream=stderr").status == 404
    assert server.ask("GET", f"{API}/experiments/{number}/runs/99/log").status == 404


def _set_logs(server: Running, folder: str) -> None:
    """Say where the output of every run is kept."""
    from sqlalchemy import create_engine, text

    engine = create_engine(server.store_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE runs SET logs = :folder"), {"folder": folder})
    engine.dispose()


def test_components_are_registered_changed_and_forgotten(server: Running) -> None:
    path = f"{API}/components"
    assert server.ask("POST", path, {"yaml": COMPONENT}).json == {"names": ["knob"]}
    assert server.ask("POST", path, {"yaml": COMPONENT}).status == 409
    assert server.ask("POST", path, {"yaml": COMPONENT, "replace": True}).status == 201
    server.launch("components: {knob: {}}\nexperiment: {script: 'echo $LEVEL'}")
    detail = told(server.ask("GET", f"{path}/knob"))
    assert detail["yaml"] == component_text("knob", server.context.library.get("knob"))
    assert detail["used_by"] == [{"id": 1, "name": "knob"}]
    assert listed(server.ask("GET", path)) == [
        {"name": "knob", "description": "turns", "parameters": ["LEVEL"], "used_by": 1}
    ]
    assert server.ask("PUT", f"{path}/other", {"yaml": COMPONENT}).status == 422
    assert server.ask("PUT", f"{path}/knob", {"yaml": COMPONENT.replace("turns", "spins")}).status == 200
    assert server.ask("POST", path, {"yaml": COMPONENT.replace("knob", "twin")}).status == 201
    assert told(server.ask("GET", f"{path}/twin"))["used_by"] == []
    changed = told(server.ask("GET", f"{path}/knob"))
    assert (changed["description"], changed["used_by"]) == ("spins", [{"id": 1, "name": "knob"}])
    assert server.ask("DELETE", f"{path}/knob").status == 204
    assert server.ask("GET", f"{path}/knob").status == 404
    assert server.ask("DELETE", f"{path}/knob").status == 404


def test_no_file_of_the_server_is_read(server: Running, tmp_path: Path) -> None:
    secret = tmp_path / "secret.sh"
    secret.write_text("echo secret")
    based = COMPONENT + f"    files: [{{path: x, base: {secret}}}]\n"
    for path, text in (
        ("components", based),
        ("experiments", EXPERIMENT.replace('script: "echo $LEVEL"', f"application: {secret}")),
        ("experiments", f"definitions: {secret}\ncomponents: {{knob: {{}}}}"),
    ):
        reply = server.ask("POST", f"{API}/{path}", {"yaml": text})
        assert reply.status == 422
        assert b"files are not supported here" in reply.body


def test_drafts_are_checked_with_the_line_of_the_mistake(server: Running) -> None:
    path = f"{API}/experiments/check"
    good = told(server.ask("POST", path, {"yaml": EXPERIMENT}))
    assert good["ok"] is True
    assert (good["size"], good["default"]) == (99, {"LEVEL": 1})
    assert good["script"] == "#!/bin/bash\necho $LEVEL\n"
    bad = told(server.ask("POST", path, {"yaml": EXPERIMENT.replace("budget: 40", "budget: 0")}))
    assert (bad["ok"], bad["line"]) == (False, 2)
    assert str(bad["error"]).startswith("experiment.budget: 0")
    assert told(server.ask("POST", path, {"yaml": "a: ["}))["ok"] is False
    checked = told(server.ask("POST", f"{API}/components/check", {"yaml": COMPONENT.replace("int", "integer")}))
    assert (checked["ok"], checked["line"]) == (False, 5)
    assert items(server.ask("GET", f"{API}/experiments")) == []


def test_what_forms_offer_is_understood(server: Running) -> None:
    options = told(server.ask("GET", f"{API}/options"))

    def notations(name: str) -> list[str]:
        return [str(one["notation"]) for one in cast("list[dict[str, object]]", options[name])]

    for text in notations("resample"):
        resample_from(text)
    for text in notations("prune"):
        prune_from(text if not text[0].isdigit() else 90.0)
    settings = [("stop", text) for text in notations("stop")] + [("measure", text) for text in notations("measures")]
    names = [str(one["name"]) for one in cast("list[dict[str, object]]", options["optimizers"])]
    settings += [("optimizer", name) for name in names if name != "pareto"]  # which is for several objectives
    for setting, text in settings:
        draft = EXPERIMENT.replace("budget: 40", f"{setting}: {json.dumps(text)}")
        checked = told(server.ask("POST", f"{API}/experiments/check", {"yaml": draft}))
        assert checked["ok"], (text, checked["error"])


def test_health_and_metrics(played: Running) -> None:
    assert played.ask("GET", f"{API}/health", token=None).json == {"status": "ok", "store": "ok"}
    for path in ("/metrics", f"{API}/metrics"):
        text = played.ask("GET", path).body.decode()
        assert 'luthier_experiments{status="stopped"} 1.0' in text
        assert 'luthier_runs{outcome="completed"} 115.0' in text
        for outcome in ("failed", "timed out", "pruned", "lost", "running"):
            assert f'luthier_runs{{outcome="{outcome}"}} 1.0' in text
        assert 'luthier_request_seconds_count{method="GET",operation="get_health",status="200"}' in text
        assert played.ask("GET", path, token=None).status == 401


def test_paths_and_methods_that_are_not_there(server: Running) -> None:
    assert server.ask("GET", f"{API}/nothing").status == 404
    reply = server.ask("GET", f"{API}/session")
    assert (reply.status, reply.headers["allow"]) == (405, "DELETE, POST")
    assert server.ask("GET", "/docs/../../secret").status == 404
    assert server.ask("GET", f"{API}/health", headers={"Host": "evil.example"}).status == 400


def hostile() -> Iterator[tuple[str, str, object]]:
    """Requests that must be refused, whatever is in them."""
    for number in (0, -1, 2**31, 2**63, 10**30, "1e3", "NaN", "%00", "１"):
        for path in ("", "/runs", "/events", "/figures/trajectory"):
            yield "GET", f"/experiments/{str(number).replace('１', '%EF%BC%91')}{path}", None
        yield "DELETE", f"/me/tokens/{str(number).replace('１', '%EF%BC%91')}", None
    for query in ("limit=0", "limit=501", "before=0", "before=99999999999999999999", "text=%00", "status=x", "mine=x"):
        yield "GET", f"/experiments?{query}", None
    bomb = "a: &a [1]\n" + "".join(
        f"{c}: &{c} [{','.join([f'*{p}'] * 9)}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)
    )
    texts: list[object] = ["", "\0", "a: \x01", "- 1", "a: *b", bomb, "[" * 2000, "a: !!python/none x"]
    texts += ["a: !!bool x", "a: !!timestamp x", f"a: 0x{'f' * 9999}"]
    for text in [*texts, 5, None, {}, "x" * 200_001]:
        yield "POST", "/experiments", {"yaml": text}
        yield "POST", "/components", {"yaml": text}
    yield "POST", "/experiments/yaml", {"document": {"a": float("nan")}}
    yield "POST", "/experiments/yaml", {"document": {"a": [float("inf")]}}
    yield "POST", "/experiments/yaml", {"document": {"a": "\ud800"}}
    yield "POST", "/experiments", {"yaml": EXPERIMENT, "more": 1}
    yield "POST", "/experiments", [EXPERIMENT]
    for days in (0, 10**9, 1.5, float("nan"), "x"):
        yield "POST", "/me/tokens", {"label": "x", "days": days}
    for label in ("", "\ud800", "a\0b", "x" * 201):
        yield "POST", "/me/tokens", {"label": label}
    for name in ("local", "%20a", "a%00", "%0a", "x" * 65, "..%2f", "%E2%80%AE"):
        yield "PUT", f"/users/{name}", {"role": "admin"}
    yield "PUT", "/users/ada", {"role": "root"}
    yield "PUT", "/users/ada", {"role": "user"}  # there would be no administrator
    yield "PUT", "/users/ada", {"role": "admin", "password": "short"}


def test_hostile_requests_are_refused_in_one_line(server: Running) -> None:
    for method, path, given in hostile():
        reply = server.ask(method, f"{API}{path}", given)
        assert 400 <= reply.status < 500, (method, path, str(given)[:80], reply)
        error = cast("Mapping[str, str]", reply.json)["error"]
        assert error
        assert "\n" not in error
    assert not server.store.accounts.users()
    assert not server.store.history.experiments()


def test_bodies_that_are_too_long_or_no_json(server: Running) -> None:
    path = f"{API}/experiments/check"
    assert server.ask("POST", path, raw=b"x" * (MOST_BYTES + 1)).status == 413
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    unsaid = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    connection.request("POST", path, iter([b"x" * 100_000] * (MOST_BYTES // 100_000 + 1)), unsaid, encode_chunked=True)
    with connection.getresponse() as answer:
        assert answer.status == 413
    connection.close()
    assert server.ask("POST", path, raw=b'{"yaml": ' + b"[" * 100_000).status in (400, 422)
    assert server.ask("POST", path, raw=b'{"yaml": ' + b"9" * 10_000 + b"}").status in (400, 422)
    assert server.ask("POST", path, raw=b"\xff\xfe").status in (400, 422)
    assert server.ask("POST", path, raw=b'{"yaml": "a"}', headers={"Content-Type": "text/plain"}).status == 422


def test_the_same_over_postgresql(start_server: Starter, postgresql_url: str) -> None:
    server = start_server(postgresql_url)
    assert isinstance(server.store.history, SqlStore)
    number = server.launch()
    server.play(number, [Completed(3.0), Failed("a\0b \udcff"), Completed(1.0)])
    assert [run["value"] for run in items(server.ask("GET", f"{API}/experiments/{number}/runs"))] == [3.0, None, 1.0]
    assert told(server.ask("GET", f"{API}/experiments/{number}"))["status"] == "finished"
    assert items(server.ask("GET", f"{API}/experiments?text=FIRST"))[0]["id"] == number
    assert server.ask("GET", f"{API}/experiments?text=%00").status == 422
    assert server.ask("DELETE", f"{API}/experiments/{number}").status == 204
    assert server.ask("GET", f"{API}/health").status == 200
