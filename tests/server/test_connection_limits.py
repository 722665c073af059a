"""Strangers who guess passwords, send half a request, or open many connections: others are served meanwhile."""

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import cast
from urllib.parse import urlsplit

import pytest
from tests.server.server_fixtures import PASSWORD, Reply, Running, Starter

from luthier.errors import InvalidInputError
from luthier.server import authentication, login_limits
from luthier.server.client_addresses import Proxies, source_of
from luthier.server.connections import Limits

API = "/api/v1"
PAGE = {"X-Luthier-CSRF": "1"}


def log_in(server: Running, name: str, password: str, headers: dict[str, str] | None = None) -> Reply:
    body = {"name": name, "password": password}
    return server.ask("POST", f"{API}/session", body, token=None, headers={**PAGE, **(headers or {})})


@contextmanager
def connection(server: Running, sent: bytes = b"", source: str = "127.0.0.1") -> Iterator[socket.socket]:
    place = ("127.0.0.1", urlsplit(server.url).port or 0)
    with socket.create_connection(place, timeout=30, source_address=(source, 0)) as opened:
        opened.sendall(sent)
        yield opened


def answer(opened: socket.socket) -> bytes:
    """All that comes until the server closes the connection."""
    said = b""
    try:
        while part := opened.recv(65536):
            said += part
    except ConnectionResetError:
        pass
    return said


# Passwords -----------------------------------------------------------------------------------------------------------


