"""What a stranger can send: it is refused in one line, costs little, and tells nothing."""

import http.client
import json
import logging
from typing import cast
from urllib.parse import urlsplit

import psycopg
import pytest
from tests.server.server_fixtures import EXPERIMENT, Running, Starter

from luthier.server.app import ServerAddress
from luthier.server.store_errors import STORE_UNAVAILABLE
from luthier.store.base import RequestedBy
from luthier.texts import DEEPEST

API = "/api/v1"


def nested(depth: int, kind: str) -> str:
    return "[" * depth + "]" * depth if kind == "list" else '{"a":' * depth + "1" + "}" * depth


@pytest.mark.parametrize("kind", ["list", "mapping"])
@pytest.mark.parametrize("depth", [DEEPEST, 200, 400, 900, 5_000, 100_000])
def test_deep_json_is_refused_in_one_line(server: Running, depth: int, kind: str) -> None:
    for path, field in (("/experiments/yaml", "document"), ("/experiments", "components"), ("/me/tokens", "label")):
        raw = f'{{"{field}": {{"a": {nested(depth, kind)}}}}}'.encode()
        reply = server.ask("POST", f"{API}{path}", raw=raw)
        assert reply.status in (400, 422), (depth, path, reply)
        assert set(cast("dict[str, str]", reply.json)) == {"error"}
    assert server.ask("POST", f"{API}/experiments/yaml", raw=b'{"document": {"a": [[[1]]]}}').status == 200


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_half_a_character_is_refused_wherever_it_stands(server: Running, text: str) -> None:
    launched = EXPERIMENT.replace("first try", text)
    for path, body in (
        ("/experiments", {"yaml": launched}),
        ("/experiments", {"experiment": {"name": text, "script": "true"}, "components": {"knob": {}}}),
        ("/experiments/check", {"yaml": launched}),
        ("/experiments/yaml", {"document": {"a": {text: 1}}}),
        ("/experiments/document", {"yaml": f"a: {text}"}),
        ("/components", {"yaml": f"components: {{x: {{description: {text}}}}}"}),
        ("/me/tokens", {"label": text}),
    ):
        reply = server.ask("POST", f"{API}{path}", body)
        assert reply.status == 422, (path, reply)
        assert b"half of a character" in reply.body
    escaped = f'a: "{json.dumps(text)[1:-1]}"'  # in YAML's own way
    assert b"half of a character" in server.ask("POST", f"{API}/experiments/document", {"yaml": escaped}).body
    assert not server.store.history.experiments()


@pytest.mark.parametrize("text", ["\x1b[31mred", "a\nb", "a\x7f", "\u202eabc", "a\x00"])
def test_control_characters_in_a_label_are_refused(server: Running, text: str) -> None:
    reply = server.ask("POST", f"{API}/me/tokens", {"label": text})
    assert reply.status == 422
    assert b"not printable" in reply.body or b"NUL" in reply.body


def test_methods_and_paths_that_strangers_make_up_are_no_labels(server: Running) -> None:
    def series() -> int:
        return server.ask("GET", "/metrics").body.count(b"luthier_request_seconds_count")

    def made_up(number: int) -> None:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
        for path in (f"/x{number}", f"{API}/x{number}", f"/static/{number}/x", "/"):
            connection.request(f"M{number}", path)
            connection.getresponse().read()
            connection.request("GET", path)
            connection.getresponse().read()
        connection.close()

    made_up(0)
    series()
    before = series()
    for number in range(1, 40):
        made_up(number)
    assert series() == before


def test_browsers_are_told_to_stay_with_https(start_server: Starter) -> None:
    server = start_server(place=lambda port: ServerAddress(port, is_https=True))
    for path in ("/login", f"{API}/health", "/nothing"):
        assert server.ask("GET", path, token=None).headers["strict-transport-security"] == "max-age=31536000"


def test_without_https_nothing_is_said_of_it(server: Running) -> None:
    assert "strict-transport-security" not in server.ask("GET", "/login", token=None).headers


def test_a_store_that_is_away_is_not_described_to_strangers(
    start_server: Starter, postgresql_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = start_server(postgresql_url)
    session = server.session("local")
    parts = urlsplit(postgresql_url)
    with psycopg.connect(postgresql_url.replace("one_test", "postgres"), autocommit=True) as connection:
        connection.execute("DROP DATABASE one_test WITH (FORCE)")
        caplog.set_level(logging.WARNING)
        said = b""
        for path in ("/", "/login", "/enter?token=x", "/account", f"{API}/me", f"{API}/experiments", "/metrics"):
            for headers in ({}, session, {"Authorization": "Bearer x"}):
                reply = server.ask("GET", path, token=None, headers=headers)
                if reply.status not in (200, 303, 401):
                    assert (reply.status, json.loads(reply.body)) == (503, {"error": STORE_UNAVAILABLE}), path
                said += reply.body
        login = {"name": "ada", "password": "correct horse battery"}
        reply = server.ask("POST", f"{API}/session", login, token=None, headers={"X-Luthier-CSRF": "1"})
        assert (reply.status, reply.json) == (503, {"error": STORE_UNAVAILABLE})
        assert server.ask("GET", f"{API}/health", token=None).status == 503
        connection.execute("CREATE DATABASE one_test")
    assert STORE_UNAVAILABLE.encode() in said
    for word in (parts.username, parts.password, "one_test", str(parts.port)):
        assert word is not None
        assert word.encode() not in said
    assert "one_test" in caplog.text
    assert str(parts.password) not in caplog.text


def test_a_new_account_does_not_get_what_an_old_one_of_its_name_had(server: Running) -> None:
    root = server.add_user("root", "admin")
    ada = server.add_user("ada", "user")
    body, key = {"yaml": EXPERIMENT}, {"Idempotency-Key": "k"}
    assert server.ask("POST", f"{API}/experiments", body, token=ada, headers=key).status == 201
    assert server.ask("DELETE", f"{API}/users/ada", token=root).status == 204
    again = server.add_user("ada", "user")
    assert server.ask("GET", f"{API}/experiments/1", token=again).status == 404
    assert cast("dict[str, object]", server.ask("GET", f"{API}/experiments", token=again).json)["items"] == []
    assert server.ask("DELETE", f"{API}/experiments/1", token=again).status == 404
    second = server.ask("POST", f"{API}/experiments", body, token=again, headers=key)
    assert (second.status, cast("dict[str, object]", second.json)["id"]) == (201, 2)
    seen = cast("dict[str, object]", server.ask("GET", f"{API}/experiments/1", token=root).json)
    assert seen["author"] == "ada (removed)"
    assert server.ask("PUT", f"{API}/users/ada%2Fremoved", {"role": "admin"}, token=root).status in (404, 405, 422)
    assert server.store.history.create("x", {}, 1.0, RequestedBy("ada/removed", None, "k")).author == "ada/removed"


@pytest.mark.parametrize("depth", [100, 400, 800])
def test_deep_yaml_is_refused_in_one_line(server: Running, depth: int) -> None:
    for text in ("a: " + "[" * depth + "]" * depth, "a: " + "{b: " * depth + "1" + "}" * depth):
        for path in ("/experiments", "/experiments/check", "/experiments/document", "/components", "/components/check"):
            reply = server.ask("POST", f"{API}{path}", {"yaml": text})
            assert reply.status < 500, (depth, path, reply)
            assert b"error" in reply.body
