"""Jobs that are being submitted, through REST."""

import hashlib
import json
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from tests.server.server_fixtures import Reply, Running, Starter, running_server
from tests.submission.submitting import EXPERIMENT, SCRIPT, approve_all, with_tuned_job
from tests.submission.test_records_of_experiments import SCRIPT as TUNED_SCRIPT
from tests.submission.test_records_of_experiments import faster_with, finished, slower_with

from luthier.client import Client
from luthier.store.ownership import own_user
from luthier.store.server_store import ServerStore
from luthier.submission.job_times import JobTimes
from luthier.submission.server import job_index
from luthier.submission.server.state import submission_of
from luthier.submission.store import job_records_in, submissions_in

Answer = dict[str, object]
JOB = {"user": "ada", "script": SCRIPT}
REQUEST = json.dumps(JOB, indent=3).encode()


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_index, "LOOK_EVERY_S", 0.0)


@pytest.fixture
def tuned(server: Running) -> Running:
    """A server with a configuration for the jobs of ada."""
    with_tuned_job(server.store, server.launch(EXPERIMENT), "ada")
    return server


def submit(server: Running, token: str = "", changes: Mapping[str, object] | None = None, **more: object) -> Answer:
    reply = server.ask("POST", "/api/v1/submissions", {**JOB, **(changes or {}), **more}, token=token)
    assert reply.status == 201, reply.body
    return cast("Answer", reply.json)


def test_a_job_like_a_tuned_one_gets_its_configuration(tuned: Running) -> None:
    answer = submit(tuned)
    assert answer["decision"] == "set"
    assert answer["environment"] == {"KNOB_LEVEL": "42", "KNOB_MODE": "fast"}
    assert answer["experiment_id"] == 1
    assert cast("dict[str, float]", answer["by_field"])["program"] == 1.0
    stored = tuned.ask("GET", f"/api/v1/submissions/{answer['id']}").json
    assert {**answer, **cast("Answer", stored)} == stored


def test_an_experiment_that_finished_is_used(server: Running) -> None:
    number = finished(server.store, faster_with)
    approve_all(server.store, number)
    job = {"user": own_user(), "script": TUNED_SCRIPT, "options": ["--constraint=fast"]}
    answer = submit(server, changes=job)
    assert (answer["decision"], answer["experiment_id"]) == ("set", number)
    assert answer["environment"] == {"level": "8", "fixed": "yes"}
    assert submit(server, changes={**job, "options": []})["decision"] == "unused"  # it does not use the component


def test_jobs_like_one_that_tuning_could_not_improve_keep_the_default(server: Running) -> None:
    finished(server.store, slower_with)
    answer = submit(server, changes={"user": own_user(), "script": TUNED_SCRIPT})
    assert (answer["decision"], answer["environment"]) == ("unused", {})
    assert "nothing better than the default" in str(answer["reason"])


@pytest.mark.parametrize(
    ("changes", "decision"),
    [
        ({"user": "bob", "name": "other", "script": "srun ./icon run.nml", "options": ["-N64"]}, "none"),
        ({"variables": ["PATH", "KNOB_LEVEL"]}, "unused"),
        ({"options": ["--export=NONE"]}, "unused"),
        ({"options": ["--comment=luthier:off"]}, "refused"),
    ],
)
def test_other_jobs_get_nothing(tuned: Running, changes: Answer, decision: str) -> None:
    answer = submit(tuned, changes=changes)
    assert (answer["decision"], answer["environment"]) == (decision, {})
    assert len(submissions_in(tuned.store).all()) == (decision != "refused")


def test_lines_for_the_plug_in(tuned: Running) -> None:
    reply = tuned.ask("POST", "/api/v1/submissions?form=lines", JOB)
    lines = reply.body.decode().split("\n")
    assert reply.headers["content-type"].startswith("text/plain")
    assert lines[:4] == ["luthier 1", "decision 1", "set KNOB_LEVEL=42", "set KNOB_MODE=fast"]
    assert lines[4].startswith("say sets KNOB_LEVEL=42")
    assert lines[5:] == ["end", ""]


def test_an_answer_in_lines_is_signed_for_its_nonce_and_its_request(tuned: Running) -> None:
    nonce = os.urandom(32)

    def asked(sent: str) -> Reply:
        where = "/api/v1/submissions?form=lines"
        return tuned.ask(
            "POST", where, raw=REQUEST, headers={"Luthier-Nonce": sent, "Content-Type": "application/json"}
        )

    reply = asked(nonce.hex())
    signature = bytes.fromhex(reply.headers["luthier-signature"])
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(submission_of(tuned.context).signing_key.public))
    # As docs/submission.md describes it.
    text = b"luthier submission 1\n" + nonce + hashlib.sha256(REQUEST).digest() + reply.body
    public.verify(signature, text)
    for other in (text[:-1], text.replace(b"42", b"43"), text.replace(nonce, os.urandom(32))):
        with pytest.raises(InvalidSignature):
            public.verify(signature, other)
    assert asked("ab").status == asked("g" * 64).status == 422
    assert "luthier-signature" not in tuned.ask("POST", "/api/v1/submissions?form=lines", JOB).headers