def test_others_are_served_while_passwords_are_checked(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    server.add_user("ada", "admin")
    begun, go_on = threading.Semaphore(0), threading.Event()

    def slow(hashed: str, password: str) -> bool:
        begun.release()
        go_on.wait(60)
        return False

    monkeypatch.setattr(authentication, "is_password", slow)
    monkeypatch.setattr(login_limits, "FREE_PER_ADDRESS", 1000)
    replies: list[int] = []
    guesses = [
        threading.Thread(target=lambda n=n: replies.append(log_in(server, f"user {n}", "wrong password").status))
        for n in range(90)
    ]
    for guess in guesses:
        guess.start()
    try:
        assert begun.acquire(timeout=30)
        began = time.monotonic()
        assert server.ask("GET", f"{API}/health", token=None).status == 200
        assert time.monotonic() - began < 20
        assert not go_on.is_set()
    finally:
        go_on.set()
        for guess in guesses:
            guess.join()
    assert set(replies) <= {401, 429}
    assert 429 in replies  # the line of those who wait has an end


def test_an_address_is_taken_from_a_proxy_only_if_it_was_named(
    start_server: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server()
    server.add_user("ada", "admin")
    monkeypatch.setattr(server.context.authenticator.limits, "_clock", lambda: 1e9)
    statuses = [log_in(server, "ada", "no", {"X-Forwarded-For": f"10.1.1.{n}"}).status for n in range(6)]
    assert statuses == [401] * 5 + [429]
    server.stop()
    proxied = start_server(limits=Limits(Proxies.parse(["127.0.0.1"])))
    statuses = [log_in(proxied, "ada", "no", {"X-Forwarded-For": f"10.1.1.{n}"}).status for n in range(6)]
    assert statuses == [401] * 6
    assert log_in(proxied, "ada", PASSWORD, {"X-Forwarded-For": "10.1.1.9"}).status == 200


FORGED = [
    *(f"10.1.1.{number}" for number in range(4)),
    "10.1.1.1, 10.1.1.2",
    "2001:db8::1",
    "[2001:db8::1]:443",
    "::ffff:10.1.1.1",
    "unknown",
    "127.0.0.1",
    "127.0.0.1, 127.0.0.1",
    ", ,",
    "_hidden, \x7f<script>",
    "1" * 5000,
    ", ".join(["10.1.1.1"] * 1000),
]
"""What a client may write into X-Forwarded-For to look like somebody else."""


def guesses(server: Running, values: list[str]) -> list[int]:
    """The answers to wrong passwords that are sent with each of these headers."""
    return [log_in(server, "ada", "no", {"X-Forwarded-For": value}).status for value in values]


@pytest.fixture
def proxied(start_server: Starter, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A server behind a proxy on 127.0.0.1, where no time passes."""
    server = start_server(limits=Limits(Proxies.parse(["127.0.0.1", "10.7.0.0/16"])))
    server.add_user("ada", "admin")
    monkeypatch.setattr(server.context.authenticator.limits, "_clock", lambda: 1e9)
    return server


def test_a_header_of_a_client_that_is_no_proxy_is_ignored(
    server: Running, start_server: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add_user("ada", "admin")
    monkeypatch.setattr(server.context.authenticator.limits, "_clock", lambda: 1e9)
    assert guesses(server, FORGED) == [401] * 5 + [429] * (len(FORGED) - 5)
    server.stop()
    behind = start_server(limits=Limits(Proxies.parse(["10.7.0.0/16"])))  # another proxy than this client
    monkeypatch.setattr(behind.context.authenticator.limits, "_clock", lambda: 1e9)
    assert guesses(behind, FORGED) == [401] * 5 + [429] * (len(FORGED) - 5)


@pytest.mark.parametrize("client", ["10.9.9.9", "2001:db8:9::9", "10.9.9.9:4711", "[2001:db8:9::9]:4711"])
def test_a_client_of_a_proxy_that_appends_does_not_escape_its_limit(proxied: Running, client: str) -> None:
    statuses = guesses(proxied, [f"{forged}, {client}" for forged in FORGED])
    assert statuses == [401] * 5 + [429] * (len(FORGED) - 5)
    assert guesses(proxied, [f"10.1.1.1, {client}, 10.7.3.3"]) == [429]  # through two proxies
    assert guesses(proxied, ["10.1.1.1"]) == [401]  # somebody else


@pytest.mark.parametrize(
    "values",
    [
        [f"10.9.9.9:{port}" for port in range(1000, 1006)],
        [f"[2001:db8::9]:{port}" for port in range(1000, 1006)],
        [f"2001:db8::{number}" for number in range(6)],
        ["::ffff:10.9.9.9", "10.9.9.9", "::ffff:a09:909", "10.9.9.9:1", "[::ffff:10.9.9.9]:1", "[::ffff:10.9.9.9]"],
        ["unknown", "_hidden", "10.9.9", "10.9.9.9.9", "x" * 5000, "10.9.9.9:x"],
    ],
)
def test_one_client_is_counted_once_however_a_proxy_writes_its_address(proxied: Running, values: list[str]) -> None:
    assert guesses(proxied, values) == [401] * 5 + [429]


def test_a_made_up_address_does_not_fill_the_audit_log(proxied: Running) -> None:
    guesses(proxied, ["x" * 5000, "\x7f<script>"])
    audit = proxied.ask("GET", f"{API}/audit", token=proxied.context.authenticator.issue_token("ada", "t", None)[0])
    entries = cast("dict[str, list[dict[str, str]]]", audit.json)["items"]
    assert max(len(entry["detail"]) for entry in entries) < 200
    assert "\x7f" not in str(entries)


def test_a_browser_that_logged_in_before_gets_in_again(server: Running) -> None:
    server.add_user("ada", "admin")
    cookies = log_in(server, "ada", PASSWORD).headers["set-cookie"]
    name = f"{server.context.cookie}-device"
    device = cookies.partition(f"{name}=")[2].partition(";")[0]
    assert device
    while log_in(server, "ada", "no").status != 429:
        pass
    assert log_in(server, "ada", PASSWORD, {"Cookie": f"{name}={device}"}).status == 200


def test_failed_logins_are_in_the_audit_log_within_bounds(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    token = server.add_user("ada", "admin")
    monkeypatch.setattr(login_limits, "MOST_NOTED", 3)
    for name in ("ada", "a\x1b[31mb\u202e", "x" * 190, "bob", "carl", "dora"):
        assert log_in(server, name, "no").status == 401
    server.context.authenticator.limits._noted.clear()
    log_in(server, "eve", "no")
    audit = server.ask("GET", f"{API}/audit", token=token).json
    entries = cast("dict[str, list[dict[str, object]]]", audit)["items"]
    told = [(entry["user"], entry["action"], entry["target"], entry["detail"]) for entry in entries]
    assert told == [
        ("", "failed log-in", "user eve", "from 127.0.0.1; 3 more since the previous entry"),
        ("", "failed log-in", f"user {'x' * 64}", "from 127.0.0.1"),
        ("", "failed log-in", r"user a\x1b[31mb\u202e", "from 127.0.0.1"),
        ("", "failed log-in", "user ada", "from 127.0.0.1"),
    ]


# Connections ---------------------------------------------------------------------------------------------------------

HALF = b"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
HALF_BODY = HALF.replace(b"GET", b"POST") + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"


def test_a_request_that_does_not_arrive_is_given_up(start_server: Starter) -> None:
    server = start_server(limits=Limits(head_s=0.3, body_s=0.5))
    for sent in (b"", b"G", HALF):
        with connection(server, sent) as opened:
            assert answer(opened).startswith(b"HTTP/1.1 408")
    with connection(server, HALF_BODY) as opened:
        answer(opened)
    with connection(server, HALF + b"\r\n") as opened:  # a whole one, then half of the next one
        assert opened.recv(65536).startswith(b"HTTP/1.1 200")
        opened.sendall(HALF)
        assert b"408" in answer(opened)


def test_a_request_that_trickles_in_is_given_up_too(start_server: Starter) -> None:
    server = start_server(limits=Limits(head_s=0.5, body_s=0.5))
    for begin in (HALF, HALF_BODY):
        with connection(server, begin) as opened:
            deadline = time.monotonic() + 30
            with suppress(OSError):  # so it ends
                while time.monotonic() < deadline:
                    opened.sendall(b"X: 1\r\n" if begin is HALF else b" ")
                    time.sleep(0.05)
            assert time.monotonic() < deadline


def test_a_live_stream_is_not_given_up(start_server: Starter) -> None:
    server = start_server(limits=Limits(head_s=0.3, body_s=0.3))
    number = server.launch()
    asked = f"GET {API}/experiments/{number}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    with connection(server, f"{asked}Authorization: Bearer {server.token}\r\n\r\n".encode()) as opened:
        lines = opened.makefile("rb")
        assert any(b"event: status" in line for line in lines)
        time.sleep(0.7)
        server.ask("POST", f"{API}/experiments/{number}/stop")
        assert any(b"stopped" in line for line in lines)


def test_a_client_that_takes_nothing_of_an_answer_is_given_up(start_server: Starter) -> None:
    limits = Limits(stalled_s=0.5)
    server = start_server(limits=limits)
    large = re.findall(rb'data-plotly="(.+?)"', server.ask("GET", "/login", token=None).body)[0]
    asked = HALF.replace(b"/api/v1/health", large)
    with connection(server) as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        opened.sendall(asked + b"\r\n")
        deadline = time.monotonic() + 30
        while limits.open.total() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not limits.open


def test_one_address_has_so_many_connections_and_others_are_served(start_server: Starter) -> None:
    server = start_server(limits=Limits(most_per_address=5))
    with ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(connection(server, HALF))
        with connection(server, HALF) as refused:
            assert answer(refused).startswith(b"HTTP/1.1 503")
        with connection(server, HALF + b"Connection: close\r\n\r\n", source="127.0.0.2") as other:
            assert answer(other).startswith(b"HTTP/1.1 200")
    deadline = time.monotonic() + 30
    while server.ask("GET", f"{API}/health", token=None).status == 503 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert server.ask("GET", f"{API}/health", token=None).status == 200


def test_a_named_proxy_speaks_for_many(start_server: Starter) -> None:
    limits = Limits(Proxies.parse(["127.0.0.1"]), most_per_address=2, most=20)
    server = start_server(limits=limits)
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(connection(server, HALF))
        with connection(server, HALF) as refused:
            assert answer(refused).startswith(b"HTTP/1.1 503")


def test_who_counts_as_one_address() -> None:
    assert source_of("192.0.2.1") == source_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert source_of("2001:db8::1") == source_of("2001:db8::ffff:2") == "2001:db8::/64"
    assert source_of("fe80::1%eth0") == "fe80::/64"
    assert source_of("unknown") == "unknown"
    proxies = Proxies.parse(["10.0.0.0/24", "::1"])
    assert ("10.0.0.7" in proxies, "10.0.1.7" in proxies, "::1" in proxies) == (True, False, True)
    assert proxies.texts == ["10.0.0.0/24", "::1"]
    for wrong in ("*", "localhost", "10.0.0.1/24", ""):
        with pytest.raises(InvalidInputError, match="--proxy"):
            Proxies.parse([wrong])
    assert json.dumps(Proxies().texts) == "[]"