def test_lines_are_ascii(server: Running) -> None:
    text = EXPERIMENT.replace("    parameters:", "    command: start-größe\n    parameters:")
    with_tuned_job(server.store, server.launch(text), "ada")
    body = server.ask("POST", "/api/v1/submissions?form=lines", JOB).body
    assert rb"its script has no start-gr\xf6\xdfe" in body
    assert body.isascii()


def test_a_submitter_can_submit_and_nothing_else(tuned: Running) -> None:
    tuned.add_user("root", "admin")
    token = tuned.add_user("slurm", "submitter")
    assert submit(tuned, token)["decision"] == "set"
    allowed = {"/api/v1/health", "/api/v1/openapi.json", "/api/v1/me", "/api/v1/me/tokens"}
    described = cast("dict[str, dict[str, dict[str, object]]]", tuned.ask("GET", "/api/v1/openapi.json").json)
    for path in described["paths"]:
        if "get" in described["paths"][path] and path not in allowed and path.startswith("/api/v1"):
            address = path.replace("{number}", "1").replace("{experiment_id}", "1").replace("{name}", "x")
            reply = tuned.ask("GET", address.replace("{trial}", "0").replace("{figure}", "progress"), token=token)
            assert reply.status in (403, 404, 422), (path, reply.status, reply.body)
            assert b"stencil" not in reply.body
    assert tuned.ask("POST", "/api/v1/experiments", {"yaml": EXPERIMENT}, token=token).status == 403


def test_users_see_their_own_jobs_and_administrators_all(tuned: Running) -> None:
    admin = tuned.add_user("root", "admin")
    tokens = {name: tuned.add_user(name, "user") for name in ("ada", "bob")}
    number = submit(tuned, admin)["id"]
    assert tuned.ask("POST", "/api/v1/submissions", JOB, token=tokens["bob"]).status == 403
    for name, count in (("ada", 1), ("bob", 0)):
        page = cast("dict[str, list[object]]", tuned.ask("GET", "/api/v1/submissions", token=tokens[name]).json)
        assert len(page["items"]) == count
        for path in (f"/api/v1/submissions/{number}", f"/api/v1/submissions/{number}/review"):
            method, given = ("POST", {"confirmed": True}) if path.endswith("review") else ("GET", None)
            reply = tuned.ask(method, path, given, token=tokens[name])
            assert reply.status == (200 if count else 404)
    assert submit(tuned, tokens["ada"])["decision"] == "set"


def test_a_revoked_token_works_for_some_seconds_only(tuned: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned.add_user("root", "admin")
    token = tuned.add_user("slurm", "submitter")
    submit(tuned, token)
    tuned.store.accounts.remove_user("slurm")
    now = submission_of(tuned.context).submitters._stopwatch() + 6
    monkeypatch.setattr(submission_of(tuned.context).submitters, "_stopwatch", lambda: now)
    assert tuned.ask("POST", "/api/v1/submissions", JOB, token=token).status == 401
    assert tuned.ask("POST", "/api/v1/submissions", JOB, token=None).status == 401


HOSTILE = "$(touch pwned)`touch pwned`'\";\n<script>alert(1)</script>\x1b[31m"


@pytest.mark.parametrize("field", ["user", "name", "script", "file", "options", "variables"])
def test_hostile_texts_are_data(tuned: Running, field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given: object = [HOSTILE] if field in ("options", "variables") else HOSTILE + "#" * 900 * (field == "script") * 111
    if field == "user":
        given = HOSTILE[:200]
    answer = submit(tuned, changes={field: given})
    assert str(answer["reason"]).isprintable()
    assert not list(tmp_path.glob("*pwned*"))
    if field in ("user", "name"):
        assert cast("Answer", tuned.ask("GET", f"/api/v1/submissions/{answer['id']}").json)[field] == given


@pytest.mark.parametrize(
    "changes",
    [
        {"script": "x" * 300_000},
        {"user": ""},
        {"utc_offset_s": 10**9},
        {"unknown": 1},
        {"script": "\ud800"},
        {"options": ["x"] * 2_000},
    ],
)
def test_bad_requests_change_nothing(tuned: Running, changes: Answer) -> None:
    reply = tuned.ask("POST", "/api/v1/submissions", {**JOB, **changes})
    assert reply.status == 422
    assert submissions_in(tuned.store).all() == []


def test_many_at_once_are_all_recorded(tuned: Running) -> None:
    answers: list[Answer] = []

    def work(number: int) -> None:
        answers.extend(submit(tuned, user=f"user{number}", name=f"job {turn}") for turn in range(10))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({answer["id"] for answer in answers}) == 100
    stored = {(one.id, one.job.user, one.job.name) for one in submissions_in(tuned.store).all(limit=500)}
    assert len(stored) == 100
    assert {answer["id"] for answer in answers} == {number for number, _, _ in stored}


def test_records_of_another_server_process_are_used(tuned: Running) -> None:
    with running_server(tuned.store_url) as other:
        assert submit(other)["decision"] == "set"
        job_records_in(tuned.store).withdraw(1, "because")
        assert submit(other)["decision"] == "none"
        job_records_in(other.store).restore(1)
        assert submit(tuned)["decision"] == "set"


def test_reviewed_matches_change_the_weights(tuned: Running) -> None:
    number = submit(tuned)["id"]
    other = submit(tuned, name="quite different")["id"]
    for one, is_right in ((number, True), (other, False)):
        reply = tuned.ask("POST", f"/api/v1/submissions/{one}/review", {"confirmed": is_right})
        assert cast("Answer", reply.json)["confirmed"] is is_right
    submit(tuned)
    weights = submission_of(tuned.context).queue._index._matcher.refresh().weights  # by default all are equal
    assert weights.name > weights.program


def test_a_share_keeps_the_default(tuned: Running) -> None:
    chances = iter([0.05, 0.15])
    queue = submission_of(tuned.context).queue
    queue._keep_default, queue._chance = 0.1, lambda: next(chances)
    assert [submit(tuned)["decision"] for _ in range(2)] == ["default", "set"]


def end(store: ServerStore, number: object, elapsed_s: float, state: str = "COMPLETED") -> None:
    assert submissions_in(store).note_end(cast("int", number), str(number), state, elapsed_s)


def test_a_configuration_that_makes_jobs_slower_is_withdrawn(tuned: Running) -> None:
    queue = submission_of(tuned.context).queue
    for turn in range(6):
        for chance, elapsed_s in ((0.0, 100.0 + turn), (1.0, 130.0 + turn)):
            queue._keep_default, queue._chance = 0.5, cast("Callable[[], float]", lambda chance=chance: chance)
            end(tuned.store, submit(tuned)["id"], elapsed_s)
    reason = JobTimes(tuned.store).check(1)
    assert reason is not None
    assert "slower" in reason
    assert submit(tuned)["decision"] == "none"
    (withdrawn,) = Client(tuned.url, tuned.token).job_records(withdrawn=True)
    assert withdrawn["withdrawn"] == reason
    assert withdrawn["pairs"] == 6
    assert Client(tuned.url, tuned.token).restore_record(1)["withdrawn"] is None
    assert submit(tuned)["decision"] in ("set", "default")


def test_gains_are_measured_or_said_to_be_estimates(tuned: Running) -> None:
    client = Client(tuned.url, tuned.token)
    assert client.job_gains() == []
    for _ in range(3):
        end(tuned.store, submit(tuned)["id"], 100.0)
    (gain,) = client.job_gains()
    assert (gain["pairs"], gain["speedup"], gain["elapsed_s"], gain["saved_s"]) == (0, 2.0, 300.0, 300.0)
    submission_of(tuned.context).queue._keep_default = 1.0
    for _ in range(3):
        end(tuned.store, submit(tuned)["id"], 150.0)
    (gain,) = client.job_gains()
    assert gain["pairs"] == 3
    assert gain["speedup"] == pytest.approx(1.5)
    assert gain["saved_s"] == pytest.approx(150.0)


def test_programs_to_tune_next(tuned: Running) -> None:
    client = Client(tuned.url, tuned.token)
    for elapsed_s in (1000.0, 3000.0):
        other = submit(tuned, user="bob", name="climate", script="srun ./icon run.nml", options=["-N64"])
        assert other["decision"] == "none"
        end(tuned.store, other["id"], elapsed_s)
    found = client.tuning_candidates()
    (item,) = cast("list[Answer]", found["items"])
    assert (item["program"], item["jobs"], item["elapsed_s"], item["saving_s"]) == ("icon", 2, 4000.0, 2000.0)
    assert (found["tuned"], found["median_speedup"]) == (1, 2.0)


def test_who_may_withdraw_a_record(server: Running) -> None:
    tokens = {"root": server.add_user("root", "admin")}
    tokens |= {name: server.add_user(name, "user") for name in ("ada", "bob")}
    number = server.launch(EXPERIMENT, token=tokens["ada"])
    record = with_tuned_job(server.store, number, "ada")
    path = f"/api/v1/job-records/{record}/withdraw"

    def withdraw(name: str) -> Reply:
        return server.ask("POST", path, {"reason": "old"}, token=tokens[name])

    assert withdraw("bob").status == 404
    assert withdraw("ada").status == 200
    assert withdraw("root").status == 200
    server.store.queue.share(number, shared=True)
    assert withdraw("bob").status == 403
    assert job_records_in(server.store).get(record).withdrawn == "old (root)"


def test_a_store_that_is_away_is_an_error_not_a_delay(tuned: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    from luthier.errors import UnavailableError

    def fail(_: object) -> list[int]:
        raise UnavailableError("no store")

    submissions = submission_of(tuned.context).queue._submissions
    with monkeypatch.context() as broken:
        broken.setattr(submissions, "add", fail)
        assert tuned.ask("POST", "/api/v1/submissions", JOB).status == 503
    assert submit(tuned)["decision"] == "set"


def test_accounts_of_two_servers(start_server: Starter) -> None:
    server = start_server()
    assert submit(server)["decision"] == "none"
    assert replace(server, token="x").ask("POST", "/api/v1/submissions", JOB).status == 401
